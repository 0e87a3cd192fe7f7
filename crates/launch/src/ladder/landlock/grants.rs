//! A launch plan in Landlock's terms: it can only grant, with everything below.

use std::path::{Path, PathBuf};

use crate::landlock_layer::Grants;
use crate::plan::{Action, Base, LaunchPlan};

/// Devices that are harmless; no other is granted, whatever `/` is.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
const DEVICE_DIRECTORY: &str = "/dev";
/// A granted directory with something denied in it is granted entry by entry; more of them are refused.
const MAX_ENTRIES: usize = 4096;

/// What is to be granted, or why Landlock cannot express the plan.
pub(super) fn grants(plan: &LaunchPlan) -> Result<Grants, String> {
    if plan.base == Base::Writable {
        return Err("everything is writable, and devices could not be kept out of it".to_owned());
    }
    let narrowed = plan
        .covers
        .iter()
        .filter(|cover| !matches!(cover.action, Action::Show { read_only: false }))
        .find_map(|cover| {
            let root = plan.writable.iter().find(|root| cover.path.starts_with(root))?;
            Some((cover, root))
        });
    if let Some((cover, root)) = narrowed {
        let (place, root) = (cover.path.display(), root.display());
        return Err(format!("{place} cannot be protected inside the writable {root}"));
    }
    let mut withheld: Vec<&Path> = denied(plan).collect();
    let listable = if withheld.is_empty() && plan.base == Base::Readable {
        vec![PathBuf::from("/")]
    } else {
        Vec::new()
    };
    let devices = DEVICES.map(PathBuf::from).into_iter();
    let devices = devices.filter(|device| !withheld.iter().any(|path| device.starts_with(path)));
    let devices = devices.collect();
    withheld.push(Path::new(DEVICE_DIRECTORY));
    let mut readable = Vec::new();
    for path in &plan.readable {
        read_around(path, &withheld, &mut readable)?;
    }
    Ok(Grants { readable, listable, writable: plan.writable.clone(), devices })
}

/// Places that the policy denies.
pub(super) fn denied(plan: &LaunchPlan) -> impl Iterator<Item = &Path> {
    let masks = plan.covers.iter().filter(|cover| matches!(cover.action, Action::Mask { .. }));
    masks.map(|cover| cover.path.as_path())
}

/// Grants `path`, or what is in it but `withheld`. Symbolic links need no grant: what they lead to has its own.
fn read_around(path: &Path, withheld: &[&Path], readable: &mut Vec<PathBuf>) -> Result<(), String> {
    if !withheld.iter().any(|place| place.starts_with(path)) {
        readable.push(path.to_path_buf());
        return Ok(());
    }
    let failed = |error: std::io::Error| format!("{} cannot be listed: {error}", path.display());
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let place = entry.path();
        let is_link = entry.file_type().map_err(failed)?.is_symlink();
        if is_link || withheld.contains(&place.as_path()) {
            continue;
        }
        if readable.len() >= MAX_ENTRIES {
            return Err(format!("{} has too many entries", path.display()));
        }
        read_around(&place, withheld, readable)?;
    }
    Ok(())
}
