//! From what a run touched to the smallest profile that lets it happen again.

mod gather;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plenipo_policy::Access;

use crate::places::{Surroundings, is_system};
use crate::{Record, Survey};

use gather::gather;

/// Why something is granted or not, for a person.
type Why = String;

/// A profile, and what is left to a person's judgement.
#[derive(Debug, Clone)]
pub struct Proposal {
    name: String,
    around: Surroundings,
    /// Whether something of the system is needed.
    minimal: bool,
    /// Directories for temporary files that are written to.
    temporary: BTreeSet<Temporary>,
    granted: BTreeMap<PathBuf, (Access, Why)>,
    denied: BTreeSet<PathBuf>,
    /// Touched or named, and not granted.
    unsure: BTreeMap<PathBuf, (Access, Why)>,
    secrets: BTreeMap<PathBuf, Access>,
    internet: BTreeSet<String>,
    sockets: BTreeSet<String>,
    incomplete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Temporary {
    /// `$TMPDIR`.
    Own,
    /// `/tmp`.
    Shared,
}

impl Proposal {
    /// Works it out. Looks at the files that were touched: where links lead, what is a package.
    #[must_use]
    pub fn new(name: &str, survey: &Survey, around: Surroundings) -> Self {
        let mut proposal = Self {
            name: name.to_owned(),
            around,
            minimal: false,
            temporary: BTreeSet::new(),
            granted: BTreeMap::new(),
            denied: BTreeSet::new(),
            unsure: BTreeMap::new(),
            secrets: BTreeMap::new(),
            internet: BTreeSet::new(),
            sockets: BTreeSet::new(),
            incomplete: survey.is_incomplete(),
        };
        for record in survey.records() {
            match record {
                Record::Internet(address) => {
                    proposal.internet.insert(address.clone());
                }
                Record::Socket(path) if Path::new(path).exists() => {
                    proposal.sockets.insert(path.clone());
                }
                _ => {}
            }
        }
        gather(&mut proposal, survey);
        proposal.directories_that_are_named();
        proposal.tidy();
        proposal
    }

    /// Name of the profile.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Secrets that were touched, or named. None of them is granted.
    pub fn secrets(&self) -> impl Iterator<Item = &Path> {
        self.secrets.keys().map(PathBuf::as_path)
    }

    /// Whether the run reached or took an internet address; then the network is on.
    #[must_use]
    pub fn network(&self) -> bool {
        !self.internet.is_empty()
    }

    /// Sockets of this machine that the run connected to. No profile can allow that.
    pub fn sockets(&self) -> impl Iterator<Item = &str> {
        self.sockets.iter().map(String::as_str)
    }

    /// Whether the profile may lack something that the run touched.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    fn grant(&mut self, path: &Path, access: Access, why: &str) {
        if access == Access::Read && is_system(path) {
            self.minimal = true;
            return;
        }
        if self.around.written(path).is_none() {
            self.incomplete = true;
            return;
        }
        let granted =
            self.granted.entry(path.to_path_buf()).or_insert_with(|| (access, why.to_owned()));
        if access == Access::Write && granted.0 != Access::Write {
            *granted = (access, why.to_owned());
        }
    }

    fn doubt(&mut self, path: &Path, access: Access, why: &str) {
        self.unsure.entry(path.to_path_buf()).or_insert_with(|| (access, why.to_owned()));
    }

    /// Whether something that is granted covers it.
    fn covers(&self, path: &Path, access: Access) -> bool {
        let enough = |granted: &Access| *granted == Access::Write || access == Access::Read;
        let temporary = self
            .temporary
            .iter()
            .any(|temporary| self.place(*temporary).is_some_and(|place| path.starts_with(place)));
        temporary
            || path
                .ancestors()
                .any(|above| self.granted.get(above).is_some_and(|(granted, _)| enough(granted)))
    }

    fn place(&self, temporary: Temporary) -> Option<&Path> {
        match temporary {
            Temporary::Own => self.around.temporary.as_deref(),
            Temporary::Shared => Some(Path::new("/tmp")),
        }
    }

    /// The directory it starts in, and what its arguments and variables name.
    fn directories_that_are_named(&mut self) {
        let directory = self.around.directory.clone();
        let why = match self.around.is_broad(&directory) {
            true => "the directory it starts in, AND IT HOLDS MUCH ELSE: set `cwd` of the server",
            false => "the directory it starts in",
        };
        self.grant(&directory, Access::Read, why);
        for word in self.around.arguments.clone() {
            let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            let Some(path) = self.existing(value) else { continue };
            if path.is_dir() && !is_system(&path) {
                self.named(&path, "an argument names it", true);
            }
        }
        for (name, value) in self.around.variables.clone() {
            if let Some(path) = self.existing(&value) {
                self.named(&path, &format!("`{name}` names it"), false);
            }
        }
    }

    /// A path that is there, or is to be made in a directory that is there. Directly below `/` nothing is made: a secret
    /// that begins with `/` is no path.
    fn existing(&self, word: &str) -> Option<PathBuf> {
        let path = Path::new(word);
        let plain = path.is_absolute() || (word.contains('/') && !word.contains("://"));
        let path = self.around.directory.join(path);
        let above = path.parent()?;
        if !plain {
            return None;
        }
        let real = std::fs::canonicalize(&path).ok();
        let made = || Some(std::fs::canonicalize(above).ok()?.join(path.file_name()?));
        real.or_else(|| made().filter(|_| above.parent().is_some()))
    }

    fn named(&mut self, path: &Path, why: &str, is_argument: bool) {
        if let Some(secret) = self.around.secret(path) {
            self.secrets.entry(secret).or_insert(Access::Read);
            return;
        }
        if is_argument {
            let much = if self.around.is_broad(path) { ", AND IT HOLDS MUCH ELSE" } else { "" };
            self.grant(path, Access::Read, &format!("{why}{much}"));
        }
        if !self.covers(path, Access::Write) {
            let why = format!("{why}; nothing was written there in this run");
            self.doubt(path, Access::Write, &why);
        }
    }

    /// What says nothing more, and what must not be in it.
    fn tidy(&mut self) {
        let granted = std::mem::take(&mut self.granted);
        for (path, (access, why)) in granted {
            // Sorted: what is above comes first.
            if !self.covers(&path, access) {
                self.granted.insert(path, (access, why));
            }
        }
        let mut unsure = std::mem::take(&mut self.unsure);
        unsure.retain(|path, (access, _)| !self.covers(path, *access));
        self.unsure = unsure;
        let around = self.around.clone();
        let inside = self.granted.keys().flat_map(|path| around.secrets_in(path));
        let reached = self
            .secrets
            .keys()
            .filter(|path| self.covers(path, Access::Read) || (self.minimal && is_system(path)));
        self.denied = inside.chain(reached.cloned()).collect();
    }
}

#[cfg(test)]
mod tests;
