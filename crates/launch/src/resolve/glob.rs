//! Matches of deny globs, as they are when the command starts.
//!
//! What matches later is hidden in one case: all that is in a directory (`secrets/**`) is hidden by hiding the directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use plenipo_policy::{Access, DenyGlob, Missing, Rule};

use crate::error::{LaunchError, unreadable};

/// Matches of all globs of one launch.
const MAX_MATCHES: usize = 8192;
/// Not the host's inside the sandbox.
const OWN_TREES: [&str; 2] = ["/dev", "/proc"];
/// Directory entries looked at for all globs of one launch.
const MAX_ENTRIES: usize = 1_000_000;

struct Scan {
    rules: Vec<Rule>,
    entries: usize,
}

/// Everything below the base, which is all of a pattern that can be written as a path.
const EVERYTHING: &str = "**";

/// One deny rule for each present match, and a note on each glob. If it has to hold for what appears later, `strict`, a glob
/// that cannot is refused.
pub(super) fn expand(
    globs: &[DenyGlob],
    cwd: &Path,
    strict: bool,
) -> Result<(Vec<Rule>, Vec<String>), LaunchError> {
    let mut notes = Vec::with_capacity(globs.len());
    let mut scan = Scan { rules: Vec::new(), entries: 0 };
    for glob in globs {
        let matcher = GlobBuilder::new(&glob.pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| {
                LaunchError::unenforceable(format!(
                    "the glob {} of {}: {error}",
                    glob.pattern, glob.origin
                ))
            })?
            .compile_matcher();
        let before = scan.rules.len();
        scan.directory(glob, &matcher)?;
        let matches = scan.rules.len() - before;
        match whole_directory(glob, cwd) {
            Some(directory) => {
                notes.push(note_on_whole(glob, directory));
                scan.deny(directory.to_path_buf(), glob)?;
            }
            None if strict => return Err(cannot_hold(glob)),
            None => notes.push(note(glob, matches)),
        }
    }
    Ok((scan.rules, notes))
}

/// A glob is not a rule about names: it says what is hidden now.
fn note(glob: &DenyGlob, matches: usize) -> String {
    let depth = match glob.max_depth {
        Some(limit) => format!("looked for {limit} directories deep"),
        None => "looked for at any depth".to_owned(),
    };
    let (origin, pattern, base) = (&glob.origin, &glob.pattern, glob.base.display());
    format!(
        "{origin}: {pattern} below {base} matches {matches} at the start and these are masked ({depth}); \
         a file that appears later is not"
    )
}

/// The directory that a glob hides with all there will ever be in it; not one that the command works in.
fn whole_directory<'a>(glob: &'a DenyGlob, cwd: &Path) -> Option<&'a Path> {
    let base = glob.base.as_path();
    let is_whole = glob.pattern == EVERYTHING && glob.max_depth.is_none();
    (is_whole && !cwd.starts_with(base) && base.is_dir()).then_some(base)
}

fn note_on_whole(glob: &DenyGlob, directory: &Path) -> String {
    let (origin, directory) = (&glob.origin, directory.display());
    format!("{origin}: {directory} is denied as a whole, and with it what appears in it later")
}

fn cannot_hold(glob: &DenyGlob) -> LaunchError {
    let (origin, pattern, base) = (&glob.origin, &glob.pattern, glob.base.display());
    LaunchError::unenforceable(format!(
        "hold {origin}: {pattern} below {base} for files that appear later, which sandbox.deny_glob asks for"
    ))
    .with_hint("only the whole content of a directory that is there can be held: `secrets/**`, or a rule on the directory")
}

impl Scan {
    fn directory(&mut self, glob: &DenyGlob, matcher: &GlobMatcher) -> Result<(), LaunchError> {
        let mut pending = vec![(glob.base.clone(), 1usize)];
        while let Some((directory, depth)) = pending.pop() {
            let own = OWN_TREES.iter().any(|own| directory == Path::new(own));
            if own || glob.max_depth.is_some_and(|limit| depth > limit.get()) {
                continue;
            }
            for (path, is_directory) in self.entries_of(&directory, glob)? {
                if is_match(matcher, &glob.base, &path) {
                    self.deny(path, glob)?; // what is below a masked directory is masked with it
                } else if is_directory {
                    pending.push((path, depth + 1));
                }
            }
        }
        Ok(())
    }

    fn entries_of(
        &mut self,
        directory: &Path,
        glob: &DenyGlob,
    ) -> Result<Vec<(PathBuf, bool)>, LaunchError> {
        let listing = match std::fs::read_dir(directory) {
            Ok(listing) => listing,
            Err(error) if is_gone(&error) => return Ok(Vec::new()),
            // What is in it may match, and can be opened by name or after a chmod(2) by its owner.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                self.deny(directory.to_path_buf(), glob)?;
                return Ok(Vec::new());
            }
            Err(error) => return Err(unreadable(directory.to_path_buf(), error)),
        };
        let mut entries = Vec::new();
        for entry in listing {
            let entry = entry.map_err(|error| unreadable(directory.to_path_buf(), error))?;
            let kind =
                entry.file_type().map_err(|error| unreadable(directory.to_path_buf(), error))?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(too_many(glob, MAX_ENTRIES, "directory entries to look at"));
            }
            entries.push((entry.path(), kind.is_dir()));
        }
        Ok(entries)
    }

    fn deny(&mut self, path: PathBuf, glob: &DenyGlob) -> Result<(), LaunchError> {
        if self.rules.len() >= MAX_MATCHES {
            return Err(too_many(glob, MAX_MATCHES, "matches"));
        }
        let origin = format!("{} ({})", glob.origin, glob.pattern);
        let rule = Rule::new(path, Access::Deny).with_missing(Missing::Skip).with_origin(origin);
        self.rules.push(rule);
        Ok(())
    }
}

fn is_match(matcher: &GlobMatcher, base: &Path, path: &Path) -> bool {
    let relative = path.strip_prefix(base).unwrap_or(path);
    matcher.is_match(OsStr::from_bytes(relative.as_os_str().as_bytes()))
}

fn is_gone(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn too_many(glob: &DenyGlob, limit: usize, what: &str) -> LaunchError {
    LaunchError::unenforceable(format!(
        "the glob {} below {} has more than {limit} {what}",
        glob.pattern,
        glob.base.display()
    ))
    .with_hint(
        "make the glob's fixed prefix longer, set glob_scan_max_depth, or deny the directory",
    )
}
