//! Matches of deny globs, as they are when the command starts.
//!
//! What matches later is hidden in one case: all that is in a directory (`secrets/**`) is hidden by hiding the directory.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{Candidate, GlobBuilder, GlobSet};
use plenipo_policy::{Access, DenyGlob, Missing, Rule};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RawDirEntry};
use rustix::io::Errno;

use crate::error::{LaunchError, unreadable};

/// Matches of all globs of one launch.
const MAX_MATCHES: usize = 8192;
/// Not the host's inside the sandbox.
const OWN_TREES: [&str; 2] = ["/dev", "/proc"];
/// Directory entries looked at for all globs of one launch.
const MAX_ENTRIES: usize = 1_000_000;
/// Of names, read at once.
const BUFFER_BYTES: usize = 32 * 1024;

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
            .and_then(|pattern| GlobSet::new([pattern]))
            .map_err(|error| {
                let (pattern, origin) = (&glob.pattern, &glob.origin);
                LaunchError::unenforceable(format!("the glob {pattern} of {origin}: {error}"))
            })?;
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
    fn directory(&mut self, glob: &DenyGlob, matcher: &GlobSet) -> Result<(), LaunchError> {
        let mut pending = vec![(glob.base.clone(), 1usize)];
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        while let Some((directory, depth)) = pending.pop() {
            let own = OWN_TREES.iter().any(|own| directory == Path::new(own));
            if own || glob.max_depth.is_some_and(|limit| depth > limit.get()) {
                continue;
            }
            let mut below = Vec::new();
            self.entries(&directory, (glob, matcher), buffer.spare_capacity_mut(), &mut below)?;
            pending.extend(below.into_iter().map(|path| (path, depth + 1)));
        }
        Ok(())
    }

    /// Denies what matches in `directory`, and adds the directories that do not to `below`.
    fn entries(
        &mut self,
        directory: &Path,
        (glob, matcher): (&DenyGlob, &GlobSet),
        buffer: &mut [MaybeUninit<u8>],
        below: &mut Vec<PathBuf>,
    ) -> Result<(), LaunchError> {
        let failed = |error: Errno| unreadable(directory.to_path_buf(), error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match rustix::fs::open(directory, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            // What is in it may match, and can be opened by name or after a chmod(2) by its owner.
            Err(Errno::ACCESS | Errno::PERM) => return self.deny(directory.to_path_buf(), glob),
            Err(error) => return Err(failed(error)),
        };
        let mut place = Place::of(directory, &glob.base);
        let mut listing = RawDir::new(&opened, buffer);
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(too_many(glob, MAX_ENTRIES, "directory entries to look at"));
            }
            place.name(name);
            if matcher.is_match_candidate(&Candidate::from_bytes(place.relative())) {
                self.deny(place.path(), glob)?; // what is below a masked directory is masked with it
            } else if kind(&opened, &entry).map_err(failed)? == FileType::Directory {
                below.push(place.path());
            }
        }
        Ok(())
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

/// What an entry is; a file system that does not list that is asked.
fn kind(directory: &OwnedFd, entry: &RawDirEntry<'_>) -> Result<FileType, Errno> {
    if entry.file_type() != FileType::Unknown {
        return Ok(entry.file_type());
    }
    match rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode)),
        Err(Errno::NOENT) => Ok(FileType::Unknown), // gone meanwhile
        Err(error) => Err(error),
    }
}

/// The path of one entry after the other, in one piece of memory.
struct Place {
    bytes: Vec<u8>,
    directory: usize,
    base: usize,
}

impl Place {
    /// Entries of `directory`, which is `base` or below it.
    fn of(directory: &Path, base: &Path) -> Self {
        let with_separator = |path: &Path| {
            let mut bytes = path.as_os_str().as_bytes().to_vec();
            if bytes.last() != Some(&b'/') {
                bytes.push(b'/');
            }
            bytes
        };
        let bytes = with_separator(directory);
        Self { directory: bytes.len(), bytes, base: with_separator(base).len() }
    }

    fn name(&mut self, name: &CStr) {
        self.bytes.truncate(self.directory);
        self.bytes.extend_from_slice(name.to_bytes());
    }

    /// Below the base: what patterns are about.
    fn relative(&self) -> &[u8] {
        self.bytes.get(self.base..).unwrap_or_default()
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(&self.bytes))
    }
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
