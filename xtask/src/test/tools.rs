//! Programs that tests start: which are missing, and installing them from Debian when asked to.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run::{Failure, Outcome, succeed};

/// A program, how to see that it works, and the Debian packages it comes in.
struct Tool {
    program: &'static str,
    probe: &'static [&'static str],
    packages: &'static [&'static str],
    needed_for: &'static str,
}

const TOOLS: [Tool; 13] = [
    Tool {
        program: "python3",
        probe: &["-c", "import venv, ensurepip"],
        packages: &["python3", "python3-venv"],
        needed_for: "test servers and peers from PyPI",
    },
    Tool {
        program: "setpriv",
        probe: &["--version"],
        packages: &["util-linux"],
        needed_for: "running tests as an ordinary user",
    },
    Tool {
        program: "/usr/bin/bwrap",
        probe: &["--version"],
        packages: &["bubblewrap"],
        needed_for: "the sandbox's rung of that name",
    },
    Tool { program: "git", probe: &["--version"], packages: &["git"], needed_for: "repositories" },
    Tool {
        program: "gcc",
        probe: &["--version"],
        packages: &["gcc", "libc6-dev"],
        needed_for: "probes in C",
    },
    Tool {
        program: "node",
        probe: &["--version"],
        packages: &["nodejs"],
        needed_for: "peers from npm",
    },
    Tool {
        program: "npm",
        probe: &["--version"],
        packages: &["npm"],
        needed_for: "peers from npm",
    },
    Tool {
        program: "/usr/sbin/sshd",
        probe: &["-V"],
        packages: &["openssh-server", "openssh-client"],
        needed_for: "servers on another machine",
    },
    Tool {
        program: "ip",
        probe: &["-V"],
        packages: &["iproute2"],
        needed_for: "servers in another network",
    },
    Tool {
        program: "podman",
        probe: &["--version"],
        packages: &["podman", "runc"],
        needed_for: "servers in containers",
    },
    Tool {
        program: "pg_lsclusters",
        probe: &["-h"],
        packages: &["postgresql"],
        needed_for: "the credentials store of that name",
    },
    Tool {
        program: "gnome-keyring-daemon",
        probe: &["--version"],
        packages: &["gnome-keyring", "dbus-daemon"],
        needed_for: "the credentials store in a keyring",
    },
    Tool {
        program: "chromium",
        probe: &["--version"],
        packages: &["chromium"],
        needed_for: "signing in with a real browser",
    },
];

/// Names what is missing; with `install` fetches it. Only in CI is a missing program a failure:
/// elsewhere the tests that need it are skipped, and counted.
pub(super) fn check(install: bool, ci: bool) -> Outcome {
    let mut missing = report();
    if missing.is_empty() {
        return Ok(());
    }
    if install {
        apt_install(&missing)?;
        missing = report();
    } else {
        println!("tests that need them are skipped; `cargo xtask test --install` installs them");
    }
    if ci && !missing.is_empty() {
        return Err(Failure::new("CI needs every one of these programs"));
    }
    Ok(())
}

/// The Debian packages of the programs that do not work, each program named.
fn report() -> Vec<&'static str> {
    let mut packages = Vec::new();
    for tool in TOOLS.iter().filter(|tool| !tool.works()) {
        let Tool { program, needed_for, .. } = tool;
        println!("missing: {program}, for {needed_for} (Debian: {})", tool.packages.join(" "));
        packages.extend(tool.packages);
    }
    packages
}

impl Tool {
    fn works(&self) -> bool {
        let mut probe = Command::new(self.program);
        let quiet = probe.args(self.probe).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }
}

fn apt_install(packages: &[&str]) -> Outcome {
    let found = env::var_os("PATH").unwrap_or_default();
    if !env::split_paths(&found).any(|directory| directory.join("apt-get").is_file()) {
        return Err(Failure::new("there is no apt-get here: install the named programs yourself"));
    }
    // `/proc/self` belongs to the effective user; only root can install, others need sudo.
    let root = std::os::unix::fs::MetadataExt::uid(
        &Path::new("/proc/self").metadata().map_err(|error| Failure::new(error.to_string()))?,
    ) == 0;
    let apt = |words: &[&str]| {
        let mut command = Command::new(if root { "apt-get" } else { "sudo" });
        if !root {
            command.args(["-n", "apt-get"]);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive");
        succeed(command.args(words))
    };
    apt(&["update", "-q"])?;
    apt(&[&["install", "-y", "-q", "--no-install-recommends"], packages].concat())
}
