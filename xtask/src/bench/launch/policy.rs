//! The one policy of these measurements, in every launcher's own words: everything readable, the work folder and `/tmp`
//! writable, its `.git` read-only.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::bench::tools::{Floors, Tools};
use crate::run::{Doing, Outcome};

const DIRECTORIES: usize = 20;
const FILES_EACH: usize = 100;

/// What differs between the rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Policy {
    pub(super) network: bool,
    /// So many directories of the work folder are read-only besides.
    pub(super) carve_outs: usize,
    /// A deny pattern is looked for in 2,000 files.
    pub(super) glob: bool,
    /// What is started is a C program with its library's start, instead of one instruction.
    pub(super) program: bool,
}

impl Policy {
    /// Makes what the rules are about.
    pub(super) fn make(self, tools: &Tools) -> Outcome {
        for number in 0..self.carve_outs {
            fs::create_dir_all(carve_out(&tools.work, number)).doing("make a carve-out")?;
        }
        if !self.glob {
            return Ok(());
        }
        for directory in 0..DIRECTORIES {
            let place = tools.work.join(format!("many/{directory}"));
            fs::create_dir_all(&place).doing("make a directory of files")?;
            for file in 0..FILES_EACH {
                fs::write(place.join(format!("{file}.txt")), "").doing("make a file")?;
            }
        }
        fs::write(tools.work.join("many/0/x.env"), "").doing("make a file")
    }

    fn payload(self, tools: &Tools) -> String {
        let payload = if self.program { &tools.program } else { &tools.payload };
        payload.display().to_string()
    }

    fn state(self, tools: &Tools) -> String {
        let work = tools.work.display();
        let entry = |path: Value, access: &str| json!({ "path": path, "access": access });
        let special = |kind: &str| json!({ "type": "special", "value": { "kind": kind } });
        let path = |path: String| json!({ "type": "path", "path": path });
        let mut entries = vec![
            entry(special("root"), "read"),
            entry(path(work.to_string()), "write"),
            entry(special("slash_tmp"), "write"),
            entry(path(format!("{work}/.git")), "read"),
        ];
        entries.extend((0..self.carve_outs).map(|number| {
            entry(path(carve_out(&tools.work, number).display().to_string()), "read")
        }));
        if self.glob {
            let pattern = json!({ "type": "glob_pattern", "pattern": "many/**/*.env" });
            entries.push(entry(pattern, "deny"));
        }
        json!({
            "permissionProfile": {
                "type": "managed",
                "file_system": { "type": "restricted", "entries": entries },
                "network": if self.network { "enabled" } else { "restricted" },
            },
            "sandboxCwd": format!("file://{work}"),
        })
        .to_string()
    }

    /// Ours, or another that takes the contract's command line.
    pub(super) fn launcher(self, tools: &Tools, program: &Path) -> Vec<String> {
        let program = program.display().to_string();
        let payload = self.payload(tools);
        [
            program,
            "sandbox".into(),
            "--sandbox-state-json".into(),
            self.state(tools),
            "--".into(),
            payload,
        ]
        .to_vec()
    }

    pub(super) fn candidate(self, tools: &Tools, floors: &Floors) -> Vec<String> {
        let work = tools.work.display().to_string();
        let (git, tmp) = (format!("{work}/.git"), "/tmp".to_owned());
        let mut words = vec![floors.sandbox.display().to_string()];
        if !self.network {
            words.push("-n".into());
        }
        for (option, place) in [("-w", work), ("-w", tmp), ("-r", git)] {
            words.extend([option.to_owned(), place]);
        }
        words.extend(["--".to_owned(), self.payload(tools)]);
        words
    }

    /// The same mounts and namespaces; neither a filter nor Landlock.
    pub(super) fn bwrap(self, tools: &Tools, program: &Path) -> Vec<String> {
        let work = tools.work.display().to_string();
        let git = format!("{work}/.git");
        let mut words = vec![program.display().to_string()];
        let flags = "--new-session --die-with-parent --unshare-pid --unshare-ipc --unshare-uts --cap-drop ALL";
        words.extend(flags.split(' ').map(str::to_owned));
        if !self.network {
            words.push("--unshare-net".into());
        }
        let mounts = [
            vec!["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"],
            vec!["--bind", &work, &work, "--bind", "/tmp", "/tmp", "--ro-bind", &git, &git],
            vec!["--chdir", &work, "--"],
        ];
        words.extend(mounts.into_iter().flatten().map(str::to_owned));
        words.push(self.payload(tools));
        words
    }
}

fn carve_out(work: &Path, number: usize) -> std::path::PathBuf {
    work.join(format!("carved/{number}"))
}
