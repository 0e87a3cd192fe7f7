//! Opening paths the way the command will see them.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags};

use crate::error::{ErrorKind, LaunchError};
use crate::tree::Identity;

const CLONE: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_RECURSIVE)
    .union(OpenTreeFlags::AT_SYMLINK_NOFOLLOW);

/// A root directory under which real paths are opened, without following any symbolic link.
pub(super) struct View {
    root: OwnedFd,
}

impl View {
    /// The process's own root.
    pub(super) fn of_root() -> Result<Self, LaunchError> {
        let root = rustix::fs::open(
            "/",
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| LaunchError::step("open /", error))?;
        Ok(Self { root })
    }

    pub(super) fn at(root: OwnedFd) -> Self {
        Self { root }
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens `path` (absolute, real) without reading it. A symbolic link on the way is an error: it was none when the
    /// policy was resolved.
    pub(super) fn open(&self, path: &Path) -> Result<OwnedFd, LaunchError> {
        self.try_open(path).map_err(|error| LaunchError::at("open", path, error))
    }

    pub(super) fn try_open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let bytes = path.as_os_str().as_bytes();
        let relative = match bytes.strip_prefix(b"/").unwrap_or(bytes) {
            b"" => b".".as_slice(),
            relative => relative,
        };
        open_below(self.root(), relative)
    }

    /// For places that come one after the other, those of one directory together.
    pub(super) fn siblings(&self) -> Siblings<'_> {
        Siblings { view: self, directory: None }
    }

    /// Puts a detached mount over `path`.
    pub(super) fn attach(&self, mount: &OwnedFd, path: &Path) -> Result<(), LaunchError> {
        attach(mount, &self.open(path)?, path)
    }

    /// Makes this view the process's root and lets go of the old one.
    pub(super) fn become_root(&self) -> Result<(), LaunchError> {
        let step = |what: &'static str| move |error: Errno| LaunchError::step(what, error);
        rustix::process::fchdir(&self.root).map_err(step("enter the new root"))?;
        rustix::process::pivot_root(".", ".").map_err(step("change to the new root"))?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)
            .map_err(step("let go of the old root"))?;
        rustix::process::chdir("/").map_err(step("enter the new root"))?;
        // What may still lie on the new root is found from above.
        let wanted = identity(&self.root).map_err(step("look at the new root"))?;
        for path in ["/", "/.."].map(Path::new) {
            let there = rustix::fs::stat(path).map_err(step("look at the new root"))?;
            if (Identity { device: there.st_dev, inode: there.st_ino }) != wanted {
                let message = "the old root should be gone from the sandbox, and is not";
                return Err(LaunchError::new(ErrorKind::SelfCheck, message));
            }
        }
        Ok(())
    }
}

/// Opens each directory once for all the places in it. A directory must not be covered after the first place in it.
pub(super) struct Siblings<'a> {
    view: &'a View,
    directory: Option<(PathBuf, OwnedFd)>,
}

impl Siblings<'_> {
    /// The directory of `path` (absolute, real, not `/`) and its name in it.
    fn split<'p>(&mut self, path: &'p Path) -> Result<(BorrowedFd<'_>, &'p [u8]), LaunchError> {
        let bytes = path.as_os_str().as_bytes();
        let separator = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let (above, name) = bytes.split_at_checked(separator).unwrap_or((b"", bytes));
        let above = Path::new(OsStr::from_bytes(if above.is_empty() { b"/" } else { above }));
        let known = self.directory.as_ref().map(|(known, _)| known.as_os_str());
        if known != Some(above.as_os_str()) {
            self.directory = Some((above.to_path_buf(), self.view.open(above)?));
        }
        match &self.directory {
            Some((_, directory)) => Ok((directory.as_fd(), name.get(1..).unwrap_or(name))),
            None => Err(LaunchError::at("open", above, Errno::BADF)),
        }
    }

    /// The same as [`View::open`].
    pub(super) fn open(&mut self, path: &Path) -> Result<OwnedFd, LaunchError> {
        let (directory, name) = self.split(path)?;
        open_below(directory, name).map_err(|error| LaunchError::at("open", path, error))
    }

    /// Puts a detached mount over what is called `path`. If that is a symbolic link by now, the link is covered, not followed:
    /// the caller has to look what is there afterwards.
    pub(super) fn attach(&mut self, mount: &OwnedFd, path: &Path) -> Result<(), LaunchError> {
        let (directory, name) = self.split(path)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(mount, "", directory, OsStr::from_bytes(name), flags)
            .map_err(|error| LaunchError::at("mount over", path, error))
    }

    /// A detached copy of the mount tree at `path`. If that is a symbolic link, it is a copy of the link itself: the caller
    /// has to look what it got.
    pub(super) fn clone(&mut self, path: &Path) -> Result<OwnedFd, LaunchError> {
        let (directory, name) = self.split(path)?;
        clone_below(directory, Path::new(OsStr::from_bytes(name)), path)
    }
}

fn open_below(directory: BorrowedFd<'_>, relative: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(directory, relative, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Puts a detached mount over what `target` is open on.
pub(super) fn attach(mount: &OwnedFd, target: &OwnedFd, path: &Path) -> Result<(), LaunchError> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, "", target, "", flags)
        .map_err(|error| LaunchError::at("mount over", path, error))
}

/// A detached copy of the mount tree that `place` is open on.
pub(super) fn clone_tree(place: &OwnedFd, path: &Path) -> Result<OwnedFd, LaunchError> {
    clone_below(place.as_fd(), Path::new(""), path)
}

/// A detached copy of the mount tree at `relative` below `directory`.
pub(super) fn clone_below(
    directory: BorrowedFd<'_>,
    relative: &Path,
    shown: &Path,
) -> Result<OwnedFd, LaunchError> {
    let flags =
        if relative.as_os_str().is_empty() { CLONE | OpenTreeFlags::AT_EMPTY_PATH } else { CLONE };
    rustix::mount::open_tree(directory, relative, flags)
        .map_err(|error| LaunchError::at("copy the mount of", shown, error))
}

/// The same; `None` where nothing is.
pub(super) fn try_clone(
    directory: BorrowedFd<'_>,
    relative: &Path,
) -> Result<Option<OwnedFd>, Errno> {
    match rustix::mount::open_tree(directory, relative, CLONE) {
        Ok(mount) => Ok(Some(mount)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Which file a descriptor is open on.
pub(super) fn identity(place: &OwnedFd) -> Result<Identity, Errno> {
    let stat = rustix::fs::fstat(place)?;
    Ok(Identity { device: stat.st_dev, inode: stat.st_ino })
}
