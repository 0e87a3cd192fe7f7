//! A directory tree outside `/tmp`, reachable by every user, gone when dropped.
//!
//! Outside `/tmp`, because profiles give `/tmp` away (`slash_tmp`) and a test about a refused write
//! would then prove nothing.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{Deadline, OrdinaryUser};

/// A tree under `/var/tmp/plenipo-…`, mode 0755, removed on drop even when it holds read-only
/// directories. Everything made through it belongs to the fixture's owner.
#[derive(Debug)]
pub struct Fixture {
    directory: Option<TempDir>,
    path: PathBuf,
    owner: Option<OrdinaryUser>,
}

impl Fixture {
    /// An empty tree that belongs to whoever runs the test.
    ///
    /// # Panics
    /// When `/var/tmp` cannot be written.
    #[must_use]
    pub fn new() -> Self {
        Self::create(None)
    }

    /// An empty tree that belongs to `owner`. Only root can give trees away; for an ordinary runner
    /// `owner` has to be the runner.
    ///
    /// # Panics
    /// When `/var/tmp` cannot be written or the tree cannot be given to `owner`.
    #[must_use]
    pub fn owned_by(owner: OrdinaryUser) -> Self {
        Self::create(Some(owner))
    }

    fn create(owner: Option<OrdinaryUser>) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("plenipo-")
            .tempdir_in("/var/tmp")
            .expect("a directory under /var/tmp");
        let path = directory.path().canonicalize().expect("the fixture's own path");
        let fixture = Self { directory: Some(directory), path, owner };
        fixture.finish(&fixture.path, 0o755);
        fixture
    }

    /// The root of the tree: absolute, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path below the root; nothing is created.
    #[must_use]
    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// Makes a directory (mode 0755) with its parents.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn directory(&self, relative: impl AsRef<Path>) -> PathBuf {
        let relative = relative.as_ref();
        let mut path = self.path.clone();
        for part in relative {
            path.push(part);
            if !path.is_dir() {
                fs::create_dir(&path).unwrap_or_else(|error| panic!("mkdir {path:?}: {error}"));
                self.finish(&path, 0o755);
            }
        }
        path
    }

    /// Writes a file (mode 0644), making its parents.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(&self, relative: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.place(relative.as_ref());
        fs::write(&path, contents).unwrap_or_else(|error| panic!("write {path:?}: {error}"));
        self.finish(&path, 0o644);
        path
    }

    /// Writes a program or script (mode 0755), making its parents.
    ///
    /// The bytes are written by a child process: a descriptor open for writing here could leak into
    /// a process that another test thread is just forking, and executing the file would then fail
    /// with "text file busy".
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn executable(&self, relative: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.place(relative.as_ref());
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec cat >\"$1\"", "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("/bin/sh");
        child.stdin.take().expect("piped").write_all(contents.as_ref()).expect("write to cat");
        assert!(child.wait().expect("cat").success(), "write {}", path.display());
        self.finish(&path, 0o755);
        path
    }

    /// Makes a symbolic link at `relative` that says `target` (kept as given).
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn symlink(&self, relative: impl AsRef<Path>, target: impl AsRef<Path>) -> PathBuf {
        let path = self.place(relative.as_ref());
        symlink(target, &path).unwrap_or_else(|error| panic!("symlink {path:?}: {error}"));
        if let Some(owner) = self.owner {
            lchown(&path, Some(owner.uid), Some(owner.gid)).expect("lchown");
        }
        path
    }

    /// Sets the permission bits of something in the tree.
    ///
    /// # Panics
    /// When that fails.
    pub fn set_mode(&self, relative: impl AsRef<Path>, mode: u32) {
        let path = self.join(relative);
        fs::set_permissions(&path, Permissions::from_mode(mode))
            .unwrap_or_else(|error| panic!("chmod {path:?}: {error}"));
    }

    /// The text of a file, or `None` when there is no such file.
    ///
    /// # Panics
    /// When it exists but cannot be read as UTF-8.
    #[must_use]
    pub fn read(&self, relative: impl AsRef<Path>) -> Option<String> {
        let path = self.join(relative);
        match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => panic!("read {path:?}: {error}"),
        }
    }

    /// Whether something is there, a dangling link included.
    #[must_use]
    pub fn exists(&self, relative: impl AsRef<Path>) -> bool {
        self.join(relative).symlink_metadata().is_ok()
    }

    /// The names in a directory of the tree, sorted.
    ///
    /// # Panics
    /// When it cannot be listed.
    #[must_use]
    pub fn names(&self, relative: impl AsRef<Path>) -> Vec<OsString> {
        let path = self.join(relative);
        let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("list {path:?}: {error}"));
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    fn place(&self, relative: &Path) -> PathBuf {
        if let Some(parent) = relative.parent() {
            self.directory(parent);
        }
        self.join(relative)
    }

    fn finish(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod in a fixture");
        if let Some(owner) = self.owner {
            chown(path, Some(owner.uid), Some(owner.gid))
                .unwrap_or_else(|error| panic!("chown {path:?} to {}: {error}", owner.uid));
        }
    }
}

/// More than a server is given.
const LAST_WORDS: Duration = Duration::from_secs(10);

impl Default for Fixture {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        let path = directory.keep();
        let mut removed = Ok(());
        // A server that is still ending may write its last words here.
        Deadline::poll_until(LAST_WORDS, || {
            make_removable(&path);
            removed = fs::remove_dir_all(&path);
            removed.is_ok() || std::thread::panicking()
        });
        if let Err(error) = removed
            && !std::thread::panicking()
        {
            panic!("a fixture could not be removed: {error}");
        }
    }
}

/// Gives every directory its owner's write and search bits back, so that its content can go.
fn make_removable(path: &Path) {
    if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        fs::set_permissions(path, Permissions::from_mode(0o755)).ok();
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            make_removable(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::{as_user, is_root, ordinary_user, world_readable_copy};

    #[test]
    fn a_read_only_tree_is_removed_on_drop() {
        let fixture = Fixture::new();
        fixture.file("locked/inner/file", "x");
        fixture.set_mode("locked/inner", 0o500);
        fixture.set_mode("locked", 0o000);
        let path = fixture.path().to_owned();
        assert!(!path.starts_with("/tmp"));
        drop(fixture);
        assert!(!path.exists());
    }

    /// Root removes anything; the bits matter to an ordinary user.
    #[test]
    fn an_ordinary_user_removes_a_read_only_tree_too() {
        let copy = world_readable_copy(std::env::current_exe().unwrap());
        let name = "fixture::tests::a_read_only_tree_is_removed_on_drop";
        let argv = [copy.path().as_os_str(), name.as_ref(), "--exact".as_ref()];
        let argv = as_user(argv, ordinary_user().uid);
        let (program, rest) = argv.split_first().unwrap();
        let output = Command::new(program).args(rest).current_dir("/").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    }

    #[test]
    fn everything_made_belongs_to_the_owner() {
        let owner = ordinary_user();
        let fixture = Fixture::owned_by(owner);
        let file = fixture.file("a/b/c", "x");
        for path in [fixture.path(), &fixture.join("a/b"), &file] {
            assert_eq!(path.metadata().unwrap().uid(), owner.uid);
        }
        assert_eq!(is_root(), owner.uid != rustix::process::getuid().as_raw());
    }

    #[test]
    fn a_script_runs_at_once() {
        let fixture = Fixture::new();
        let script = fixture.executable("bin/hello", "#!/bin/sh\necho hello\n");
        let output = Command::new(script).output().unwrap();
        assert_eq!(output.stdout, b"hello\n");
    }
}
