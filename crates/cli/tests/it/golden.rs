//! Sandbox states captured from another host are enforced as they are. The captures are `authority`'s test data.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::{Bench, as_each_user, data};

/// What a mode lets a command do in the places of the captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct May {
    write_workspace: bool,
    write_git: bool,
    write_tmp: bool,
    write_elsewhere: bool,
    read_secret: bool,
    read_env_file: bool,
    internet_socket: bool,
}

const READ_ONLY: May = May {
    write_workspace: false,
    write_git: false,
    write_tmp: false,
    write_elsewhere: false,
    read_secret: true,
    read_env_file: true,
    internet_socket: false,
};
const WORKSPACE: May = May { write_workspace: true, write_tmp: true, ..READ_ONLY };
const EVERYTHING: May =
    May { write_git: true, write_elsewhere: true, internet_socket: true, ..WORKSPACE };

/// Mode (the first part of a capture's name) to what it lets a command do.
const TABLE: [(&str, May); 21] = [
    ("mode-danger-full-access", EVERYTHING),
    ("mode-default-no-sandbox-setting", READ_ONLY),
    ("mode-legacy-landlock", READ_ONLY),
    ("mode-network-proxy", WORKSPACE),
    ("mode-no-environment", WORKSPACE),
    ("mode-profile-builtin-danger-full-access", EVERYTHING),
    ("mode-profile-builtin-read-only", READ_ONLY),
    ("mode-profile-builtin-workspace", WORKSPACE),
    (
        "mode-profile-named-deny",
        May { read_secret: false, read_env_file: false, write_tmp: false, ..WORKSPACE },
    ),
    ("mode-profile-named-extends-unknown-special", May { read_secret: false, ..WORKSPACE }),
    (
        "mode-profile-named-minimal-net",
        May { read_secret: false, write_tmp: false, internet_socket: true, ..WORKSPACE },
    ),
    ("mode-read-only", READ_ONLY),
    ("mode-runtime-workspace-roots", WORKSPACE),
    ("mode-tmpdir-vartmp", WORKSPACE),
    ("mode-workspace-git-oddpath", WORKSPACE),
    ("mode-workspace-git-subdir", WORKSPACE),
    ("mode-workspace-write", WORKSPACE),
    ("mode-workspace-write-notmp", May { write_tmp: false, ..WORKSPACE }),
    ("mode-workspace-write-roots-net", May { internet_socket: true, ..WORKSPACE }),
    ("model-read-only", READ_ONLY),
    ("model-workspace-write", WORKSPACE),
];

/// Modes of a model-driven turn whose state is one of the above.
const ALIASES: [(&str, &str); 3] = [
    ("model-bypass", "mode-danger-full-access"),
    ("model-danger-full-access", "mode-danger-full-access"),
    ("model-workspace-write-net-adddir", "mode-workspace-write-roots-net"),
];

/// Each state under test once, with its mode.
fn states() -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    let mut files: Vec<_> = std::fs::read_dir(data("../authority/tests/data/requests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let request: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let meta = &request["params"]["_meta"];
        let mode =
            file.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
        for key in ["codex/sandbox-state", "codex/sandbox-state-meta"] {
            if let Some(state) = meta.get(key) {
                seen.insert((mode.clone(), state.to_string()));
            }
        }
    }
    seen.into_iter().collect()
}

#[test]
fn every_captured_state_is_enforced() {
    let states = states();
    assert!(states.len() >= TABLE.len() + ALIASES.len(), "{}", states.len());
    as_each_user(|bench| {
        println!("mode | may");
        for (mode, state) in &states {
            let name = ALIASES
                .iter()
                .find(|(alias, _)| alias == mode)
                .map_or(mode.as_str(), |(_, name)| name);
            let (_, expected) = TABLE
                .iter()
                .find(|(row, _)| *row == name)
                .unwrap_or_else(|| panic!("no row for {mode}"));
            let found = observe(bench, state);
            assert_eq!(found, *expected, "{mode}: {state}");
            println!("{mode} | {found:?}");
        }
    });
}

/// Runs one command that tries everything, then looks at what became of it.
fn observe(bench: &Bench, state: &str) -> May {
    let fixture = &bench.fixture;
    let home = fixture.directory("dev");
    let state = state.replace("/home/dev", &home.display().to_string());
    let cwd = working_directory(&state);
    for place in [
        "dev/ws",
        "dev/secret",
        "dev/extra",
        "dev/elsewhere",
        "dev/.codex",
        "dev/ws/sub",
        "dev/ws/docs",
        "dev/ws/.git",
    ] {
        fixture.directory(place);
    }
    let relative = cwd.strip_prefix(fixture.path()).unwrap().to_path_buf();
    fixture.directory(&relative);
    fixture.directory(relative.join(".git"));
    fixture.file("dev/secret/file", "secret\n");
    fixture.file("dev/ws/a.env", "variable\n");
    let tmp = format!("/tmp/plenipo-golden-{}", std::process::id());
    let home = home.display();
    let script = format!(
        "echo x > written; echo x > .git/written; echo x > {tmp}; echo x > {home}/elsewhere/written;
         cat {home}/secret/file; cat {home}/ws/a.env; /usr/bin/python3 -c 'import socket; socket.socket(socket.AF_INET); print(\"socket\")'"
    );
    let ran =
        bench.run(["sandbox", "--sandbox-state-json", &state, "--", "/bin/sh", "-c", &script]);
    assert!(ran.code.is_some_and(|code| code < 125), "{ran:?}");
    let took = |path: &Path| std::fs::remove_file(path).is_ok();
    May {
        write_workspace: took(&cwd.join("written")),
        write_git: took(&cwd.join(".git/written")),
        write_tmp: took(Path::new(&tmp)),
        write_elsewhere: took(&fixture.join("dev/elsewhere/written")),
        read_secret: ran.stdout.contains("secret\n"),
        read_env_file: ran.stdout.contains("variable\n"),
        internet_socket: ran.stdout.contains("socket\n"),
    }
}

fn working_directory(state: &str) -> std::path::PathBuf {
    let state: Value = serde_json::from_str(state).unwrap();
    let uri = state["sandboxCwd"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    let mut bytes = Vec::new();
    let mut rest = uri.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap().into()
}
