//! A place to run sandboxed commands in, as root or as an ordinary user.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plenipo_testkit::{
    Fixture, OrdinaryUser, WorldReadable, as_user, is_root, ordinary_user, requires,
    world_readable_copy,
};
use serde_json::{Value, json};

/// As whom a launch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Root,
    User,
}

impl Who {
    /// Both, or just the user with a named skip where the tests do not run as root.
    pub(crate) fn everybody() -> Vec<Self> {
        if requires("root, for the half that runs as root", is_root()) {
            vec![Self::Root, Self::User]
        } else {
            vec![Self::User]
        }
    }

    pub(crate) fn ids(self) -> OrdinaryUser {
        match self {
            Self::Root => OrdinaryUser { uid: 0, gid: 0 },
            Self::User => ordinary_user(),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
        }
    }
}

/// The example launcher, copied to where every user can run it; one copy for all stages that live.
fn launcher() -> Arc<WorldReadable> {
    static COPY: Mutex<Weak<WorldReadable>> = Mutex::new(Weak::new());
    let mut copy = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    copy.upgrade().unwrap_or_else(|| {
        let made = Arc::new(world_readable_copy(built_example()));
        *copy = Arc::downgrade(&made);
        made
    })
}

/// `cargo test` and `cargo nextest` build a package's examples before its tests.
fn built_example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let path = profile.join("examples/launch_state");
    assert!(path.is_file(), "{} is missing: cargo build --examples", path.display());
    path
}

/// A command that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The report's JSON, if one was asked for and written.
    pub(crate) report: Option<Value>,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            report: None,
        }
    }

    /// The paths of the report's rules with their access, as `write /path`.
    pub(crate) fn rules(&self) -> Vec<String> {
        let rules = self.report.as_ref().expect("a report")["rules"].as_array().expect("rules");
        let text = |rule: &Value, member: &str| rule[member].as_str().unwrap().to_owned();
        rules
            .iter()
            .map(|rule| format!("{} {}", text(rule, "access"), text(rule, "path")))
            .collect()
    }

    /// Asserts that the launch was refused before the command started, with `text` in the reason.
    #[track_caller]
    pub(crate) fn assert_refused(&self, text: &str) {
        assert_eq!(self.code, 125, "{self:?}");
        assert!(self.stdout.is_empty(), "the command ran: {self:?}");
        assert!(self.stderr.contains(text), "expected {text:?} in {self:?}");
        let report = self.report.as_ref().expect("a refusal is reported");
        assert_eq!(report["status"], "refused", "{self:?}");
        assert!(report["reason"]["message"].is_string(), "{self:?}");
    }

    #[track_caller]
    pub(crate) fn assert_ok(&self) -> &Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

/// A tree of the user's, with `home/` as the home directory.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) who: Who,
    pub(crate) fixture: Fixture,
    reports: Fixture,
    launcher: Arc<WorldReadable>,
    own_launcher: Option<PathBuf>,
    /// Put in front of every command, before its user is set and after.
    lacking: [Vec<OsString>; 2],
}

impl Stage {
    pub(crate) fn new(who: Who) -> Self {
        let fixture = Fixture::owned_by(who.ids());
        fixture.directory("ws");
        fixture.directory("home");
        Self {
            who,
            fixture,
            reports: Fixture::owned_by(who.ids()),
            launcher: launcher(),
            own_launcher: None,
            lacking: [Vec::new(), Vec::new()],
        }
    }

    pub(crate) fn launcher(&self) -> &Path {
        self.own_launcher.as_deref().unwrap_or_else(|| self.launcher.path())
    }

    /// Launches with another copy from now on.
    pub(crate) fn use_launcher(&mut self, path: PathBuf) {
        self.own_launcher = Some(path);
    }

    /// Runs everything on a machine that lacks something from now on: words that end by executing the words behind
    /// them, as the tests' own user and as this stage's.
    pub(crate) fn lack(&mut self, before: Vec<OsString>, after: Vec<OsString>) {
        self.lacking = [before, after];
    }

    pub(crate) fn path(&self, relative: &str) -> String {
        self.fixture.join(relative).to_str().unwrap().to_owned()
    }

    pub(crate) fn profile(&self) -> Profile {
        Profile::new(&self.path("ws"))
    }

    /// A profile with `/` readable and `ws` writable.
    pub(crate) fn workspace(&self) -> Profile {
        self.profile().root("read").path("write", &self.path("ws"))
    }

    /// The same command without a sandbox.
    pub(crate) fn outside<W: AsRef<OsStr>>(&self, argv: &[W]) -> Command {
        self.command(argv.iter().map(|word| word.as_ref().to_owned()).collect())
    }

    /// `argv` under `profile`, without a report.
    pub(crate) fn inside<W: AsRef<OsStr>>(&self, profile: &Profile, argv: &[W]) -> Command {
        self.command(self.launch_words(profile, &[], argv))
    }

