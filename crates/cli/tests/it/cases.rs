//! Trouble that real servers made, seen from the command line. The servers are `connect`'s test data.

use std::time::{Duration, Instant};

use plenipo_testkit::{Deadline, processes_with_marker};

use crate::support::{Bench, Ran, data, python};

/// A configuration with one of the servers as `case`, marked so that its processes can be found.
fn case(bench: &Bench, number: &str) -> Option<(String, String)> {
    let python = python()?;
    let servers = data("../connect/tests/data/servers");
    for name in [format!("{number}.py"), "common.py".to_owned()] {
        bench.fixture.file(&name, std::fs::read(servers.join(&name)).unwrap());
    }
    let script = bench.fixture.join(format!("{number}.py"));
    let marker = format!("case-{number}-{}", std::process::id());
    let text = format!(
        "[mcp_servers.case]\ncommand = {python:?}\nargs = [{script:?}]\nenv = {{ CASE = {marker:?} }}\n"
    );
    Some((bench.configuration(&text), format!("CASE={marker}")))
}

#[test]
fn noise_bom_and_crlf_are_skipped_with_one_warning() {
    let bench = Bench::new();
    let Some((config, _)) = case(&bench, "01") else { return };
    let ran = bench.run(["call", "--config", &config, "case.echo", "s=hi"]);
    ran.expect(0);
    assert_eq!(ran.stdout, "echo:hi\n");
    assert_eq!(ran.stderr.matches("warning:").count(), 1, "{}", ran.stderr);
}

#[test]
fn split_utf8_big_lines_and_bad_bytes_lose_nothing() {
    let bench = Bench::new();
    let Some((config, _)) = case(&bench, "02") else { return };
    let text = "\u{8bfb}\u{53d6} \u{1f600}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} na\u{ef}ve \u{2028} end";
    let read = bench.run(["call", "--config", &config, "case.read"]);
    read.expect(0);
    assert_eq!(read.stdout, format!("{text}\n"));
    let big = bench.run(["call", "--config", &config, "case.big"]);
    big.expect(0);
    assert_eq!(big.stdout.trim_end_matches('\n'), text.repeat(100_000));
    let bad = bench.run(["call", "--config", &config, "case.badbytes"]);
    bad.expect(0);
    assert_eq!(bad.stdout, "after bad bytes\n");
    let small =
        bench.run(["call", "--config", &config, "case.big", "--max-message-size", "100000"]);
    small.expect(4);
    assert!(small.stderr.contains("100000"), "{}", small.stderr);
}

/// What a tool answers is its own affair, and arrives as it is.
#[test]
fn a_credential_that_a_local_server_repeats_is_not_printed() {
    const SECRET: &str = "hunter2-hunter2";
    let bench = Bench::new();
    let Some((config, _)) = case(&bench, "repeats") else { return };
    let table = std::fs::read_to_string(&config).unwrap();
    bench.configuration(&format!("{table}env_vars = [\"NOTES_TOKEN\"]\n"));
    let said = [("refuse", 4, "production"), ("crash", 3, "is expired")];
    for verbose in [None, Some("-v")] {
        for (tool, code, words) in said {
            let tool = format!("case.{tool}");
            let words_of = ["call", "--config", &config, &tool].into_iter().chain(verbose);
            let ran = Ran::of(bench.command(words_of).env("NOTES_TOKEN", SECRET).output().unwrap());
            ran.expect(code);
            assert!(ran.stderr.contains(words), "the control: {}", ran.stderr);
            assert!(ran.stderr.contains("a token is [redacted]"), "{}", ran.stderr);
            assert!(!format!("{ran:?}").contains("hunter2"), "{}", ran.stderr);
        }
    }
    let mut answer = bench.command(["call", "--config", &config, "case.answer"]);
    let answered = Ran::of(answer.env("NOTES_TOKEN", SECRET).output().unwrap());
    assert_eq!(answered.expect(0).stdout, format!("it is {SECRET}\n"));
}

