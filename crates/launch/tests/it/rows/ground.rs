//! Where attacks happen: a tree with something to attack, listeners that count, a process outside.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use plenipo_testkit::{ChildGuard, Listener};

use crate::rows::attacks::{Attack, Judge, Setting};
use crate::stage::{Ended, Profile, Stage, Who};

const PROBE: &str = include_str!("../../data/probe.py");

/// What one run of a probe did.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The probe's own line.
    pub(crate) answer: String,
    /// Whether the attack had an effect, by the row's judge.
    pub(crate) succeeded: bool,
    pub(crate) host_changed: bool,
    pub(crate) arrivals: usize,
    /// What the enforcement report should have said.
    pub(crate) report_fault: Option<String>,
    /// On which rung it ran, if in a sandbox.
    pub(crate) rung: Option<String>,
}

impl Outcome {
    pub(crate) fn short(&self) -> String {
        let answer = self.answer.strip_prefix("DENIED ").unwrap_or(&self.answer);
        if self.succeeded { "succeeds".to_owned() } else { answer.replace("ALLOWED", "private") }
    }
}

pub(crate) struct Ground {
    stage: Stage,
    host: ChildGuard,
    listeners: Vec<Listener>,
    tcp: u16,
    udp: u16,
    name: String,
}

impl Ground {
    pub(crate) fn new(who: Who) -> Self {
        Self::on(Stage::new(who))
    }

    pub(crate) fn on(stage: Stage) -> Self {
        fill(&stage);
        let name = stage.fixture.path().file_name().unwrap().to_str().unwrap().to_owned();
        let (tcp, udp) = (Listener::tcp(), Listener::udp());
        let (tcp_port, udp_port) = (tcp.port(), udp.port());
        let listeners = vec![
            tcp,
            udp,
            Listener::unix_stream(stage.fixture.join("out/stream.sock")),
            Listener::unix_datagram(stage.fixture.join("out/datagram.sock")),
            Listener::abstract_stream(&name),
            Listener::abstract_datagram(&format!("{name}-d")),
        ];
        // Reads a pipe that never ends until the guard kills it.
        let mut host = stage.command(vec!["/bin/cat".into()]);
        let host = ChildGuard::new(host.stdin(Stdio::piped()).spawn().unwrap());
        Self { stage, host, listeners, tcp: tcp_port, udp: udp_port, name }
    }

    pub(crate) fn without_sandbox(&self, attack: &Attack) -> Outcome {
        let probe = self.stage.path("probe.py");
        let words = ["/usr/bin/python3", "-I", "-S", &probe, attack.probe];
        let argv: Vec<_> = self.wrap(attack, words.iter().map(Into::into).collect());
        self.observe(attack, || self.finish(&mut self.stage.command(argv)))
    }

    pub(crate) fn sandboxed(&self, attack: &Attack) -> Outcome {
        let probe = self.stage.path("probe.py");
        let words = ["/usr/bin/python3", "-I", "-S", &probe, attack.probe];
        let profile = self.profile(attack.setting);
        self.launched(attack, &profile, &["--report-fd", "9"], &words)
    }

    /// Sandboxed on a weak rung; with nothing writable where the rung can hold nothing else.
    pub(crate) fn on_rung(&self, attack: &Attack, rung: &str, writable: bool) -> Outcome {
        let probe = self.stage.path("probe.py");
        let words = ["/usr/bin/python3", "-I", "-S", &probe, attack.probe];
        let mut profile = self.profile(attack.setting);
        if !writable {
            profile = self.stage.profile().root("read");
            for place in ["ws/secret", "ws/secret.txt", "out/hidden"] {
                profile = profile.path("deny", &self.stage.path(place));
            }
            profile = profile.deny_glob("**/*.env");
            if attack.setting == Setting::Network {
                profile = profile.network("enabled");
            }
        }
        self.launched(attack, &profile, &["--report-fd", "9", "--minimum-rung", rung], &words)
    }

    /// Sandboxed with a network that is limited to a host, whatever the attack is made for.
    pub(crate) fn with_limited_network(&self, attack: &Attack) -> Outcome {
        let probe = self.stage.path("probe.py");
        let words = ["/usr/bin/python3", "-I", "-S", &probe, attack.probe];
        let profile = self.profile(attack.setting).limited();
        self.launched(attack, &profile, &["--report-fd", "9", "--egress", "greets"], &words)
    }

    fn launched(
        &self,
        attack: &Attack,
        profile: &Profile,
        options: &[&str],
        words: &[&str],
    ) -> Outcome {
        let launch = self.stage.launch_words(profile, options, words);
        let argv = self.wrap(attack, launch);
        self.observe(attack, || self.stage.run_words(argv, &self.environment()))
    }

    fn wrap(&self, attack: &Attack, argv: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
        let option = match attack.setting {
            Setting::Terminal => "--terminal",
            Setting::Inherited => "--inherit",
            Setting::Plain | Setting::Network | Setting::ReadOnly => return argv,
        };
        let probe = self.stage.path("probe.py");
        let mut words: Vec<std::ffi::OsString> =
            ["/usr/bin/python3", "-I", "-S", &probe, option, "--"].map(Into::into).to_vec();
        words.extend(argv);
        words
    }

