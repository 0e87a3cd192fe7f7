//! Git repositories whose parts lie elsewhere: linked worktrees, submodules, separate git directories, hooks and included
//! configuration in the working tree.
//!
//! A `.git` *file* names the git directory, and that may name a common directory; hooks and configuration in either run
//! on the host at the next `git status`. What these files say is only ever a reason to make a writable place read-only:
//! a pointer that leads nowhere, or to something that is no git directory, grants nothing. Sources: gitrepository-layout(5),
//! git-config(1), gitmodules(5).

mod config;
mod read;

use std::path::{Component, Path, PathBuf};

use plenipo_policy::{Access, Rule};

use super::Resolved;
use crate::error::LaunchError;
use crate::placeholder::is_placeholder;
use crate::tree::{Kind, Source};

use config::Setting;
use read::{read_small, text_path};

/// Working trees looked at in one launch, submodules and linked worktrees included.
const MAX_TREES: usize = 4096;
/// Nesting of configuration files that include each other; git's own limit.
const MAX_INCLUDES: usize = 10;

/// Adds what the repositories at `roots` keep elsewhere in writable places. `roots` are the writable directories.
pub(super) fn protect(resolved: &mut Resolved, roots: &[PathBuf]) -> Result<(), LaunchError> {
    let mut search = Search { resolved, roots, pending: roots.to_vec(), seen: Vec::new() };
    while let Some(tree) = search.pending.pop() {
        if search.seen.contains(&tree) {
            continue;
        }
        if search.seen.len() >= MAX_TREES {
            let message = format!("there are more than {MAX_TREES} git working trees");
            return Err(LaunchError::unenforceable(message));
        }
        search.seen.push(tree.clone());
        search.working_tree(&tree)?;
    }
    Ok(())
}

struct Search<'a> {
    resolved: &'a mut Resolved,
    roots: &'a [PathBuf],
    pending: Vec<PathBuf>,
    seen: Vec<PathBuf>,
}

