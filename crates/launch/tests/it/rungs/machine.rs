//! Machines that lack something.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::Duration;

use plenipo_testkit::{Deadline, find_tool, is_root, requires};

use crate::stage::{Stage, Who};

const LACK: &str = include_str!("../../data/lack.py");

/// What a machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// Root without `CAP_SYS_ADMIN`.
    NoAdministrator,
    /// Root without any capability.
    NoCapabilities,
    /// A sysctl says 0; the user is root there, with or without the right to mount.
    NoUserNamespacesBySysctl { capable: bool },
    /// A container's filter refuses them.
    NoUserNamespaces,
    /// A container's filter does not know the call.
    NoClone3,
    /// As the last, and `/usr/bin/bwrap` belongs to nobody.
    ForeignBwrap,
    /// A container covers parts of `/proc`.
    CoveredProc,
    /// The kernel has none.
    NoLandlock,
    /// No namespace that another process made can be entered.
    NoSetns,
    /// Something in the kernel's place says that namespaces were made and entered.
    FakedNetwork,
    /// Something in the kernel's place says that this call was carried out.
    Faked(&'static str),
    /// The same says with this call that the kernel does not know what is asked.
    Unknown(&'static str),
    /// Inherited descriptors cannot be closed.
    NoCloseRange,
    /// One processor.
    OneProcessor,
}

impl Machine {
    pub(crate) fn is_possible_for(self, who: Who) -> bool {
        match self {
            Self::NoAdministrator | Self::NoCapabilities => who == Who::Root,
            Self::NoUserNamespacesBySysctl { .. } | Self::ForeignBwrap => who == Who::User,
            Self::CoveredProc => requires("root, to cover parts of /proc", is_root()),
            Self::OneProcessor => requires("taskset(1)", find_tool("taskset").is_some()),
            Self::NoUserNamespaces
            | Self::NoClone3
            | Self::NoLandlock
            | Self::NoSetns
            | Self::FakedNetwork
            | Self::Faked(_)
            | Self::Unknown(_)
            | Self::NoCloseRange => requires("python3 on PATH", find_tool("python3").is_some()),
        }
    }

    pub(crate) fn stage(self, who: Who) -> Stage {
        let mut stage = Stage::new(who);
        let script = stage.fixture.file("lack.py", LACK).display().to_string();
        let filter = |name: &str| words(["/usr/bin/python3", "-I", "-S", &script, name, "--"]);
        let without = |capabilities: &str| {
            let bounding = format!("--bounding-set={capabilities}");
            let inheritable = format!("--inh-caps={capabilities}");
            words(["/usr/bin/setpriv", &bounding, &inheritable, "--"])
        };
        let none = Vec::new;
        let (before, after) = match self {
            Self::NoAdministrator => (none(), without("-sys_admin")),
            Self::NoCapabilities => (none(), without("-all")),
            Self::NoUserNamespacesBySysctl { capable } => {
                let off = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" \"$@\"";
                let mut after = words(["/usr/bin/unshare", "-Ur", "/bin/sh", "-c", off]);
                if !capable {
                    after.extend(without("-sys_admin"));
                }
                (none(), after)
            }
            Self::NoUserNamespaces => (none(), filter("user-namespaces")),
            Self::NoClone3 => (none(), filter("clone3")),
            Self::NoLandlock => (none(), filter("landlock_create_ruleset")),
            Self::NoSetns => (none(), filter("setns")),
            Self::FakedNetwork => {
                let mut after = filter("setns=done");
                after.insert(after.len() - 1, "unshare=done".into());
                (none(), after)
            }
            Self::Faked(call) => (none(), filter(&format!("{call}=done"))),
            Self::Unknown(call) => (none(), filter(&format!("{call}=unknown"))),
            Self::NoCloseRange => (none(), filter("close_range")),
            Self::OneProcessor => (none(), words(["/usr/bin/taskset", "-c", "0"])),
            Self::ForeignBwrap => {
                let mut after = filter("clone3");
                after.extend(words(["/usr/bin/unshare", "-Ur"]));
                after.extend(without("-sys_admin"));
                (none(), after)
            }
            Self::CoveredProc => {
                let cover = "set -e; mount -t tmpfs none /proc/irq; mount --bind /dev/null /proc/interrupts; exec \"$0\" \"$@\"";
                let before = words(["/usr/bin/unshare", "-m", "/bin/sh", "-c", cover]);
                // Root with the right to mount is not kept from a fresh /proc.
                (before, if who == Who::Root { without("-sys_admin") } else { none() })
            }
        };
        stage.lack(before, after);
        stage
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

pub(crate) fn has_bwrap() -> bool {
    let python = find_tool("python3").is_some();
    requires(
        "python3 and /usr/bin/bwrap",
        python && std::path::Path::new("/usr/bin/bwrap").exists(),
    )
}

/// Processes with this text in their command line.
pub(super) fn processes_with(mark: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process: &u32| {
            let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.windows(mark.len()).any(|part| part == mark.as_bytes())
        })
        .collect()
}

/// Asserts that they end soon by themselves.
#[track_caller]
pub(super) fn assert_gone(mark: &str) {
    let gone = Deadline::poll_until(Duration::from_secs(10), || processes_with(mark).is_empty());
    assert!(gone, "{:?} go on", processes_with(mark));
}

/// Starts the words, waits for their first line of output, and kills the launcher.
pub(super) fn kill_when_it_runs(stage: &Stage, words: Vec<OsString>) {
    signal_when_it_runs(stage, words, "KILL");
}

/// The exit code and what was said after the signal.
pub(super) fn signal_when_it_runs(
    stage: &Stage,
    words: Vec<OsString>,
    signal: &str,
) -> (Option<i32>, String) {
    let mut command = stage.command(words);
    let mut child: Child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "on\n", "{:?}", child.wait());
    let sent = std::process::Command::new("/bin/kill")
        .args([&format!("-{signal}"), &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let code = child.wait().unwrap().code();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    (code, rest)
}
