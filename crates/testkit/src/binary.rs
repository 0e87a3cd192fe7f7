//! Programs that tests run: the built binary, tools on `PATH`, prepared peers.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fixture;

/// The path of a binary of this workspace, in the profile the test was built with.
///
/// Taken from `CARGO_BIN_EXE_<name>` or `NEXTEST_BIN_EXE_<name>` when the run sets them, else from
/// beside the running test executable. `cargo xtask test` builds it before the tests.
///
/// # Panics
/// When it was not built.
#[must_use]
pub fn built_binary(name: &str) -> PathBuf {
    let given = ["CARGO_BIN_EXE_", "NEXTEST_BIN_EXE_"]
        .into_iter()
        .find_map(|prefix| env::var_os(format!("{prefix}{name}")));
    let path = given.map_or_else(|| beside_this_test(name), PathBuf::from);
    assert!(path.is_file(), "{} is missing: run `cargo build -p {name}` first", path.display());
    path
}

/// A test executable is `<profile>/deps/<name>-<hash>`; a doctest's lies elsewhere.
fn beside_this_test(name: &str) -> PathBuf {
    let test = env::current_exe().expect("the test's own path");
    let directory = test.parent().expect("a directory");
    let profile = if directory.ends_with("deps") { directory.parent() } else { Some(directory) };
    profile.expect("a target directory").join(name)
}

/// A copy of a program that every user may run; removed on drop.
#[derive(Debug)]
pub struct WorldReadable {
    path: PathBuf,
    _fixture: Fixture,
}

impl WorldReadable {
    /// Where the copy is: absolute, mode 0755, in a directory of mode 0755.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for WorldReadable {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// Copies a program, under its own name, to where every user may run it. The copy belongs to the
/// runner of the test, so a launcher check by another user sees a foreign owner unless that is root.
///
/// # Panics
/// When it cannot be copied.
#[must_use]
pub fn world_readable_copy(program: impl AsRef<Path>) -> WorldReadable {
    let program = program.as_ref();
    let fixture = Fixture::new();
    let path = fixture.join(program.file_name().expect("a program has a name"));
    // By a child, for the reason given at `Fixture::executable`.
    let status = Command::new("/bin/cp").arg(program).arg(&path).status().expect("/bin/cp");
    assert!(status.success(), "copy {} to {}", program.display(), path.display());
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("chmod of a copy");
    WorldReadable { path, _fixture: fixture }
}

/// A program from `/usr/bin` or `/bin`, where every user can reach it, else from `PATH`.
#[must_use]
pub fn find_tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    ["/usr/bin", "/bin"]
        .map(PathBuf::from)
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_absolute() && candidate.is_file())
}

/// Where `cargo xtask test --peers` put real MCP servers (`python/`, `node/`): `PLENIPO_PEERS`, or
/// `None` when the run has no peers.
#[must_use]
pub fn peers() -> Option<PathBuf> {
    env::var_os("PLENIPO_PEERS").map(PathBuf::from).filter(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{as_user, ordinary_user};

    #[test]
    fn a_copy_runs_as_an_ordinary_user_and_goes_away() {
        let copy = world_readable_copy("/bin/echo");
        let argv = as_user([copy.path().as_os_str(), "hi".as_ref()], ordinary_user().uid);
        let (program, rest) = argv.split_first().unwrap();
        assert_eq!(Command::new(program).args(rest).output().unwrap().stdout, b"hi\n");
        let path = copy.path().to_owned();
        drop(copy);
        assert!(!path.exists());
    }

    #[test]
    fn tools_are_found_where_every_user_can_run_them() {
        assert_eq!(find_tool("sh"), Some("/usr/bin/sh".into()));
        assert!(find_tool("no-such-program-anywhere").is_none());
    }
}
