//! `dist --verify`: whether the same sources give the same bytes. The executable is compiled once more, from nothing, from
//! a copy of the sources in another place, and compared with the release.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Release, build};
use crate::run::{Doing, Failure, Outcome, output};
use crate::workspace::Workspace;

/// As long as not the place of the sources: the paths of both show in what is not mapped away.
const PLACE: &str = "verify/sources-elsewhere";

/// Fails with the first byte that differs.
pub(super) fn verify(workspace: &Workspace, release: &Release) -> Outcome {
    let place = workspace.target.join(PLACE);
    if place.exists() {
        fs::remove_dir_all(&place).doing("remove the last copy of the sources")?;
    }
    copy_sources(&workspace.root, &place)?;
    let elsewhere =
        Workspace { target: place.join("target"), root: place.clone(), packages: Vec::new() };
    let again = build(&elsewhere)?;
    let read = |path: &Path| fs::read(path).doing(&format!("read {}", path.display()));
    let (one, other) = (read(&release.program)?, read(&again.program)?);
    if let Some(difference) = difference(&one, &other) {
        let (one, other) = (release.program.display(), again.program.display());
        return Err(Failure::new(format!("{one} and {other} are not the same: {difference}")));
    }
    fs::remove_dir_all(&place).doing("remove the copy of the sources")?;
    println!("dist: the same {} bytes from another place", one.len());
    Ok(())
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
    fn the_first_difference_is_named() {
        assert_eq!(difference(b"same", b"same"), None);
        let found = |one: &[u8], other: &[u8]| difference(one, other).unwrap();
        assert_eq!(found(b"same", b"some"), "4 and 4 bytes, and byte 0x1 differs first");
        assert_eq!(found(b"same", b"same, longer"), "4 and 12 bytes, and byte 0x4 differs first");
    }
}
