//! A small file system of empty things: stand-ins for what is denied, and the skeleton of an empty root.
//!
//! It is mounted where `/proc` was; the sandbox's own `/proc` then covers it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::error::LaunchError;
use crate::plan::{Action, Cover, LaunchPlan, Opening};
use crate::sys::{MountAttributes, set_mount_attributes};
use crate::tree::Kind;

use super::cover::Slots;
use super::view::{View, attach, clone_below};

const EMPTY_DIRECTORY: &str = "directory";
const EMPTY_FILE: &str = "file";
const ROOT: &str = "root";
/// What a mask with openings allows: to pass through, not to look.
const PASSAGE: u32 = 0o111;
const VISIBLE: u32 = 0o755;

/// Fills the slots of masks and, for an empty base, makes the new root. Does nothing if neither is needed.
pub(super) fn fill(
    plan: &LaunchPlan,
    view: &View,
    mut slots: Slots,
) -> Result<(Slots, Option<View>), LaunchError> {
    let masks = plan.covers.iter().any(|cover| matches!(cover.action, Action::Mask { .. }));
    if !masks && !plan.base_is_empty() {
        return Ok((slots, None));
    }
    let scratch = make(view)?;
    for (index, (cover, slot)) in plan.covers.iter().zip(slots.iter_mut()).enumerate() {
        if let Action::Mask { openings } = &cover.action {
            *slot = Some(stand_in(scratch.as_fd(), index, cover, openings)?);
        }
    }
    let new_root = if plan.base_is_empty() {
        Some(new_root(scratch.as_fd(), &plan.root_openings)?)
    } else {
        None
    };
    Ok((slots, new_root))
}

/// A new empty file system of memory, not yet mounted anywhere.
pub(super) fn memory(mode: &str) -> Result<OwnedFd, LaunchError> {
    let make = || {
        let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(context.as_fd(), "mode", mode)?;
        rustix::mount::fsconfig_create(context.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID;
        rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    make().map_err(|error: Errno| LaunchError::step("make an empty file system", error))
}

fn make(view: &View) -> Result<OwnedFd, LaunchError> {
    let scratch = memory("755")?;
    view.attach(&scratch, Path::new("/proc"))?;
    directory(scratch.as_fd(), Path::new(EMPTY_DIRECTORY), 0)?;
    file(scratch.as_fd(), Path::new(EMPTY_FILE))?;
    Ok(scratch)
}

fn stand_in(
    scratch: BorrowedFd<'_>,
    index: usize,
    cover: &Cover,
    openings: &[Opening],
) -> Result<OwnedFd, LaunchError> {
    let name = match cover.kind {
        Kind::File => PathBuf::from(EMPTY_FILE),
        Kind::Directory if openings.is_empty() => PathBuf::from(EMPTY_DIRECTORY),
        Kind::Directory => {
            let name = PathBuf::from(format!("mask-{index}"));
            directory(scratch, &name, VISIBLE)?;
            open_up(scratch, &name, openings, PASSAGE)?;
            permit(scratch, &name, PASSAGE)?;
            name
        }
    };
    let mount = clone_below(scratch, &name, &cover.path)?;
    let attributes = MountAttributes {
        read_only: true,
        no_devices: true,
        no_execution: true,
        ..MountAttributes::default()
    };
    set_mount_attributes(mount.as_fd(), c"", attributes)
        .map_err(|error| LaunchError::at("mask", &cover.path, error))?;
    Ok(mount)
}

/// The skeleton becomes a mount of its own, so that it can be made the root.
fn new_root(scratch: BorrowedFd<'_>, openings: &[Opening]) -> Result<View, LaunchError> {
    let name = Path::new(ROOT);
    directory(scratch, name, VISIBLE)?;
    open_up(scratch, name, openings, VISIBLE)?;
    let mount = clone_below(scratch, name, Path::new("/"))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let step = |error: Errno| LaunchError::step("open the new root", error);
    let below = rustix::fs::openat(scratch, name, flags, Mode::empty()).map_err(step)?;
    attach(&mount, &below, Path::new("/"))?;
    let attributes =
        MountAttributes { read_only: true, no_devices: true, ..MountAttributes::default() };
    set_mount_attributes(mount.as_fd(), c"", attributes)
        .map_err(|error| LaunchError::step("make the new root read-only", error))?;
    Ok(View::at(mount))
}

fn open_up(
    scratch: BorrowedFd<'_>,
    top: &Path,
    openings: &[Opening],
    mode: u32,
) -> Result<(), LaunchError> {
    let mut made: Vec<PathBuf> = Vec::new();
    for opening in openings {
        let (Opening::MountPoint { relative, .. } | Opening::Link { relative, .. }) = opening;
        let place = top.join(relative);
        for above in missing_above(top, &place, &made) {
            directory(scratch, &above, VISIBLE)?;
            made.push(above);
        }
        match opening {
            Opening::MountPoint { kind: Kind::Directory, .. } => {
                if !made.contains(&place) {
                    directory(scratch, &place, VISIBLE)?;
                    made.push(place);
                }
            }
            Opening::MountPoint { kind: Kind::File, .. } => file(scratch, &place)?,
            Opening::Link { text, .. } => {
                let linked = rustix::fs::symlinkat(text, scratch, &place);
                linked.map_err(|error| LaunchError::at("make the link", relative, error))?;
            }
        }
    }
    made.iter().rev().try_for_each(|place| permit(scratch, place, mode))
}

/// Directories between `top` and `place` that do not exist yet, parents first.
fn missing_above(top: &Path, place: &Path, made: &[PathBuf]) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = place
        .ancestors()
        .skip(1)
        .take_while(|above| *above != top)
        .filter(|above| !made.iter().any(|present| present == above))
        .map(Path::to_path_buf)
        .collect();
    missing.reverse();
    missing
}

fn directory(scratch: BorrowedFd<'_>, place: &Path, mode: u32) -> Result<(), LaunchError> {
    rustix::fs::mkdirat(scratch, place, Mode::from_raw_mode(VISIBLE))
        .map_err(|error| LaunchError::at("make the directory", place, error))?;
    permit(scratch, place, mode)
}

/// Set apart from making, because the caller's umask applies there.
fn permit(scratch: BorrowedFd<'_>, place: &Path, mode: u32) -> Result<(), LaunchError> {
    let mode = Mode::from_raw_mode(mode);
    rustix::fs::chmodat(scratch, place, mode, rustix::fs::AtFlags::empty())
        .map_err(|error| LaunchError::at("set the mode of", place, error))
}

fn file(scratch: BorrowedFd<'_>, place: &Path) -> Result<(), LaunchError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(scratch, place, flags, Mode::empty())
        .map(drop)
        .map_err(|error| LaunchError::at("make the file", place, error))
}