#[test]
fn a_crash_is_told_at_once_with_code_and_last_words() {
    let bench = Bench::new();
    let Some((config, marker)) = case(&bench, "06") else { return };
    let begun = Instant::now();
    let crash = bench.run(["call", "--config", &config, "case.crash"]);
    crash.expect(3);
    assert!(crash.stderr.contains("`case`"), "{}", crash.stderr);
    assert!(crash.stderr.contains("42"), "{}", crash.stderr);
    assert!(crash.stderr.contains("Traceback: KeyError 'API_KEY'"), "{}", crash.stderr);
    let segv = bench.run(["call", "--config", &config, "case.segv"]);
    segv.expect(3);
    assert!(segv.stderr.contains("SIGSEGV"), "{}", segv.stderr);
    assert!(begun.elapsed() < Duration::from_secs(60), "a crash is no timeout");
    assert!(processes_with_marker(&marker).is_empty());
}

#[test]
fn a_stubborn_server_is_ended_and_its_answer_comes_before_that() {
    let bench = Bench::new();
    let Some((config, marker)) = case(&bench, "06") else { return };
    let ran = bench.run(["call", "--config", &config, "case.hi"]);
    ran.expect(0);
    assert_eq!(ran.stdout, "hi\n");
    let is_gone = || processes_with_marker(&marker).is_empty();
    assert!(Deadline::poll_until(Duration::from_secs(20), is_gone));
}

/// Exit codes, input and output, temporary files, sockets and leftovers, by a driver that knows only the contract.
#[test]
fn the_launcher_is_transparent() {
    let bench = Bench::new();
    let Some(python) = python() else { return };
    let driver = data("tests/data/transparent_launcher.py").display().to_string();
    let tool = format!("{} sandbox", bench.program().display());
    let mut command = bench.command_of(python.into(), [driver, tool]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.lines().count() >= 18 && said.lines().all(|line| line.starts_with("ok  ")),
        "{said}"
    );
}

#[test]
fn what_a_server_was_found_to_be_is_asked_once_and_kept_from_others() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = Bench::new();
    let Some((config, _)) = case(&bench, "peer") else { return };
    let log = bench.fixture.join("seen");
    let text = std::fs::read_to_string(&config).unwrap();
    let env = format!("env = {{ F_ERA = \"killer\", F_LOG = {log:?}, ");
    bench.configuration(&text.replace("env = { ", &env));
    let probes = || {
        let seen = std::fs::read_to_string(&log).unwrap();
        seen.matches("\"server/discover\"").count()
    };
    for _ in 0..3 {
        bench.run(["call", "--config", &config, "case.line"]).expect(0);
        assert_eq!(probes(), 1, "the server dies of it: it is probed in the first run only");
    }
    let memory = bench.home.join(".local/share/plenipo/memory");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&memory) & 0o777, 0o700);
    let kept: Vec<_> =
        std::fs::read_dir(&memory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(mode(file) & 0o777, 0o600);

    // What it holds is believed no more than a stranger.
    std::fs::write(file, "{\"era\":").unwrap();
    bench.run(["call", "--config", &config, "case.line"]).expect(0);
    assert_eq!(probes(), 2);
    std::fs::remove_file(file).unwrap();
    std::process::Command::new("mkfifo").arg(file).status().unwrap();
    let program = bench.program().display().to_string();
    let words = ["30", &program, "call", "--config", &config, "case.line"];
    let ran = Ran::of(bench.command_of("timeout".into(), words).output().unwrap());
    ran.expect(0);
    assert_eq!(probes(), 3, "a pipe in its place hangs nothing");
    std::fs::remove_dir_all(&memory).unwrap();
    std::fs::write(&memory, "no directory").unwrap();
    bench.run(["call", "--config", &config, "case.line"]).expect(0);
    assert_eq!(probes(), 4);
}

