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

#[cfg(test)]
mod tests {
    use plenipo_policy::Access::{Deny, Read, Write};

    use super::*;
    use crate::plan::tests::planned;

    #[test]
    fn everything_readable_is_granted_by_entry_for_the_devices_sake() {
        let grants = grants(&planned([("/", Read)])).unwrap();
        assert_eq!(grants.listable, [Path::new("/")]);
        assert!(
            grants.readable.iter().all(|path| path != Path::new("/") && !path.starts_with("/dev"))
        );
        assert!(grants.readable.contains(&PathBuf::from("/usr")));
        assert!(grants.devices.contains(&PathBuf::from("/dev/null")));
        assert!(grants.writable.is_empty());
    }

    #[test]
    fn a_denied_place_is_left_out_and_its_neighbours_are_not() {
        let place = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(place.path()).unwrap();
        for name in ["denied/in", "open/in"] {
            std::fs::create_dir_all(path.join(name)).unwrap();
        }
        std::fs::write(path.join("file.txt"), "").unwrap();
        std::os::unix::fs::symlink("denied", path.join("link")).unwrap();
        let denied = path.join("denied").display().to_string();
        let grants = grants(&planned([("/", Read), (denied.as_str(), Deny)])).unwrap();
        assert!(grants.listable.is_empty());
        let mut here: Vec<&Path> =
            grants.readable.iter().filter_map(|granted| granted.strip_prefix(&path).ok()).collect();
        here.sort();
        assert_eq!(here, [Path::new("file.txt"), Path::new("open")]);
        let whole = |granted: &PathBuf| path.starts_with(granted);
        assert!(!grants.readable.iter().any(whole), "a directory above is granted");
    }

    #[test]
    fn a_denied_device_is_none() {
        let grants = grants(&planned([("/", Read), ("/dev/tty", Deny)])).unwrap();
        assert!(!grants.devices.contains(&PathBuf::from("/dev/tty")));
        assert!(grants.devices.contains(&PathBuf::from("/dev/null")));
    }

    #[test]
    fn what_narrows_a_writable_place_is_refused() {
        for narrowed in [
            planned([("/", Read), ("/ws", Write), ("/ws/.git", Read)]),
            planned([("/", Read), ("/ws", Write), ("/ws/a/secret", Deny)]),
            planned([("/ws", Write), ("/ws/.git", Read)]),
            planned([("/", Write)]),
        ] {
            assert!(grants(&narrowed).is_err());
        }
        let nested = grants(&planned([("/ws", Write), ("/ro", Read), ("/ro/rw", Write)])).unwrap();
        assert_eq!(nested.writable, [Path::new("/ro/rw"), Path::new("/ws")]);
        assert_eq!(nested.readable, [Path::new("/ro")]);
    }
}
