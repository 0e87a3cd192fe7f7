//! Opening paths the way the command will see them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags};

use crate::error::LaunchError;
use crate::tree::Identity;

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
        let relative = path.strip_prefix("/").unwrap_or(path);
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.root, relative, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
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
        rustix::process::chdir("/").map_err(step("enter the new root"))
    }
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
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if relative.as_os_str().is_empty() {
        flags |= OpenTreeFlags::AT_EMPTY_PATH;
    }
    rustix::mount::open_tree(directory, relative, flags)
        .map_err(|error| LaunchError::at("copy the mount of", shown, error))
}

/// Which file a descriptor is open on.
pub(super) fn identity(place: &OwnedFd) -> Result<Identity, Errno> {
    let stat = rustix::fs::fstat(place)?;
    Ok(Identity { device: stat.st_dev, inode: stat.st_ino })
}
