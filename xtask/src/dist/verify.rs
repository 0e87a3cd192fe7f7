//! `dist --verify`: whether the same sources give the same bytes. Everything is made once more, from nothing, from a copy of
//! the sources in another place, and compared with the release: each file, so that the one that differs is named, and the
//! archive.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::pack::{self, Stamp};
use super::{SUMS, build};
use crate::run::{Doing, Failure, Outcome, output};
use crate::workspace::Workspace;

/// As long as not the place of the sources: the paths of both show in what is not mapped away.
const PLACE: &str = "verify/sources-elsewhere";

/// Compares with what was assembled in `staged`; fails with the first file, and the first byte in it, that differs.
pub(super) fn verify(workspace: &Workspace, staged: &Path, stamp: &Stamp) -> Outcome {
    let place = workspace.target.join(PLACE);
    if place.exists() {
        fs::remove_dir_all(&place).doing("remove the last copy of the sources")?;
    }
    copy_sources(&workspace.root, &place)?;
    let elsewhere =
        Workspace { target: place.join("target"), root: place.clone(), packages: Vec::new() };
    let again = elsewhere.target.join("dist");
    pack::assemble(&elsewhere, &build(&elsewhere)?, &again, stamp)?;
    compare(staged, &again)?;
    fs::remove_dir_all(&place).doing("remove the copy of the sources")?;
    let sums = fs::read_to_string(staged.join(SUMS)).doing("read the checksums")?;
    println!("dist: the same from another place, {} checksums", sums.lines().count());
    Ok(())
}

/// Whether both directories hold the same names and bytes; what is made of others (the archive, then the checksums) comes
/// last.
fn compare(one: &Path, other: &Path) -> Outcome {
    let (files, others) = (files(one)?, files(other)?);
    if let Some(name) = files.symmetric_difference(&others).next() {
        let (one, other) = (one.display(), other.display());
        return Err(Failure::new(format!("only one of {one} and {other} has {name}")));
    }
    let is_made = |name: &&String| name.ends_with(".tar.gz") || *name == SUMS;
    let (mut made, single): (Vec<_>, Vec<_>) = files.iter().partition(is_made);
    made.sort_by_key(|name| *name == SUMS);
    for name in single.into_iter().chain(made) {
        let paths = [one.join(name), other.join(name)];
        let [first, second] =
            paths.each_ref().map(|path| fs::read(path).doing(&format!("read {}", path.display())));
        if let Some(difference) = difference(&first?, &second?) {
            let [first, second] = paths.each_ref().map(|path| path.display());
            return Err(Failure::new(format!(
                "{first} and {second} are not the same: {difference}"
            )));
        }
    }
    Ok(())
}

/// Every file below, by its path from there.
fn files(directory: &Path) -> Outcome<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(folder) = waiting.pop() {
        let what = format!("list {}", folder.display());
        for entry in fs::read_dir(&folder).doing(&what)? {
            let path = entry.doing(&what)?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap_or(&path);
                found.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

/// What is under version control, as it is in the working directory.
fn copy_sources(root: &Path, place: &Path) -> Outcome {
    let listed = output(Command::new("git").current_dir(root).args(["ls-files", "-z"]))?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let to = place.join(name);
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).doing("make a directory for the sources")?;
        }
        fs::copy(root.join(name), &to).map(drop).doing(&format!("copy {name}"))?;
    }
    Ok(())
}

fn difference(one: &[u8], other: &[u8]) -> Option<String> {
    if one == other {
        return None;
    }
    let (lengths, same) = ((one.len(), other.len()), one.iter().zip(other));
    let at = same.take_while(|(one, other)| one == other).count();
    Some(format!("{} and {} bytes, and byte {at:#x} differs first", lengths.0, lengths.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_differs_is_named() {
        let place = std::env::temp_dir().join(format!("plenipo-verify-{}", std::process::id()));
        let sides = ["one", "other"].map(|side| place.join(side));
        for side in &sides {
            fs::create_dir_all(side.join("folder/man")).unwrap();
            for made in ["a.tar.gz", SUMS] {
                fs::write(side.join(made), side.to_string_lossy().as_bytes()).unwrap();
            }
            fs::write(side.join("folder/man/page"), "same").unwrap();
        }
        let [one, other] = &sides;
        let failure = compare(one, other).unwrap_err().to_string();
        assert!(failure.contains("a.tar.gz are not the same"), "{failure}");
        fs::write(other.join("folder/man/page"), "some").unwrap();
        let failure = compare(one, other).unwrap_err().to_string();
        assert!(failure.contains("page are not the same: 4 and 4 bytes"), "{failure}");
        fs::write(other.join("folder/more"), "").unwrap();
        let failure = compare(one, other).unwrap_err().to_string();
        assert!(failure.ends_with("has folder/more"), "{failure}");
        assert!(compare(one, one).is_ok());
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(difference(b"same", b"same"), None);
        let found = |one: &[u8], other: &[u8]| difference(one, other).unwrap();
        assert_eq!(found(b"same", b"some"), "4 and 4 bytes, and byte 0x1 differs first");
        assert_eq!(found(b"same", b"same, longer"), "4 and 12 bytes, and byte 0x4 differs first");
    }
}