    fn profile(&self, setting: Setting) -> Profile {
        let path = |relative| self.stage.path(relative);
        let profile = self.stage.profile().root("read");
        if setting == Setting::ReadOnly {
            return profile;
        }
        let profile = profile
            .path("write", &path("ws"))
            .path("write", &path("ws2"))
            .path("read", &path("ws/sub/protected"))
            .path("deny", &path("ws/secret"))
            .path("deny", &path("ws/secret.txt"))
            .path("deny", &path("out/hidden"))
            .deny_glob("**/*.env");
        if setting == Setting::Network { profile.network("enabled") } else { profile }
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        vec![
            ("OUT", leak(self.stage.path("out"))),
            ("WS", leak(self.stage.path("ws"))),
            ("WS2", leak(self.stage.path("ws2"))),
            ("HOST_PID", leak(self.host_pid().to_string())),
            ("TCP", leak(self.tcp.to_string())),
            ("UDP", leak(self.udp.to_string())),
            ("ABSTRACT", &self.name),
            ("PROBE_NAME", leak(format!("{}-probe", self.name))),
        ]
    }

    /// `setpriv` execs, so the child's id is the process's.
    fn host_pid(&self) -> u32 {
        self.host.id()
    }

    fn finish(&self, command: &mut Command) -> Ended {
        Ended::of(&command.envs(self.environment()).output().unwrap())
    }

    fn observe(&self, attack: &Attack, run: impl FnOnce() -> Ended) -> Outcome {
        let before = self.fingerprint();
        let ended = run();
        let host_changed = self.fingerprint() != before;
        let arrivals = self.listeners.iter().map(Listener::count).sum();
        self.clean();
        let answer = ended.stdout.lines().last().unwrap_or_default().to_owned();
        assert!(
            answer == "ALLOWED" || answer.starts_with("DENIED "),
            "row {} {} as {:?} gave no answer: {ended:?}",
            attack.row,
            attack.name,
            self.stage.who
        );
        let succeeded = match attack.judge {
            Judge::Answer => answer == "ALLOWED",
            Judge::Files => host_changed,
            Judge::Arrival => arrivals > 0,
        };
        let report_fault = ended.report.as_ref().and_then(|report| attack.report_fault(report));
        let rung =
            ended.report.map(|report| report["rung"].as_str().unwrap_or_default().to_owned());
        Outcome { answer, succeeded, host_changed, arrivals, report_fault, rung }
    }

    /// Everything that no command may change, as text: names, modes, owners, sizes, times, contents.
    fn fingerprint(&self) -> String {
        let mut text = String::new();
        let path = |relative| self.stage.fixture.join(relative);
        for relative in [
            "out",
            "ws/.git",
            "ws/sub/protected",
            "ws/secret",
            "ws/secret.txt",
            "ws/app.env",
            "ws2/.git",
            "ws/.codex",
        ] {
            describe(&path(relative), &mut text);
        }
        for place in ["/tmp", "/dev/shm", "/var/tmp"] {
            describe(&Path::new(place).join(format!("{}-probe", self.name)), &mut text);
        }
        text
    }

    fn clean(&self) {
        for place in ["/tmp", "/dev/shm", "/var/tmp"] {
            fs::remove_file(Path::new(place).join(format!("{}-probe", self.name))).ok();
        }
    }
}

fn fill(stage: &Stage) {
    let fixture = &stage.fixture;
    fixture.file("probe.py", PROBE);
    for (name, text) in [
        ("out/target", "untouched"),
        ("out/victim", "victim"),
        ("out/hidden/inner", "secret"),
        ("ws/mine", "mine"),
        ("ws/secret/inner", "secret"),
        ("ws/secret.txt", "secret"),
        ("ws/app.env", "secret"),
        ("ws/sub/protected/f", "untouched"),
        ("ws/sub/free", "free"),
        ("ws/.git/config", "[core]\n"),
        ("ws/.git/HEAD", "ref: refs/heads/main\n"),
        ("ws/.git/hooks/sample", ""),
    ] {
        fixture.file(name, text);
    }
    fixture.directory("ws2");
    fixture.symlink("ws/to-secret", "secret.txt");
}

pub(crate) fn describe(path: &Path, text: &mut String) {
    let Ok(metadata) = path.symlink_metadata() else {
        writeln!(text, "{} absent", path.display()).unwrap();
        return;
    };
    writeln!(
        text,
        "{} {:o} {}:{} {} {} {}.{} {}.{}",
        path.display(),
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.nlink(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec()
    )
    .unwrap();
    if metadata.is_file() {
        writeln!(text, "{:?}", fs::read(path).unwrap_or_default()).unwrap();
    } else if metadata.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.path()).collect();
        names.sort();
        names.iter().for_each(|name| describe(name, text));
    }
}
