//! A place to work in, a user to be, and the program.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use plenipo_testkit::{
    Fixture, OrdinaryUser, WorldReadable, as_user, find_tool, is_root, ordinary_user, requires,
    world_readable_copy,
};

/// The program as one user, with a home and a workspace of its own outside every temporary directory that profiles
/// grant.
pub(crate) struct Bench {
    pub(crate) fixture: Fixture,
    pub(crate) workspace: PathBuf,
    pub(crate) home: PathBuf,
    program: WorldReadable,
    user: Option<OrdinaryUser>,
}

impl Bench {
    /// As whoever runs the tests.
    pub(crate) fn new() -> Self {
        Self::of(Fixture::new(), None)
    }

    /// As an ordinary user.
    pub(crate) fn ordinary() -> Self {
        let user = ordinary_user();
        Self::of(Fixture::owned_by(user), Some(user))
    }

    fn of(fixture: Fixture, user: Option<OrdinaryUser>) -> Self {
        let workspace = fixture.directory("workspace");
        let home = fixture.directory("home");
        let program = world_readable_copy(env!("CARGO_BIN_EXE_plenipo"));
        Self { fixture, workspace, home, program, user }
    }

    pub(crate) fn program(&self) -> &std::path::Path {
        self.program.path()
    }

    /// The program with arguments, in the workspace, with a small environment.
    pub(crate) fn command<W: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = W>,
    ) -> Command {
        self.command_of(self.program.path().as_os_str().to_owned(), arguments)
    }

    pub(crate) fn command_of<W: AsRef<OsStr>>(
        &self,
        program: OsString,
        arguments: impl IntoIterator<Item = W>,
    ) -> Command {
        let mut words = vec![program];
        words.extend(arguments.into_iter().map(|word| word.as_ref().to_owned()));
        if let Some(user) = self.user {
            words = as_user(words, user.uid);
        }
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.workspace)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run<W: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = W>) -> Ran {
        Ran::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Runs with text on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        child.stdin.take().expect("a pipe").write_all(input).expect("input is taken");
        Ran::of(child.wait_with_output().expect("the program ends"))
    }

    /// A configuration file outside the workspace.
    pub(crate) fn configuration(&self, text: &str) -> String {
        self.fixture.file("plenipo.toml", text).display().to_string()
    }
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Both streams with paths of this run replaced, for snapshots.
    pub(crate) fn shown(&self, bench: &Bench) -> String {
        let text = format!("exit {:?}\n{}{}", self.code.unwrap_or(-1), self.stdout, self.stderr);
        let workspace = bench.workspace.display().to_string();
        let root = bench.fixture.path().display().to_string();
        text.replace(&workspace, "WORKSPACE").replace(&root, "FIXTURE")
    }
}

/// Runs a test as root and as an ordinary user; as an ordinary user only that half.
pub(crate) fn as_each_user(test: impl Fn(&Bench)) {
    if requires("root, for the half of the test that runs as root", is_root()) {
        test(&Bench::new());
    }
    test(&Bench::ordinary());
}

/// A python that every user can run, or a counted skip.
pub(crate) fn python() -> Option<String> {
    let python = find_tool("python3");
    requires("python3", python.is_some());
    python.map(|path| path.display().to_string())
}

/// A file of this crate's test data, or of a sibling's.
pub(crate) fn data(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(relative)
}
