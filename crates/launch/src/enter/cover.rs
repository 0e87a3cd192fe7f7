//! Covering places: what is granted with itself, what is denied with nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::error::{ErrorKind, LaunchError};
use crate::plan::{Action, Base, Cover, LaunchPlan};
use crate::sys::{MountAttributes, set_mount_attributes};

use super::view::{Siblings, View, attach as attach_at, clone_tree, identity};

/// Where nothing under the mount on top can be reached.
const BURIAL_PLACE: &str = "/proc";

/// The detached mount for each cover of the plan, in its order; a mask's comes from the scratch file system.
pub(super) type Slots = Vec<Option<OwnedFd>>;

/// Copies what is granted while the host's mounts are as they were, but for what [`clone_swept`] copies.
pub(super) fn clone_granted(plan: &LaunchPlan, view: &View) -> Result<Slots, LaunchError> {
    let mut siblings = view.siblings();
    let copy = |cover: &Cover| match cover.action {
        Action::Show { read_only } if !is_swept(plan, cover) => {
            let mount = clone_one(cover, &mut siblings)?;
            let attributes =
                MountAttributes { read_only, no_devices: true, ..MountAttributes::default() };
            set_mount_attributes(mount.as_fd(), c"", attributes)
                .map_err(|error| LaunchError::at("set the mount of", &cover.path, error))?;
            Ok(Some(mount))
        }
        _ => Ok(None),
    };
    plan.covers.iter().map(copy).collect()
}

/// Copies what has just been made as it is to be, before anything covers it: carve-outs often come in crowds.
pub(super) fn clone_swept(
    plan: &LaunchPlan,
    view: &View,
    mut slots: Slots,
) -> Result<Slots, LaunchError> {
    let mut siblings = view.siblings();
    for (cover, slot) in plan.covers.iter().zip(slots.iter_mut()) {
        if is_swept(plan, cover) {
            *slot = Some(clone_one(cover, &mut siblings)?);
        }
    }
    Ok(slots)
}

fn is_swept(plan: &LaunchPlan, cover: &Cover) -> bool {
    plan.base == Base::Readable && cover.action == Action::Show { read_only: true }
}

fn clone_one(cover: &Cover, siblings: &mut Siblings<'_>) -> Result<OwnedFd, LaunchError> {
    let mount = match cover.identity {
        // What was copied is looked at: something else at the path, a link too, is not the file of the rule.
        Some(_) => siblings.clone(&cover.path)?,
        None => clone_tree(&siblings.open(&cover.path)?, &cover.path)?,
    };
    expect_unchanged(cover, &mount)?;
    Ok(mount)
}

fn expect_unchanged(cover: &Cover, place: &OwnedFd) -> Result<(), LaunchError> {
    let found = identity(place).map_err(|error| LaunchError::at("look at", &cover.path, error))?;
    if cover.identity.is_some_and(|expected| expected != found) {
        return Err(changed(cover));
    }
    Ok(())
}

pub(super) fn changed(cover: &Cover) -> LaunchError {
    let message =
        format!("{} was replaced while the sandbox was being built", cover.path.display());
    LaunchError::new(ErrorKind::SelfCheck, message)
}

/// On an empty base, copies of the writable places that hold pins: the pins have to be there after the old root is gone.
pub(super) fn clone_pinned(
    plan: &LaunchPlan,
    view: &View,
) -> Result<Vec<(PathBuf, OwnedFd)>, LaunchError> {
    plan.pin_holders()
        .map(|cover| {
            let place = view.open(&cover.path)?;
            expect_unchanged(cover, &place)?;
            Ok((cover.path.clone(), clone_tree(&place, &cover.path)?))
        })
        .collect()
}

/// Hangs these copies up where the sandbox's `/proc` will cover them, and binds each pinned directory in them onto
/// itself: a directory that is a mount point can't be renamed by whichever way it is reached.
pub(super) fn bury_pinned(
    plan: &LaunchPlan,
    view: &View,
    copies: Vec<(PathBuf, OwnedFd)>,
) -> Result<(), LaunchError> {
    let mut left: Vec<&PathBuf> = plan.pins.iter().collect();
    for (root, copy) in copies.into_iter().rev() {
        view.attach(&copy, Path::new(BURIAL_PLACE))?;
        let inside = View::at(copy);
        for path in left.extract_if(.., |path| path.starts_with(&root)) {
            let place = inside.open(path.strip_prefix(&root).unwrap_or(path))?;
            let mount = clone_tree(&place, path)?;
            attach_at(&mount, &place, path)?;
        }
    }
    if let Some(path) = left.first() {
        let message = format!("nothing keeps {} from being renamed", path.display());
        return Err(LaunchError::new(ErrorKind::SelfCheck, message));
    }
    Ok(())
}

/// Binds each pinned directory onto itself, parents first.
pub(super) fn pin(plan: &LaunchPlan, view: &View) -> Result<(), LaunchError> {
    for path in &plan.pins {
        let place = view.open(path)?;
        let mount = clone_tree(&place, path)?;
        attach_at(&mount, &place, path)?;
    }
    Ok(())
}

/// Puts every cover in its place, parents first.
pub(super) fn attach(plan: &LaunchPlan, view: &View, slots: Slots) -> Result<(), LaunchError> {
    let mut siblings = view.siblings();
    for (cover, slot) in plan.covers.iter().zip(slots) {
        let Some(mount) = slot else {
            let message = format!("nothing was prepared to cover {}", cover.path.display());
            return Err(LaunchError::new(ErrorKind::SelfCheck, message));
        };
        if matches!(cover.action, Action::Show { .. }) {
            siblings.attach(&mount, &cover.path)?; // the self-check looks whether it shows the place of the rule
            continue;
        }
        let place = siblings.open(&cover.path)?;
        // What it hides must be what the rule is about.
        expect_unchanged(cover, &place)?;
        attach_at(&mount, &place, &cover.path)?;
    }
    Ok(())
}
