//! What the configuration of a server names.

use std::path::{Path, PathBuf};

use plenipo_policy::Access;

use super::Proposal;
use crate::places::is_system;

impl Proposal {
    /// The directory it starts in, and what its arguments and variables name.
    pub(super) fn directories_that_are_named(&mut self) {
        let directory = self.around.directory.clone();
        let why = match self.around.is_broad(&directory) {
            true => "the directory it starts in, AND IT HOLDS MUCH ELSE: set `cwd` of the server",
            false => "the directory it starts in",
        };
        self.grant(&directory, Access::Read, why);
        for word in self.around.arguments.clone() {
            self.secrets_that_are_named(&word);
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

    /// Files as well, wherever in the word: `--key=PATH`, `-iPATH`, `~/PATH`, `name:PATH,PATH`, `.env`.
    fn secrets_that_are_named(&mut self, word: &str) {
        let mut pieces: Vec<&str> = word.split(['=', ',', ':', ';', '@']).collect();
        pieces.push(word);
        if word.starts_with('-') {
            pieces.extend(word.find('/').and_then(|start| word.get(start..)));
        }
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            let home = self.around.home.as_deref();
            let below = piece.strip_prefix("~/").and_then(|below| Some(home?.join(below)));
            let written = below.unwrap_or_else(|| self.around.directory.join(piece));
            let real = std::fs::canonicalize(&written).ok();
            let is_made = piece.contains('/') && written.parent().is_some_and(Path::is_dir);
            let is_path = real.is_some() || is_made;
            for path in std::iter::once(written).chain(real).filter(|_| is_path) {
                if let Some(secret) = self.around.secret(&path) {
                    self.secrets.entry(secret).or_insert(Access::Read);
                }
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
}
