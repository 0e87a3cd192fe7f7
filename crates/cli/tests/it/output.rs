//! Where the answer cannot be written, or what it takes to get one is not to be had.

use std::fs::{File, OpenOptions};
use std::process::Command;

use crate::support::{Bench, Ran, python};

/// Every command that prints, with what it needs to have something to print.
const PRINTING: [&[&str]; 14] = [
    &["--help"],
    &["--version"],
    &["call", "--help"],
    &["sandbox", "--help"],
    &["tools", "workspace"],
    &["servers"],
    &["config", "check"],
    &["config", "show"],
    &["config", "path"],
    &["auth", "status"],
    &["doctor"],
    &["call", "workspace.run", "command=echo x"],
    &["call", "workspace.run", "command=echo x", "--json"],
    &["sandbox", "--explain", "--", "true"],
];

/// The same command below a shell that does `before` first.
fn after(bench: &Bench, before: &str, words: &[&str]) -> Command {
    let mut command = bench.command_of("/bin/sh".into(), ["-c", before]);
    command.arg(bench.program()).args(words);
    command
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    let server = "[mcp_servers.x]\ncommand = \"x\"\nenabled = false\n";
    bench.fixture.file("home/.config/plenipo/plenipo.toml", server);
    for words in PRINTING {
        let ran = |command: &mut Command| Ran::of(command.output().unwrap());
        let readable = ran(&mut bench.command(words));
        assert!(!readable.stdout.is_empty(), "the control: {words:?}: {readable:?}");
        let failed = |ran: Ran, why: &str| {
            ran.expect(3);
            let expected = format!("failed to write to standard output: {why}");
            assert!(ran.stderr.contains(&expected), "{words:?}: {}", ran.stderr);
        };
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        failed(ran(bench.command(words).stdout(full)), "No space left on device");
        let closed = after(&bench, "exec \"$0\" \"$@\" >&-", words).output().unwrap();
        failed(Ran::of(closed), "it is closed");
        let input = File::open("/dev/null").unwrap();
        failed(ran(bench.command(words).stdout(input)), "it is closed, or not open for writing");
    }
}

#[test]
fn nothing_to_print_needs_no_output() {
    let bench = Bench::new();
    for words in [&["sandbox", "--", "true"][..], &["trust", "--list"]] {
        let closed = after(&bench, "exec \"$0\" \"$@\" >&-", words).output().unwrap();
        Ran::of(closed).expect(0);
    }
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
    let ran = Ran::of(bench.command(["config", "path"]).stdout(null).output().unwrap());
    assert_eq!(ran.expect(0).stderr, "", "a null device is no closed output");
}

#[test]
fn a_server_has_to_have_somewhere_to_answer() {
    let bench = Bench::new();
    let words = ["server", "workspace"];
    let ran = Ran::of(after(&bench, "exec \"$0\" \"$@\" >&-", &words).output().unwrap());
    ran.expect(3);
    assert!(ran.stderr.contains("standard output: it is closed"), "{}", ran.stderr);
    bench.run(words).expect(0);
}

#[test]
fn too_few_descriptors_are_told_with_the_limit_to_raise() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let script = bench.fixture.file("server.py", "input()\n").display().to_string();
    let config = bench
        .configuration(&format!("[mcp_servers.e]\ncommand = {python:?}\nargs = [{script:?}]\n"));
    for most in [8, 12, 16, 18] {
        let before = format!("ulimit -n {most}; exec \"$0\" \"$@\"");
        let words = ["--config", &config, "tools", "e"];
        let ran = Ran::of(after(&bench, &before, &words).output().unwrap());
        ran.expect(3);
        assert!(ran.stderr.contains("`ulimit -n`"), "{most}: {}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{most}: {}", ran.stderr);
        assert!(!ran.stderr.contains("executable"), "{most}: {}", ran.stderr);
    }
}

/// The signal of that limit would end the program when it writes what it keeps for next time.
#[test]
fn a_limit_on_the_size_of_files_costs_no_answer() {
    let bench = Bench::new();
    let words = ["call", "workspace.run", "command=ulimit -f; echo x"];
    let ran = Ran::of(after(&bench, "ulimit -f 0; exec \"$0\" \"$@\"", &words).output().unwrap());
    assert_eq!(ran.expect(0).stdout, "0\nx\n");
    let into = bench.fixture.join("answer").display().to_string();
    let before = format!("ulimit -f 0; exec \"$0\" \"$@\" > '{into}'");
    let ran = Ran::of(after(&bench, &before, &words).output().unwrap());
    ran.expect(3);
    assert!(ran.stderr.contains("standard output: File too large"), "{}", ran.stderr);
}

#[test]
fn what_others_named_stays_on_its_line() {
    let bench = Bench::new();
    let file = bench.fixture.file(
        "a\nnote forged\n.toml",
        "[mcp_servers.x]\nurl = \"https://a.example/\"\nhttp_headers = { Authorization = \"Bearer s3cr3t-s3cr3t\" }\n",
    );
    let file = file.display().to_string();
    let check = bench.run(["config", "check", &file]);
    assert!(check.stdout.contains("hint: run `chmod"), "the control: {}", check.stdout);
    let unreadable = bench.run(["--config", &file, "call", "y.z"]);
    let missing = format!("{file}missing");
    let missing = bench.run(["--config", &missing, "call", "y.z"]);
    for ran in [check, unreadable, missing] {
        let both = ran.stdout + &ran.stderr;
        assert!(both.lines().all(|line| !line.starts_with("note forged")), "{both}");
    }
}

#[test]
fn an_answer_over_the_limit_has_the_code_of_the_other_limits() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let script = bench.fixture.file(
        "server.py",
        r#"
import json, sys
tool = {"name": "hi", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "x", "version": "1"}},
        "tools/list": {"tools": [tool, {**tool, "name": "ho"}]},
        "tools/call": {"content": [{"type": "text", "text": "x" * 100000}]},
    }.get(message["method"])
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#,
    );
    let config = |more: &str| {
        let script = script.display().to_string();
        bench.configuration(&format!(
            "[mcp_servers.e]\ncommand = {python:?}\nargs = [{script:?}]\n{more}"
        ))
    };
    let usual = config("");
    let call =
        |size: &str| bench.run(["--config", &usual, "call", "e.hi", "--max-message-size", size]);
    let ran = call("64KiB");
    ran.expect(4);
    assert!(ran.stderr.contains("raise `max_message_bytes`"), "{}", ran.stderr);
    call("128KiB").expect(0);
    for size in ["4096", "65535", "63KiB", "1025MiB"] {
        let ran = call(size);
        ran.expect(2);
        assert!(ran.stderr.contains("expected 64KiB to 1GiB"), "{}", ran.stderr);
    }
    let few = config("max_tools = 1\n");
    bench.run(["--config", &few, "call", "e.hi"]).expect(4);
}
