//! Standard streams that are files: what is inherited is open on the host's own mounts, where nothing is read-only.
//!
//! A descriptor is more than the bytes that it reads: through `/proc/self/fd/0` it opens again for writing, and fchmod(2),
//! futimens(2) and fsetxattr(2) work on it. So a regular file that was opened for reading, in a place where the policy
//! lets nobody write, is opened once more on a read-only copy of its mount. What was opened for writing is left alone:
//! its bytes were given away on purpose.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, StatVfsMountFlags};
use rustix::io::Errno;

use crate::error::{ErrorKind, LaunchError};
use crate::plan::LaunchPlan;
use crate::sys::{MountAttributes, set_mount_attributes};

use super::view::{View, clone_tree};

/// Major device number of `/dev/null` and its like (`linux/major.h`).
const MEMORY_DEVICES: u32 = 1;
/// What fcntl(2) can carry over to another open file.
const STATUS: OFlags = OFlags::APPEND.union(OFlags::NONBLOCK).union(OFlags::NOATIME);

/// Opens files again, while the host's mounts are as they were.
pub(super) fn reopen_files(plan: &LaunchPlan, view: &View) -> Result<(), LaunchError> {
    each(|stream, name| file(stream, name, plan, view))
}

/// Opens `/dev/null` and its like again, which the superuser owns, in the sandbox's own `/dev`.
pub(super) fn reopen_devices() -> Result<(), LaunchError> {
    each(|stream, _| Ok(device(stream)))
}

fn each(
    again: impl Fn(BorrowedFd<'_>, &str) -> Result<Option<OwnedFd>, LaunchError>,
) -> Result<(), LaunchError> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let replacing = |error: Errno| LaunchError::step("replace a standard stream", error);
    if let Some(again) = again(stdin.as_fd(), "stdin")? {
        rustix::stdio::dup2_stdin(&again).map_err(replacing)?;
    }
    if let Some(again) = again(stdout.as_fd(), "stdout")? {
        rustix::stdio::dup2_stdout(&again).map_err(replacing)?;
    }
    if let Some(again) = again(stderr.as_fd(), "stderr")? {
        rustix::stdio::dup2_stderr(&again).map_err(replacing)?;
    }
    Ok(())
}

/// `None`: the stream stays as it is.
fn file(
    stream: BorrowedFd<'_>,
    name: &str,
    plan: &LaunchPlan,
    view: &View,
) -> Result<Option<OwnedFd>, LaunchError> {
    let Ok(stat) = rustix::fs::fstat(stream) else { return Ok(None) }; // closed by the caller
    let look = |error| LaunchError::step(&format!("look at {name}"), error);
    let flags = rustix::fs::fcntl_getfl(stream).map_err(look)?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !regular || flags & OFlags::RWMODE != OFlags::RDONLY {
        return Ok(None);
    }
    if path_of(stream).is_ok_and(|path| plan.is_writable(&path)) {
        return Ok(None);
    }
    match on_read_only_mount(stream, &stat, flags, view) {
        Ok(again) => {
            let position = rustix::fs::tell(stream).map_err(look)?;
            rustix::fs::seek(&again, SeekFrom::Start(position)).map_err(look)?;
            Ok(Some(again))
        }
        Err(_) if is_harmless(stream, &stat) => Ok(None),
        Err(error) => {
            let message = format!("{name} is a file that cannot be opened again read-only");
            Err(LaunchError::with_source(ErrorKind::Invalid, message, error.into())
                .with_hint("give its contents through a pipe: cat FILE | plenipo sandbox …"))
        }
    }
}

fn device(stream: BorrowedFd<'_>) -> Option<OwnedFd> {
    let stat = rustix::fs::fstat(stream).ok()?;
    let own = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    if !own || !is_device || rustix::fs::major(stat.st_rdev) != MEMORY_DEVICES {
        return None;
    }
    let path = path_of(stream).ok().filter(|path| path.starts_with("/dev"))?;
    let flags =
        (rustix::fs::fcntl_getfl(stream).ok()? & (OFlags::RWMODE | STATUS)) | OFlags::CLOEXEC;
    let again = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let there = rustix::fs::fstat(&again).ok()?;
    (there.st_rdev == stat.st_rdev).then_some(again)
}

/// A deleted file is reached by nobody afterwards; of somebody else's, the command changes nothing if this user could not.
fn is_harmless(stream: BorrowedFd<'_>, stat: &Stat) -> bool {
    let own = stat.st_uid == rustix::process::geteuid().as_raw();
    let flags = AtFlags::EMPTY_PATH | AtFlags::EACCESS;
    let writable = || rustix::fs::accessat(stream, "", Access::WRITE_OK, flags).is_ok();
    stat.st_nlink == 0 || (!own && !writable())
}

/// The same file in the same way, on a mount of its own that is read-only.
fn on_read_only_mount(
    stream: BorrowedFd<'_>,
    stat: &Stat,
    flags: OFlags,
    view: &View,
) -> Result<OwnedFd, Errno> {
    // The stream's own mount belongs to the host's namespace and can't be copied: the path leads to this one's.
    let path = path_of(stream)?;
    let place = view.try_open(&path)?;
    expect_same(&place, stat)?;
    let mount = match read_only_copy(&place, &path) {
        Some(mount) => mount,
        None if is_read_only(&place)? => place,
        None => return Err(Errno::PERM),
    };
    let again = rustix::fs::open(
        own_descriptor(mount.as_fd()),
        (flags & (OFlags::RWMODE | STATUS)) | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    expect_same(&again, stat)?;
    Ok(again)
}

/// Absent where this process may make no mounts.
fn read_only_copy(place: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    let mount = clone_tree(place, path).ok()?;
    let attributes = MountAttributes { read_only: true, ..MountAttributes::default() };
    set_mount_attributes(mount.as_fd(), c"", attributes).ok().map(|()| mount)
}

fn is_read_only(place: &OwnedFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatvfs(place)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn expect_same(found: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
    let there = rustix::fs::fstat(found)?;
    if (there.st_dev, there.st_ino) == (stat.st_dev, stat.st_ino) {
        return Ok(());
    }
    Err(Errno::STALE)
}

fn path_of(stream: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    use std::os::unix::ffi::OsStringExt;
    let text = rustix::fs::readlink(own_descriptor(stream), Vec::new())?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(text.into_bytes()));
    if path.is_absolute() { Ok(path) } else { Err(Errno::NOENT) }
}

fn own_descriptor(descriptor: BorrowedFd<'_>) -> PathBuf {
    Path::new("/proc/self/fd").join(descriptor.as_raw_fd().to_string())
}