impl Search<'_> {
    fn working_tree(&mut self, tree: &Path) -> Result<(), LaunchError> {
        let link = tree.join(".git");
        let Ok(metadata) = std::fs::symlink_metadata(&link) else { return Ok(()) };
        let git_directory = if metadata.is_dir() && !is_placeholder(&link, &metadata) {
            Some(link)
        } else if metadata.is_file() {
            read_small(&link)?.and_then(|text| pointer(&text)).map(|target| tree.join(target))
        } else {
            None
        };
        let Some(git_directory) = git_directory else { return Ok(()) };
        let Some(git_directory) = self.read_only(&git_directory, tree, "git directory")? else {
            return Ok(());
        };
        self.git_directory(&git_directory, tree)?;
        self.submodules(tree)
    }

    fn git_directory(&mut self, directory: &Path, tree: &Path) -> Result<(), LaunchError> {
        let mut common = directory.to_path_buf();
        if let Some(text) = read_small(&directory.join("commondir"))? {
            let target = directory.join(text_path(first_line(&text)));
            match self.read_only(&target, tree, "common git directory")? {
                Some(real) => common = real,
                None => return Ok(()),
            }
        }
        self.configuration(&common.join("config"), tree, 0)?;
        self.configuration(&directory.join("config.worktree"), tree, 0)?;
        self.linked_worktrees(&common)
    }

    /// Working trees that the repository knows of: their pointers count only where a command could rewrite them.
    fn linked_worktrees(&mut self, common: &Path) -> Result<(), LaunchError> {
        let Ok(listing) = std::fs::read_dir(common.join("worktrees")) else { return Ok(()) };
        for entry in listing.flatten() {
            let Some(text) = read_small(&entry.path().join("gitdir"))? else { continue };
            let link = entry.path().join(text_path(first_line(&text)));
            if let Some(tree) = link.parent().filter(|_| link.exists()) {
                self.nested_tree(tree)?; // one that was removed is looked into by nobody
            }
        }
        Ok(())
    }

    fn submodules(&mut self, tree: &Path) -> Result<(), LaunchError> {
        let list = tree.join(".gitmodules");
        let Some(text) = read_small(&list)? else { return Ok(()) };
        self.read_only(&list, tree, "list of submodules")?;
        for setting in config::settings(&text) {
            let Setting::SubmodulePath(path) = setting else { continue };
            let path = text_path(&path);
            if path.components().all(|part| matches!(part, Component::Normal(_))) {
                self.submodule(&tree.join(path))?;
            }
        }
        Ok(())
    }

    /// Without a `.git` it is an empty directory, and stays one: with an empty `.git` in it, `git status` would fail above.
    fn submodule(&mut self, tree: &Path) -> Result<(), LaunchError> {
        if std::fs::symlink_metadata(tree.join(".git")).is_ok() {
            return self.nested_tree(tree);
        }
        let is_filled = std::fs::read_dir(tree).is_ok_and(|mut entries| entries.next().is_some());
        if is_filled {
            let note = format!("the submodule {} is no working tree", tree.display());
            self.resolved.notes.push(note);
            return Ok(());
        }
        let walked = self.resolved.looks.walk(tree)?;
        if walked.links.is_empty() {
            self.read_only(tree, tree, "absent submodule")?;
        }
        Ok(())
    }

    /// A working tree in a writable place: its `.git` stays what it is.
    fn nested_tree(&mut self, tree: &Path) -> Result<(), LaunchError> {
        let walked = self.resolved.looks.walk(tree)?;
        let writable = self.resolved.tree.access(&walked.real) == Some(Access::Write);
        if !walked.links.is_empty() || !writable {
            return Ok(()); // git does not follow links to a submodule either
        }
        let link = walked.real.join(".git");
        if std::fs::symlink_metadata(&link).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(LaunchError::unenforceable(format!(
                "{} is a symbolic link, which a sandboxed command could replace",
                link.display()
            ))
            .with_hint("put the directory itself there instead of a link"));
        }
        self.read_only(&link, tree, "git pointer")?;
        self.pending.push(walked.real);
        Ok(())
    }

    fn configuration(&mut self, file: &Path, tree: &Path, depth: usize) -> Result<(), LaunchError> {
        let Some(text) = read_small(file)? else { return Ok(()) };
        for setting in config::settings(&text) {
            let (value, from, what) = match setting {
                Setting::HooksPath(value) => (value, Some(tree), "git hooks"),
                Setting::Include(value) => (value, file.parent(), "git configuration"),
                Setting::SubmodulePath(_) => continue,
            };
            if value.starts_with(b"~") || value.starts_with(b"%(prefix)") {
                let shown = String::from_utf8_lossy(&value).into_owned();
                let note = format!("{what} at {shown} ({}) are not looked at", file.display());
                self.resolved.notes.push(note);
                continue;
            }
            let path = from.unwrap_or(tree).join(text_path(&value));
            let real = self.read_only(&path, tree, what)?;
            if let (true, Some(real)) = (what == "git configuration", real)
                && depth < MAX_INCLUDES
            {
                self.configuration(&real, tree, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Makes `place` read-only if it is writable, and keeps it from coming into being. Returns its real path if it exists.
    fn read_only(
        &mut self,
        place: &Path,
        tree: &Path,
        what: &str,
    ) -> Result<Option<PathBuf>, LaunchError> {
        let walked = self.resolved.looks.walk(place)?;
        let origin = format!("{what} of {}", tree.display());
        self.resolved.remember_links(&walked, place, &origin);
        let real = walked.found.map(|_| walked.real.clone());
        if self.resolved.tree.access(&walked.real) != Some(Access::Write) {
            return Ok(real);
        }
        if self.roots.contains(&walked.real) {
            // A profile that names a git directory gives it away.
            let granted_as_such = walked.real == tree.join(".git")
                || (walked.real != tree && is_git_directory(&walked.real));
            return if granted_as_such { Ok(real) } else { Err(is_root(&walked.real, &origin)) };
        }
        let rule = Rule::new(place, Access::Read).with_origin(&origin);
        let directory = walked.found.is_some_and(|found| found.kind == Kind::Directory);
        self.resolved.place(&rule, walked, Source::ProtectedName);
        Ok(real.filter(|_| directory || what == "git configuration"))
    }
}

fn is_root(root: &Path, origin: &str) -> LaunchError {
    let message = format!("the {origin} is the writable directory {} itself", root.display());
    LaunchError::unenforceable(message)
        .with_hint("what a command writes there would run outside the sandbox")
}

/// As git tells one: gitrepository-layout(5).
fn is_git_directory(place: &Path) -> bool {
    let is_there = |name: &str| std::fs::symlink_metadata(place.join(name)).is_ok();
    is_there("HEAD") && (is_there("commondir") || (is_there("objects") && is_there("refs")))
}

/// The target that a `.git` file names.
fn pointer(text: &[u8]) -> Option<PathBuf> {
    let target = text.strip_prefix(b"gitdir: ")?;
    let end = target.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    target.get(..=end).map(text_path)
}

fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_one_prefix_and_a_path() {
        assert_eq!(pointer(b"gitdir: ../a b\n"), Some("../a b".into()));
        assert_eq!(pointer(b"gitdir: /x\r\n\n"), Some("/x".into()));
        for text in [&b"gitdir:"[..], b"gitdir: ", b"gitdir: \n", b"x gitdir: /y", b""] {
            assert_eq!(pointer(text), None, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(first_line(b"../..\n/etc"), b"../..");
    }
}
