//! The sandbox's own `/dev` and `/proc`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags};

use crate::error::{Lack, LaunchError};
use crate::sys::{MountAttributes, set_mount_attributes};

use super::scratch::memory;
use super::view::{View, clone_tree, try_clone};

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Parts of `/proc` through which user 0 could change the host without any capability. Always read-only.
const PROC_READ_ONLY: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];
/// Drivers' files that only user 0 may write, some of them without a look at its capabilities.
const PROC_READ_ONLY_FOR_ROOT: [&str; 6] =
    ["acpi", "asound", "driver", "dynamic_debug", "latency_stats", "scsi"];

/// Copies the device nodes while devices still work on the host's `/dev`.
pub(super) fn clone_devices(view: &View) -> Result<Vec<(&'static str, OwnedFd)>, LaunchError> {
    let mut devices = Vec::with_capacity(DEVICES.len());
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        match view.try_open(&path) {
            Ok(place) => devices.push((name, read_only(clone_tree(&place, &path)?, &path)?)),
            Err(Errno::NOENT) => {} // a container may not have it; then neither has the command
            Err(error) => return Err(LaunchError::at("open", &path, error)),
        }
    }
    Ok(devices)
}

/// A device on a read-only mount works, and the superuser cannot change the host's node itself.
fn read_only(mount: OwnedFd, path: &Path) -> Result<OwnedFd, LaunchError> {
    let attributes = MountAttributes { read_only: true, ..MountAttributes::default() };
    set_mount_attributes(mount.as_fd(), c"", attributes)
        .map_err(|error| LaunchError::at("make read-only", path, error))?;
    Ok(mount)
}

/// A `/dev` in memory: the harmless devices, own pseudo-terminals, own shared memory.
pub(super) fn mount_dev(
    view: &View,
    devices: Vec<(&'static str, OwnedFd)>,
) -> Result<(), LaunchError> {
    let dev = memory("755")?;
    view.attach(&dev, Path::new("/dev"))?;
    for (name, mount) in devices {
        let path = || Path::new("/dev").join(name);
        rustix::fs::mknodat(&dev, name, FileType::RegularFile, Mode::RUSR, 0)
            .map_err(|error| LaunchError::at("make", &path(), error))?;
        // Nobody else is in this file system yet: the name is what it was made as.
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(&mount, "", &dev, name, flags)
            .map_err(|error| LaunchError::at("mount over", &path(), error))?;
    }
    for (name, text) in DEVICE_LINKS {
        let link = || Path::new("/dev").join(name);
        rustix::fs::symlinkat(text, &dev, name).map_err(|e| LaunchError::at("make", &link(), e))?;
    }
    directory(dev.as_fd(), "shm", 0o1777)?;
    directory(dev.as_fd(), "pts", 0o755)?;
    view.attach(&pseudo_terminals()?, Path::new("/dev/pts"))
}

fn directory(dev: BorrowedFd<'_>, name: &str, mode: u32) -> Result<(), LaunchError> {
    let make = || {
        rustix::fs::mkdirat(dev, name, Mode::RWXU)?;
        rustix::fs::chmodat(dev, name, Mode::from_raw_mode(mode), AtFlags::empty())
    };
    make().map_err(|error| LaunchError::at("make", &Path::new("/dev").join(name), error))
}

fn pseudo_terminals() -> Result<OwnedFd, LaunchError> {
    let make = || {
        let context = rustix::mount::fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(context.as_fd(), "ptmxmode", "0666")?;
        rustix::mount::fsconfig_set_string(context.as_fd(), "mode", "0620")?;
        rustix::mount::fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    make().map_err(|error: Errno| LaunchError::step("make /dev/pts", error))
}

/// Copies the `/proc` that is there, with what covers parts of it, read-only.
pub(super) fn clone_proc(view: &View) -> Result<OwnedFd, LaunchError> {
    let path = Path::new("/proc");
    let mount = clone_tree(&view.open(path)?, path)?;
    let attributes = MountAttributes {
        read_only: true,
        no_devices: true,
        no_execution: true,
        ..MountAttributes::default()
    };
    set_mount_attributes(mount.as_fd(), c"", attributes)
        .map_err(|error| LaunchError::at("make read-only", path, error))?;
    Ok(mount)
}

/// A `/proc` of the sandbox's own processes only, with its dangerous parts read-only.
pub(super) fn mount_proc(view: &View) -> Result<(), LaunchError> {
    let make = || {
        let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    let proc = make().map_err(cannot_mount_proc)?;
    view.attach(&proc, Path::new("/proc"))?;
    proc_names().try_for_each(|name| cover_in_place(&proc, name))
}

/// Binds a part of a `/proc` that nobody else is in yet onto itself, read-only. What this kernel has not needs nothing.
fn cover_in_place(proc: &OwnedFd, name: &'static str) -> Result<(), LaunchError> {
    let path = Path::new("/proc").join(name);
    let Some(mount) = try_clone(proc.as_fd(), Path::new(name))
        .map_err(|error| LaunchError::at("copy the mount of", &path, error))?
    else {
        return Ok(());
    };
    let mount = read_only(mount, &path)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(&mount, "", proc, name, flags)
        .map_err(|error| LaunchError::at("mount over", &path, error))
}

/// Parts of `/proc` that have to be read-only, where this kernel has them.
pub(crate) fn proc_read_only() -> impl Iterator<Item = PathBuf> {
    proc_names().map(|name| Path::new("/proc").join(name))
}

fn proc_names() -> impl Iterator<Item = &'static str> {
    let root = rustix::process::geteuid().is_root();
    let for_root: &[&str] = if root { &PROC_READ_ONLY_FOR_ROOT } else { &[] };
    PROC_READ_ONLY.iter().chain(for_root).copied()
}

fn cannot_mount_proc(error: Errno) -> LaunchError {
    match error {
        Errno::PERM | Errno::ACCESS | Errno::INVAL => LaunchError::unsupported(
            "mount a fresh /proc",
            error,
        )
        .with_lack(Lack::FreshProc)
        .with_hint(
            "this container hides parts of /proc, so the kernel refuses a fresh one; start it with \
                 systempaths=unconfined (Docker, Podman) or procMount: Unmasked (Kubernetes)",
        ),
        other => LaunchError::step("mount /proc", other),
    }
}
