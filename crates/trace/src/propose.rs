//! From what a run touched to the smallest profile that lets it happen again.

mod gather;
mod named;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use plenipo_policy::Access;

use crate::places::{Surroundings, is_system};
use crate::secrets::Search;
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
    /// Touched, and not to be written in a profile.
    left_out: BTreeSet<PathBuf>,
    /// Granted, and perhaps with secrets that are not denied.
    unsearched: BTreeSet<PathBuf>,
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
            left_out: BTreeSet::new(),
            unsearched: BTreeSet::new(),
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
        proposal.deny(Search::default());
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

    /// What is granted, and may hold secrets that the profile does not deny: there was too much in it to look at, or a
    /// profile cannot name them.
    pub fn unsearched(&self) -> impl Iterator<Item = &Path> {
        self.unsearched.iter().map(PathBuf::as_path)
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
        if let Some(secret) = self.around.secret(path) {
            self.secrets.entry(secret).or_insert(access);
            return;
        }
        if access == Access::Read && is_system(path) {
            self.minimal = true;
            return;
        }
        if self.around.written(path).is_none() {
            self.left_out.insert(path.to_path_buf());
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

    /// Without what says nothing more.
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
    }

    /// The secrets in every place that is granted, whatever the profile calls it.
    fn deny(&mut self, mut search: Search) {
        let system = self.minimal.then(|| PathBuf::from("/etc"));
        let temporary =
            self.temporary.iter().filter_map(|it| self.place(*it)).map(Path::to_path_buf);
        let places: Vec<_> =
            system.into_iter().chain(self.granted.keys().cloned()).chain(temporary).collect();
        let reached = self
            .secrets
            .keys()
            .filter(|path| self.covers(path, Access::Read) || (self.minimal && is_system(path)));
        let mut denied: BTreeSet<PathBuf> = reached.cloned().collect();
        for place in places {
            denied.extend(self.around.secrets_in(&place));
            if !search.below(&place) {
                self.unsearched.insert(place);
            }
        }
        denied.append(&mut search.found);
        for path in &denied {
            let is_inside = path.ancestors().skip(1).any(|above| denied.contains(above));
            if self.around.denied(path).is_none() {
                self.unsearched.insert(path.clone());
            } else if !is_inside {
                self.denied.insert(path.clone());
            }
        }
        self.incomplete |= !self.unsearched.is_empty();
        self.temporary_by_name();
    }

    /// A profile may not speak of what is in `$TMPDIR`, which is another one tomorrow: the directory itself is granted
    /// where there is such.
    fn temporary_by_name(&mut self) {
        let Some(own) = self.around.temporary.clone() else { return };
        let spoken_of = self.denied.iter().chain(self.granted.keys()).chain(&self.around.home);
        let is_empty = !spoken_of.chain([&self.around.directory]).any(|it| it.starts_with(&own));
        if is_empty
            || self.around.written(&own).is_none()
            || !self.temporary.remove(&Temporary::Own)
        {
            return;
        }
        if own == Path::new("/tmp") {
            self.temporary.insert(Temporary::Shared);
        } else {
            self.granted
                .insert(own, (Access::Write, "temporary files; it is `$TMPDIR`".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests;