    /// The words that launch `argv` under `profile`.
    pub(crate) fn launch_words<W: AsRef<OsStr>>(
        &self,
        profile: &Profile,
        options: &[&str],
        argv: &[W],
    ) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.launcher().into()];
        words.extend(options.iter().map(OsString::from));
        words.extend(["--sandbox-state-json".into(), profile.state().into(), "--".into()]);
        words.extend(argv.iter().map(|word| word.as_ref().to_owned()));
        words
    }

    /// Runs any words as this stage's user, from `/`, with its home.
    pub(crate) fn command(&self, words: Vec<OsString>) -> Command {
        let [before, after] = &self.lacking;
        let words = as_user([after.clone(), words].concat(), self.who.ids().uid);
        let words = [before.clone(), words].concat();
        let (program, rest) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(rest).current_dir("/").env("HOME", self.path("home")).env_remove("TMPDIR");
        command.stdin(Stdio::null());
        command
    }

    /// Runs `argv` under `profile` to its end, with a report.
    pub(crate) fn run<W: AsRef<OsStr>>(&self, profile: &Profile, argv: &[W]) -> Ended {
        self.run_with(profile, &[], argv)
    }

    pub(crate) fn run_with<W: AsRef<OsStr>>(
        &self,
        profile: &Profile,
        options: &[&str],
        argv: &[W],
    ) -> Ended {
        let options: Vec<&str> = options.iter().copied().chain(["--report-fd", "9"]).collect();
        self.run_words(self.launch_words(profile, &options, argv), &[])
    }

    /// Runs `words` with descriptor 9 open on a report file, and reads it afterwards.
    pub(crate) fn run_words(&self, words: Vec<OsString>, environment: &[(&str, &str)]) -> Ended {
        let report = self.reports.join("report");
        std::fs::remove_file(&report).ok();
        let mut all: Vec<OsString> =
            ["/bin/sh", "-c", "exec \"$0\" \"$@\" 9>\"$REPORT\""].map(OsString::from).to_vec();
        all.extend(words);
        let mut command = self.command(all);
        command.env("REPORT", &report).envs(environment.iter().copied());
        let mut ended = Ended::of(&command.output().unwrap());
        let text = std::fs::read_to_string(&report).unwrap_or_default();
        assert!(text.lines().count() <= 1, "more than one report: {text}");
        ended.report = serde_json::from_str(&text).ok();
        ended
    }

    /// `sh -c script` under `profile`, with a report.
    pub(crate) fn sh(&self, profile: &Profile, script: &str) -> Ended {
        self.run(profile, &["/bin/sh", "-c", script])
    }
}

const LIMITED: &str = "limited";

/// A sandbox state under construction.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    entries: Vec<Value>,
    network: &'static str,
    cwd: String,
    whole: Option<Value>,
}

impl Profile {
    pub(crate) fn new(cwd: &str) -> Self {
        Self { entries: Vec::new(), network: "restricted", cwd: cwd.to_owned(), whole: None }
    }

    /// A profile that is not a managed one with rules, as JSON.
    pub(crate) fn whole(cwd: &str, profile: Value) -> Self {
        Self { whole: Some(profile), ..Self::new(cwd) }
    }

    pub(crate) fn root(self, access: &str) -> Self {
        self.special(access, "root")
    }

    pub(crate) fn special(mut self, access: &str, kind: &str) -> Self {
        let path = json!({"type": "special", "value": {"kind": kind}});
        self.entries.push(json!({"path": path, "access": access}));
        self
    }

    pub(crate) fn path(mut self, access: &str, path: &str) -> Self {
        let path = json!({"type": "path", "path": path});
        self.entries.push(json!({"path": path, "access": access}));
        self
    }

    pub(crate) fn path_if_present(mut self, access: &str, path: &str) -> Self {
        let path = json!({"type": "path", "path": path});
        let skip = "skip";
        self.entries.push(json!({"path": path, "access": access, "missing_path_behavior": skip}));
        self
    }

    pub(crate) fn deny_glob(mut self, pattern: &str) -> Self {
        let path = json!({"type": "glob_pattern", "pattern": pattern});
        self.entries.push(json!({"path": path, "access": "deny"}));
        self
    }

    pub(crate) fn network(mut self, network: &'static str) -> Self {
        self.network = network;
        self
    }

    pub(crate) fn cwd(mut self, cwd: &str) -> Self {
        cwd.clone_into(&mut self.cwd);
        self
    }

    /// The same with a network that is limited to one host.
    pub(crate) fn limited(self) -> Self {
        self.network(LIMITED)
    }

    /// The state's JSON text.
    pub(crate) fn state(&self) -> String {
        let files = json!({"type": "restricted", "entries": self.entries});
        let limited = self.network == LIMITED;
        let network = if limited { "restricted" } else { self.network };
        let managed = json!({"type": "managed", "file_system": files, "network": network});
        let profile = self.whole.clone().unwrap_or(managed);
        let cwd = format!("file://{}", self.cwd);
        let mut state = json!({"permissionProfile": profile, "sandboxCwd": cwd});
        if limited {
            let domains = json!({"example.org": "allow"});
            state["plenipoNetwork"] = json!({"mode": "limited", "domains": domains});
        }
        state.to_string()
    }
}
