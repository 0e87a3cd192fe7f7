//! The place that the probes act on, and what became of it, looked at from outside the sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use plenipo_testkit::{ChildGuard, Listener};

use crate::support::{Bench, Ran, data};

/// Where the host sees whether a probe was let through. A probe without any is judged by its own word: it reads, or it
/// asks the kernel for something that leaves no trace.
#[derive(Debug, Clone, Copy)]
enum Evidence {
    /// This came into being.
    Appears(&'static str),
    /// This file went away.
    Vanishes(&'static str),
    /// This file is not what it was.
    Changes(&'static str),
    /// This file has another mode or modification time.
    Metadata(&'static str),
    /// A file of the run's own name came into being in a directory that everybody uses.
    AppearsIn(&'static str),
    /// A connection or a datagram arrived.
    Arrives(&'static str),
}

use Evidence::{Appears, AppearsIn, Arrives, Changes, Metadata, Vanishes};

const EVIDENCE: [(&str, Evidence); 28] = [
    ("workspace-create", Appears("workspace/created")),
    ("workspace-append", Changes("workspace/appended")),
    ("workspace-rename", Appears("workspace/new")),
    ("workspace-delete", Vanishes("workspace/deleted")),
    ("outside-create", Appears("outside/created")),
    ("outside-append", Changes("outside/appended")),
    ("outside-truncate", Changes("outside/truncated")),
    ("outside-delete", Vanishes("outside/deleted")),
    ("outside-chmod", Metadata("outside/mode")),
    ("outside-touch", Metadata("outside/time")),
    ("outside-through-link", Appears("outside/through-link")),
    ("outside-hard-link", Changes("outside/linked")),
    ("move-in", Vanishes("outside/victim")),
    ("move-out", Appears("outside/left")),
    ("extra-create", Appears("extra/created")),
    ("tmp-create", AppearsIn("/tmp")),
    ("shared-memory-create", AppearsIn("/dev/shm")),
    ("docs-create", Appears("workspace/docs/created")),
    ("protected-parent-rename", Appears("workspace/sub/protected/replaced")),
    ("git-config-append", Changes("workspace/.git/config")),
    ("agents-create", Appears("workspace/.agents")),
    ("tcp", Arrives("tcp")),
    ("udp", Arrives("udp")),
    ("unix-stream", Arrives("stream")),
    ("unix-abstract", Arrives("abstract")),
    ("unix-datagram", Arrives("sendto")),
    ("unix-datagram-message", Arrives("sendmsg")),
    ("unix-datagram-pair", Arrives("pair")),
];

const FILES: [&str; 18] = [
    "workspace/appended",
    "workspace/old",
    "workspace/deleted",
    "workspace/mine",
    "workspace/docs/page",
    "workspace/sub/protected/file",
    "workspace/.git/config",
    "workspace/.git/HEAD",
    "workspace/secret/file",
    "workspace/app/local.env",
    "outside/appended",
    "outside/truncated",
    "outside/deleted",
    "outside/linked",
    "outside/victim",
    "outside/inherited",
    "outside/mode",
    "outside/time",
];
const TEXT: &str = "text\n";

/// One run's files, listeners and process outside.
pub(super) struct Scene<'a> {
    bench: &'a Bench,
    listeners: BTreeMap<&'static str, Listener>,
    metadata: BTreeMap<&'static str, (u32, i64)>,
    outside: ChildGuard,
    name: String,
}

impl<'a> Scene<'a> {
    /// Puts everything as it was before any run.
    pub(super) fn set(bench: &'a Bench) -> Self {
        for directory in ["workspace", "outside", "extra", "sockets"] {
            fs::remove_dir_all(bench.fixture.join(directory)).ok();
            bench.fixture.directory(directory);
        }
        for file in FILES {
            bench.fixture.file(file, TEXT);
        }
        let name = format!("plenipo-reference-{}", std::process::id());
        let sockets = bench.fixture.directory("sockets");
        let mut listeners = BTreeMap::from([
            ("tcp", Listener::tcp()),
            ("udp", Listener::udp()),
            ("abstract", Listener::abstract_stream(&name)),
            ("stream", Listener::unix_stream(sockets.join("stream"))),
        ]);
        for socket in ["sendto", "sendmsg", "pair"] {
            listeners.insert(socket, Listener::unix_datagram(sockets.join(socket)));
        }
        let mut process = bench.command_of("/bin/cat".into(), [] as [&str; 0]);
        let process = process.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let metadata = ["outside/mode", "outside/time"].map(|file| (file, metadata(bench, file)));
        let (metadata, outside) = (metadata.into(), ChildGuard::new(process));
        Self { bench, listeners, metadata, outside, name }
    }

    /// Runs all probes behind the words of a launcher and says which were let through.
    pub(super) fn run(&self, launcher: &[OsString], python: &str) -> BTreeMap<String, bool> {
        let text = fs::read_to_string(data("tests/data/reference/probes.py")).unwrap();
        let arguments = [
            self.bench.fixture.path().display().to_string(),
            self.outside.id().to_string(),
            self.listeners["tcp"].port().to_string(),
            self.listeners["udp"].port().to_string(),
            self.name.clone(),
            self.name.clone(),
        ];
        let mut words: Vec<OsString> = launcher.to_vec();
        words.extend([python.into(), "-c".into(), text.into()]);
        words.extend(arguments.map(OsString::from));
        let inherited = self.bench.fixture.join("outside/inherited").into_os_string();
        let opening = ["-c".into(), "exec 7>>\"$0\"; exec \"$@\"".into(), inherited];
        let mut command = self.bench.command_of("/bin/sh".into(), opening.into_iter().chain(words));
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{launcher:?}: {ran:?}");
        let verdicts = ran.stdout.lines().map(|line| {
            let (probe, said) = line.split_once(' ').unwrap();
            assert!(said == "allowed" || said.starts_with("denied "), "{line}: {ran:?}");
            (probe.to_owned(), self.verdict(probe, said == "allowed"))
        });
        verdicts.collect()
    }

    fn verdict(&self, probe: &str, said: bool) -> bool {
        let evidence = EVIDENCE.iter().find(|(name, _)| *name == probe);
        evidence.map_or(said, |(_, evidence)| self.seen(*evidence))
    }

    fn seen(&self, evidence: Evidence) -> bool {
        let fixture = &self.bench.fixture;
        match evidence {
            Appears(file) => fixture.exists(file),
            Vanishes(file) => !fixture.exists(file),
            Changes(file) => fixture.read(file).as_deref() != Some(TEXT),
            Metadata(file) => metadata(self.bench, file) != self.metadata[file],
            AppearsIn(directory) => self.shared_file(directory).exists(),
            Arrives(listener) => self.listeners[listener].count() > 0,
        }
    }

    fn shared_file(&self, directory: &str) -> PathBuf {
        Path::new(directory).join(&self.name)
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        for directory in ["/tmp", "/dev/shm"] {
            fs::remove_file(self.shared_file(directory)).ok();
        }
    }
}

fn metadata(bench: &Bench, file: &str) -> (u32, i64) {
    let metadata = fs::metadata(bench.fixture.join(file)).unwrap();
    (metadata.mode(), metadata.mtime())
}
