//! Paths into as few entries as say it: packages and busy directories as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plenipo_policy::Access;

use super::{Proposal, Temporary};
use crate::places::{is_system, package, trail};
use crate::{Record, Survey};

/// From this many files of a directory on, the directory is granted.
const MANY: usize = 4;

/// Goes through the records: packages at once, other files when all are known.
pub(super) fn gather(proposal: &mut Proposal, survey: &Survey) {
    let mut files: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for record in survey.records() {
        match record {
            Record::Read(path) | Record::Execute(path) => {
                for place in trail(Path::new(path)).unwrap_or_default() {
                    read(proposal, &place, &mut files);
                }
            }
            Record::Write(path) => change(proposal, Path::new(path), false),
            Record::Make(path) => change(proposal, Path::new(path), true),
            Record::Look(path) => look(proposal, Path::new(path)),
            _ => {}
        }
    }
    for (directory, files) in files {
        let whole = files.len() >= MANY && !proposal.around.is_broad(&directory);
        if whole {
            let why = format!("{} files of it were read", files.len());
            proposal.grant(&directory, Access::Read, &why);
            continue;
        }
        for file in files {
            proposal.grant(&file, Access::Read, "read");
        }
    }
}

fn read(proposal: &mut Proposal, place: &Path, files: &mut BTreeMap<PathBuf, BTreeSet<PathBuf>>) {
    if let Some(secret) = proposal.around.secret(place) {
        proposal.secrets.entry(secret).or_insert(Access::Read);
    } else if is_system(place) {
        proposal.minimal = true;
    } else if place.starts_with("/sys") {
        proposal.doubt(Path::new("/sys"), Access::Read, "read; most servers go on without");
    } else if let Some(package) = package(place, &proposal.around) {
        proposal.grant(&package, Access::Read, "a package");
    } else if place.is_dir() {
        // As a whole: to list it is to see what is in it. Those above other entries exist anyway.
        match proposal.around.is_broad(place) {
            true => proposal.doubt(place, Access::Read, "listed, and it holds much else"),
            false => proposal.grant(place, Access::Read, "listed"),
        }
    } else if let Some(directory) = place.parent() {
        files.entry(directory.to_path_buf()).or_default().insert(place.to_path_buf());
    }
}

/// Something was written: the file if it stays the same file, else the directory that it is in.
fn change(proposal: &mut Proposal, path: &Path, made: bool) {
    // Python's own, which it does without.
    if path.components().any(|part| part.as_os_str() == "__pycache__") {
        return;
    }
    let real = trail(path).and_then(|places| places.last().cloned());
    let Some(real) = real.or_else(|| Some(end(path.parent()?)?.join(path.file_name()?))) else {
        return;
    };
    if let Some(secret) = proposal.around.secret(&real) {
        proposal.secrets.insert(secret, Access::Write);
        return;
    }
    if let Some(temporary) = temporary(proposal, &real) {
        proposal.temporary.insert(temporary);
        return;
    }
    for link in trail(path).unwrap_or_default() {
        if link != real && !is_system(&link) {
            proposal.grant(&link, Access::Read, "a link to what is written");
        }
    }
    let whole = match real.parent() {
        _ if real.is_dir() => real.as_path(),
        Some(parent) if made => parent,
        _ => real.as_path(),
    };
    if is_system(whole) {
        proposal.doubt(whole, Access::Write, "written, and it belongs to the system");
    } else if whole.is_dir() && proposal.around.is_broad(whole) {
        proposal.doubt(whole, Access::Write, "written in, and it holds much else");
        if real.is_file() {
            proposal.grant(&real, Access::Write, "written");
        }
    } else {
        let why = if whole.is_dir() { "files were made or changed in it" } else { "written" };
        proposal.grant(whole, Access::Write, why);
    }
}

fn end(path: &Path) -> Option<PathBuf> {
    trail(path)?.pop()
}

fn temporary(proposal: &Proposal, path: &Path) -> Option<Temporary> {
    let both = [Temporary::Own, Temporary::Shared];
    both.into_iter().find(|one| proposal.place(*one).is_some_and(|place| path.starts_with(place)))
}

/// Only secrets matter: what is not there is not missed, and a directory above an entry is there.
fn look(proposal: &mut Proposal, path: &Path) {
    let Some(real) = end(path) else { return };
    if let Some(secret) = proposal.around.secret(&real) {
        proposal.secrets.entry(secret).or_insert(Access::Read);
    }
}
