//! The audit file: one line a call, and no call without its line.

use plenipo_testkit::{is_root, requires};
use serde_json::Value;

use crate::support::{Bench, Ran};

fn audited(bench: &Bench) -> String {
    bench.configuration(&format!(
        "audit.file = {:?}\n[mcp_servers.absent]\ncommand = \"/nonexistent/server\"\n",
        bench.fixture.join("audit.jsonl").display().to_string()
    ))
}

#[test]
fn every_call_is_one_line_without_arguments_or_secrets() {
    let bench = Bench::new();
    let config = audited(&bench);
    let run = |words: &[&str]| {
        let mut all = vec!["call", "--config", &config];
        all.extend(words);
        bench.run(all).code
    };
    assert_eq!(run(&["workspace.run", "command=echo hunter2"]), Some(0));
    assert_eq!(run(&["workspace.run", "command=exit 3"]), Some(1));
    assert_eq!(run(&["workspace.run", "--profile", ":read-only", "command=true"]), Some(0));
    assert_eq!(run(&["workspace.run", "command=sleep 60", "--timeout", "300ms"]), Some(124));
    assert_eq!(run(&["workspace.nothing"]), Some(2));
    assert_eq!(run(&["absent.tool"]), Some(3));
    let text = bench.fixture.read("audit.jsonl").unwrap();
    assert!(!text.contains("hunter2"));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<&str> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "tool-error", "ok", "timeout", "usage", "transport"]);
    assert_eq!(lines[0]["server"], "workspace");
    assert_eq!(lines[0]["tool"], "run");
    assert_eq!(lines[0]["decision"], "allowed");
    assert_eq!(lines[4]["decision"], "refused");
    assert_eq!(lines[0]["authority"].as_str().unwrap().len(), 64);
    assert_eq!(lines[0]["authority"], lines[1]["authority"]);
    assert_ne!(lines[0]["authority"], lines[2]["authority"]);
    // The limit begins a little earlier.
    assert!(lines[3]["duration_ms"].as_u64().unwrap() >= 100);
    assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'));
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(bench.fixture.join("audit.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_call_that_cannot_be_recorded_is_not_made() {
    let bench = Bench::new();
    let config = bench.configuration("audit.file = \"/nonexistent/directory/audit.jsonl\"\n");
    bench.run(["call", "--config", &config, "workspace.run", "command=touch ran"]).expect(6);
    assert!(!bench.fixture.exists("workspace/ran"));
}

#[test]
fn a_pipe_or_a_device_is_no_audit_file() {
    let bench = Bench::new();
    let pipe = bench.fixture.join("audit.pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for file in [pipe.as_path(), std::path::Path::new("/dev/null")] {
        let config = format!("audit.file = {:?}\n", file.display().to_string());
        let config = bench.configuration(&config);
        let words = ["call", "--config", &config, "workspace.run", "command=touch ran"];
        let ran = bench.run(words);
        ran.expect(6);
        assert!(ran.stderr.contains("it is no plain file"), "{}", ran.stderr);
        assert!(!bench.fixture.exists("workspace/ran"));
    }
}

/// On a disk of its own, which only root can make.
#[test]
fn a_full_disk_is_noticed_before_the_call_is_made() {
    if !requires("root, for a small disk", is_root()) {
        return;
    }
    let bench = Bench::new();
    let disk = bench.fixture.directory("disk");
    let config = bench.configuration(&format!(
        "audit.file = {:?}\n",
        disk.join("audit.jsonl").display().to_string()
    ));
    // In a mount namespace of its own: it ends with the shell.
    let script = r#"
        mount -t tmpfs -o size=128k none "$1" && cd "$2" || exit 99
        "$3" call --config "$4" workspace.run command='echo one'; echo "code $?"
        dd if=/dev/zero of="$1/fill" bs=1k status=none 2>/dev/null
        "$3" call --config "$4" workspace.run command='echo two'; echo "code $?"
        rm "$1/fill"
        "$3" call --config "$4" workspace.run command='echo three'; echo "code $?"
        wc -l < "$1/audit.jsonl""#;
    let mut shell = std::process::Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script, "sh"]).arg(&disk).arg(&bench.workspace);
    shell.arg(bench.program()).arg(&config).env("HOME", &bench.home);
    let ran = Ran::of(shell.output().unwrap());
    assert_eq!(ran.stdout, "one\ncode 0\ncode 6\nthree\ncode 0\n2\n", "{}", ran.stderr);
}

#[test]
fn a_sandboxed_command_cannot_rewrite_the_audit() {
    let bench = Bench::new();
    let file = bench.fixture.file("workspace/audit.jsonl", "");
    let config = bench.configuration(&format!("audit.file = {:?}\n", file.display().to_string()));
    let words = ["call", "--config", &config, "workspace.run", "command=echo forged > audit.jsonl"];
    bench.run(words).expect(1);
    let lines = bench.fixture.read("workspace/audit.jsonl").unwrap();
    assert!(lines.starts_with('{') && !lines.contains("forged"), "{lines}");
}
