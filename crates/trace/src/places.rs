//! What kind of place a path is: the system's, a package's, one for secrets, somebody's own.

use std::path::{Component, Path, PathBuf};

use crate::secrets;

/// What the profile `:minimal` reads; as in `plenipo-policy`.
const SYSTEM: [&str; 8] =
    ["/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw"];

/// Links that are followed one after the other; the kernel follows as many.
const MOST_LINKS: usize = 40;

/// What is known of a server beside its run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Surroundings {
    /// The user's home directory, without links.
    pub home: Option<PathBuf>,
    /// Where the server starts, without links.
    pub directory: PathBuf,
    /// `$TMPDIR`, without links.
    pub temporary: Option<PathBuf>,
    /// The words after its program.
    pub arguments: Vec<String>,
    /// Variables that its configuration sets.
    pub variables: Vec<(String, String)>,
}

impl Surroundings {
    /// Whether the directory is too much to be granted because of something in it: a home directory, what is above
    /// one, and what programs of all kinds keep their things in.
    pub(crate) fn is_broad(&self, directory: &Path) -> bool {
        const SHARED: [&str; 6] =
            [".config", ".cache", ".local", ".local/share", ".local/state", ".local/bin"];
        let depth =
            directory.components().filter(|part| matches!(part, Component::Normal(_))).count();
        let Some(home) = &self.home else { return depth < 2 };
        depth < 2
            || home.starts_with(directory)
            || SHARED.iter().any(|shared| home.join(shared) == directory)
            || directory.parent() == Some(Path::new("/home"))
    }

    /// The secret that the path is or is in.
    pub(crate) fn secret(&self, path: &Path) -> Option<PathBuf> {
        secrets::around(path, self.home.as_deref())
    }

    /// The secrets at known places that are there in a directory which is granted.
    pub(crate) fn secrets_in(&self, directory: &Path) -> impl Iterator<Item = PathBuf> {
        secrets::known_in(directory, self.home.as_deref())
    }

    /// How a profile writes the path: below the home directory from `~` on. `None` where it cannot be written.
    pub(crate) fn written(&self, path: &Path) -> Option<String> {
        // A pattern, which can only deny.
        self.shortened(path).filter(|text| !is_pattern(text))
    }

    /// How a profile writes what it denies: as a pattern of this path alone where it would be one of others.
    pub(crate) fn denied(&self, path: &Path) -> Option<String> {
        let text = self.shortened(path)?;
        if !is_pattern(&text) {
            return Some(text);
        }
        let mut escaped = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '*' | '?' | '[' | ']' | '{' | '}' | '\\' => escaped.extend(['[', character, ']']),
                _ => escaped.push(character),
            }
        }
        Some(escaped)
    }

    fn shortened(&self, path: &Path) -> Option<String> {
        let text = path.to_str()?;
        let below = self.home.as_deref().and_then(|home| path.strip_prefix(home).ok());
        match below.and_then(Path::to_str) {
            Some("") => Some("~".to_owned()),
            Some(below) => Some(format!("~/{below}")),
            None => Some(text.to_owned()),
        }
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', ']'])
}

/// Whether `:minimal` reads it.
pub(crate) fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// The directory that a file of a package, or of an interpreter, belongs to as a whole.
pub(crate) fn package(path: &Path, around: &Surroundings) -> Option<PathBuf> {
    let found = environment(path)
        .or_else(|| node_modules(path))
        .or_else(|| standard_library(path))
        .or_else(|| interpreter(path))?;
    (!around.is_broad(&found)).then_some(found)
}

/// A virtual environment of Python says so itself.
fn environment(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).find(|place| place.join("pyvenv.cfg").is_file()).map(Path::to_path_buf)
}

fn node_modules(path: &Path) -> Option<PathBuf> {
    let outermost = path.ancestors().filter(|place| place.ends_with("node_modules")).last()?;
    Some(outermost.to_path_buf())
}

/// `PREFIX/lib/python3.13`, and the packages in it; those of the user alone where the prefix is broad.
fn standard_library(path: &Path) -> Option<PathBuf> {
    let is_library = |place: &&Path| {
        let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("python3") && place.parent().is_some_and(|it| it.ends_with("lib"))
    };
    let library = path.ancestors().find(is_library)?;
    let prefix = library.parent()?.parent()?;
    let whole = prefix.join("bin/python3").exists() && !prefix.ends_with(".local");
    Some(if whole { prefix } else { library }.to_path_buf())
}

/// `PREFIX/bin/node` of an interpreter that is installed with its library.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let bin = path.parent().filter(|place| place.ends_with("bin"))?;
    let prefix = bin.parent()?;
    let is_whole = prefix.join("lib").is_dir() && !prefix.ends_with(".local");
    is_whole.then(|| prefix.to_path_buf())
}

/// What has to be there for a path to lead where it leads: each symbolic link on the way, and the end. `None` if there
/// is no end.
pub(crate) fn trail(path: &Path) -> Option<Vec<PathBuf>> {
    let mut links = Vec::new();
    let mut left: Vec<PathBuf> = vec![path.to_path_buf()];
    let mut at = PathBuf::from("/");
    while let Some(rest) = left.pop() {
        let mut parts = rest.components();
        let Some(part) = parts.next() else { continue };
        left.push(parts.as_path().to_path_buf());
        match part {
            Component::RootDir => at = PathBuf::from("/"),
            Component::ParentDir => {
                at.pop();
            }
            Component::Normal(name) => {
                let next = at.join(name);
                let kind = std::fs::symlink_metadata(&next).ok()?;
                if !kind.is_symlink() {
                    at = next;
                    continue;
                }
                if links.len() == MOST_LINKS {
                    return None;
                }
                left.push(std::fs::read_link(&next).ok()?);
                links.push(next);
            }
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    links.push(at);
    Some(links)
}