#[test]
fn a_server_that_is_switched_off_is_not_started() {
    let bench = Bench::new();
    let touched = bench.fixture.join("touched");
    let server = |more: &str| {
        bench.configuration(&format!(
            "[mcp_servers.off]\ncommand = \"/usr/bin/touch\"\nargs = [{touched:?}]\n{more}"
        ))
    };
    let config = server("enabled = false\n");
    for words in [&["tools"][..], &["tools", "off"], &["servers"], &["call", "off.x"]] {
        let ran = bench.run([&["--config", &config], words].concat());
        assert!(!touched.exists(), "{words:?}: {}", ran.stderr);
    }
    let ran = bench.run(["--config", &config, "call", "off.x"]);
    assert!(ran.expect(2).stderr.contains("`enabled = false`"), "{}", ran.stderr);
    bench.run(["--config", &server(""), "tools", "off"]);
    assert!(touched.exists(), "the control");
}

/// A server that cannot be there twice is free again as soon as the command is over.
#[test]
fn a_server_that_holds_a_lock_can_be_asked_again_at_once() {
    let bench = Bench::new();
    let Some((config, _)) = case(&bench, "01") else { return };
    let lock = bench.fixture.join("lock");
    let script = bench.fixture.join("01.py");
    let locked = bench.fixture.file(
        "locked.py",
        format!(
            "import fcntl, runpy, sys\nlock = open({lock:?}, 'w')\n\
             fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\nsys.path.insert(0, {:?})\n\
             runpy.run_path({script:?}, run_name='__main__')\n",
            bench.fixture.path()
        ),
    );
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace(&format!("{script:?}"), &format!("{locked:?}"));
    std::fs::write(&config, text).unwrap();
    for words in [&["tools", "case"][..], &["tools", "case"], &["call", "case.echo", "s=hi"]] {
        bench.run([&["--config", &config], words].concat()).expect(0);
    }
}

#[test]
fn a_long_answer_is_whole_for_a_slow_reader_and_no_fault_for_one_that_leaves() {
    use std::io::Read;
    use std::process::Stdio;
    let bench = Bench::new();
    let Some((config, _)) = case(&bench, "02") else { return };
    let whole = bench.run(["call", "--config", &config, "case.big"]);
    let whole = whole.expect(0).stdout.clone();
    assert!(whole.len() > 1_000_000, "{}", whole.len());
    let start = || {
        let mut command = bench.command(["call", "--config", &config, "case.big"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut slow = start();
    let mut stdout = slow.stdout.take().unwrap();
    let mut read = vec![0; 65_536];
    stdout.read_exact(&mut read).unwrap();
    // Nothing is read until the program would have ended, if it did not wait for its reader.
    let stopped = || slow.try_wait().unwrap().is_some();
    assert!(!Deadline::poll_until(Duration::from_secs(1), stopped));
    stdout.read_to_end(&mut read).unwrap();
    assert!(slow.wait().unwrap().success());
    assert!(read == whole.as_bytes(), "{} of {}", read.len(), whole.len());

    let mut leaving = start();
    drop(leaving.stdout.take());
    let output = leaving.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "a reader that has gone is no fault");
}

/// The state names the directory as a URI, which the launcher reads again.
#[test]
fn a_command_runs_in_a_directory_of_any_name() {
    let bench = Bench::new();
    for name in ["with space", "a#b%20c?d", "\u{e9}t\u{e9}-\u{8bfb}", "c:\\x"] {
        let directory = bench.fixture.join(format!("workspace/{name}"));
        std::fs::create_dir_all(&directory).unwrap();
        let ran = bench.run([
            "call".as_ref(),
            "-C".as_ref(),
            directory.as_os_str(),
            "workspace.run".as_ref(),
            "command=pwd; touch here".as_ref(),
        ]);
        ran.expect(0);
        assert!(ran.stdout.contains(name), "{name}: {}", ran.stdout);
        assert!(directory.join("here").exists(), "{name}");
    }
}
