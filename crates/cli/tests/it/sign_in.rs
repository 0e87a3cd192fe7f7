//! Signing in from the command line, with a browser that consents at once. The servers are `connect`'s test data.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Bench, Ran, data, python};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A fake server with an authorization server of its own; it ends when its input does.
pub(crate) struct Fake {
    child: Child,
    _input: ChildStdin,
    pub(crate) mcp: String,
    stats: String,
    log: std::path::PathBuf,
}

impl Fake {
    pub(crate) fn start(bench: &Bench, script: &str, mode: &str) -> Option<Self> {
        let python = python()?;
        let log = bench.fixture.join("fake.log");
        let mut child = Command::new(python)
            .arg(data("../connect/tests/data/servers").join(script))
            .env("F_MODE", mode)
            .env("F_LOG", &log)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let input = child.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let urls: Value = serde_json::from_str(line.strip_prefix("READY ").unwrap()).unwrap();
        let url = |name: &str| urls[name].as_str().unwrap_or_default().to_owned();
        Some(Self { child, _input: input, mcp: url("mcp"), stats: url("stats"), log })
    }

    pub(crate) fn configuration(&self, bench: &Bench, more: &str) -> String {
        bench.configuration(&format!("[mcp_servers.notes]\nurl = {:?}\n{more}", self.mcp))
    }

    pub(crate) fn stats(&self) -> Value {
        serde_json::from_str(&get(&self.stats).1).unwrap()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Status line with headers, and body.
pub(crate) fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

pub(crate) fn location(head: &str) -> String {
    let found = head.lines().find_map(|line| line.strip_prefix("Location: "));
    found.expect("the page sends the browser back").to_owned()
}

/// Begins a sign-in and waits for the address of its page.
pub(crate) fn begin(command: &mut Command) -> (Child, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = child.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).ok();
        sender.send(line).ok();
    });
    let line = receiver.recv_timeout(PATIENCE).expect("an address is printed");
    (child, line.trim().to_owned())
}

/// `plenipo login --no-browser` with more words.
pub(crate) fn login_command(bench: &Bench, arguments: &[&str]) -> Command {
    bench.command([&["login", "--no-browser"], arguments].concat())
}

/// A whole sign-in; also what the browser was shown at its end.
pub(crate) fn login(bench: &Bench, arguments: &[&str]) -> (Ran, String) {
    let (child, page) = begin(&mut login_command(bench, arguments));
    assert!(page.starts_with("http://127.0.0.1:"), "the address alone: {page:?}");
    let back = location(&get(&page).0);
    let shown = get(&back);
    (Ran::of(child.wait_with_output().unwrap()), format!("{}\n{}", shown.0, shown.1))
}

/// Everything secret that is stored.
fn stored_secrets(bench: &Bench) -> Vec<String> {
    let directory = bench.home.join(".local/share/plenipo/credentials");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.filter_map(|path| std::fs::read_to_string(path).ok());
    let mut secrets = Vec::new();
    for text in texts.filter(|text| text.starts_with('{')) {
        let record: Value = serde_json::from_str(&text).unwrap();
        collect(&record, &mut secrets);
    }
    secrets
}

fn collect(value: &Value, secrets: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(text) if name.ends_with("_token") => secrets.push(text.to_owned()),
            _ => collect(value, secrets),
        }
    }
}

#[test]
fn scopes_step_up_as_the_server_asks_and_a_batch_run_says_what_to_do() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "13.py", "") else { return };
    let config = fake.configuration(&bench, "");
    let config = ["--config", &config];
    let run = |words: &[&str]| bench.run([&config[..], &["-v"], words].concat());

    let before = run(&["call", "notes.read"]);
    before.expect(5);
    assert!(before.stderr.contains("hint: run `plenipo login notes`"), "{}", before.stderr);

    let (ran, page) = login(&bench, &["-v", config[0], config[1], "notes"]);
    ran.expect(0);
    assert!(ran.stderr.contains("signed in to `notes`"), "{}", ran.stderr);
    assert!(page.contains("200 OK") && page.contains("You can close this page"), "{page}");
    assert!(page.contains("Referrer-Policy: no-referrer"), "{page}");
    assert_eq!(run(&["call", "notes.read"]).expect(0).stdout, "read done\n");

    let write = run(&["call", "notes.write"]);
    write.expect(5);
    assert!(write.stderr.contains("it needs the scope `files:write`"), "{}", write.stderr);
    let hint = "run `plenipo login notes --scopes \"files:read files:write\"`";
    assert!(write.stderr.contains(hint), "{}", write.stderr);
    let (more, _) =
        login(&bench, &[config[0], config[1], "notes", "--scopes", "files:read files:write"]);
    more.expect(0);
    assert_eq!(run(&["call", "notes.write"]).expect(0).stdout, "write done\n");
    assert_eq!(run(&["call", "notes.read"]).expect(0).stdout, "read done\n");
    let never = run(&["call", "notes.never"]);
    never.expect(5);

    let stats = fake.stats();
    assert_eq!(stats["authorize"], serde_json::json!(["files:read", "files:read files:write"]));
    assert!(stats["forbidden"].as_u64().unwrap() <= 5, "{stats}");

    let status = run(&["auth", "status", "--json"]);
    let rows: Value = serde_json::from_str(&status.expect(0).stdout).unwrap();
    assert_eq!(rows[0]["servers"], serde_json::json!(["notes"]));
    assert_eq!(rows[0]["resource"], fake.mcp.as_str());
    assert_eq!(rows[0]["refreshable"], true);
    assert_eq!(rows[0]["scopes"].as_array().unwrap().len(), 2);
    let told = run(&["auth", "status"]);
    assert!(told.stdout.contains("files:read files:write"), "{}", told.stdout);

    // Nothing that was ever printed holds a token, a code, a verifier or the client's secrets.
    let secrets = stored_secrets(&bench);
    assert!(secrets.len() >= 2, "the control: they are stored");
    let log = std::fs::read_to_string(&fake.log).unwrap();
    assert!(log.contains("code_challenge"), "the control: the fake saw the sign-in");
    for ran in [&before, &ran, &write, &more, &never, &status, &told] {
        for secret in &secrets {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{}", ran.stderr);
        }
        assert!(
            !ran.stderr.contains("code_verifier") && !ran.stderr.contains("code="),
            "{}",
            ran.stderr
        );
    }

    let out = run(&["logout", "notes"]);
    out.expect(0);
    assert!(out.stderr.contains("signed out of `notes`"), "{}", out.stderr);
    assert!(stored_secrets(&bench).is_empty());
    run(&["call", "notes.read"]).expect(5);
    assert_eq!(run(&["auth", "status", "--json"]).expect(0).stdout, "[]\n");
}

#[test]
fn odd_token_answers_are_taken_or_told() {
    for (mode, least, most) in [
        ("keeps", 2, 1000),
        ("no-expiry", 0, 0),
        ("zero", 2, 1000),
        ("string", 0, 0),
        ("form", 0, 1000),
        ("weird-type", 0, 0),
    ] {
        let bench = Bench::new();
        let Some(fake) = Fake::start(&bench, "12.py", mode) else { return };
        let config = fake.configuration(&bench, "");
        login(&bench, &["--config", &config, "notes"]).0.expect(0);
        let (mut calls, mut stats) = (0_u64, fake.stats());
        let deadline = std::time::Instant::now() + PATIENCE;
        while calls < 3 || stats["refresh"].as_u64().unwrap() < least {
            let ran = bench.run(["call", "--config", &config, "notes.hi"]);
            assert_eq!(ran.expect(0).stdout, "hi\n", "{mode}");
            (calls, stats) = (calls + 1, fake.stats());
            assert!(std::time::Instant::now() < deadline, "{mode}: {stats}");
        }
        assert_eq!(stats["code"], 1, "{mode}: {stats}");
        assert_eq!(stats["refresh_without_token"], 0, "{mode}: {stats}");
        let count = stats["refresh"].as_u64().unwrap();
        assert!(count <= most, "{mode}: {stats}");
        assert!(count <= calls * 8, "no loop within a call: {mode}: {stats}");
    }
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "err200") else { return };
    let config = fake.configuration(&bench, "");
    let (ran, page) = login(&bench, &["--config", &config, "notes"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("S-77"), "{}", ran.stderr);
    assert!(page.contains("Not signed in") && page.contains("S-77"), "{page}");
}

#[test]
fn a_pasted_address_signs_in_and_strangers_are_turned_away() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    let (mut child, page) = begin(&mut login_command(&bench, &["--config", &config, "notes"]));
    let back = location(&get(&page).0);
    let base = back.split("/callback").next().unwrap();
    for stranger in [
        format!("{base}/favicon.ico"),
        format!("{base}/callback?code=evil&state=evil"),
        format!("{base}/callback"),
    ] {
        assert!(get(&stranger).0.starts_with("HTTP/1.1 404"), "{stranger}");
    }
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{base}/callback?code=evil&state=evil\n{back}").unwrap();
    drop(input);
    let ran = Ran::of(child.wait_with_output().unwrap());
    ran.expect(0);
    assert!(ran.stderr.contains("belongs to another sign-in"), "{}", ran.stderr);
    assert_eq!(fake.stats()["code"], 1);
    assert_eq!(bench.run(["call", "--config", &config, "notes.hi"]).expect(0).stdout, "hi\n");
}

#[test]
fn what_is_no_answer_is_asked_for_again_in_few_words() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    let elsewhere = |back: &str| back.replacen("127.0.0.1", "evil.example", 1);
    for (pasted, expected) in [
        (&(|page: &str, _: &str| page.to_owned()) as &dyn Fn(&str, &str) -> String, "sign-in page"),
        (&|_, back| elsewhere(back), "does not begin with `http://127.0.0.1:"),
        (&|_, back| back.replacen("/callback", "/other", 1), "does not begin with"),
        (&|_, _| "x".repeat(200_000), "is not the address"),
        (&|_, _| "y\n".repeat(100_000), "is not the address"),
    ] {
        let (mut child, page) = begin(&mut login_command(&bench, &["--config", &config, "notes"]));
        let back = location(&get(&page).0);
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}\n{back}", pasted(&page, &back)).unwrap();
        drop(input);
        let ran = Ran::of(child.wait_with_output().unwrap());
        ran.expect(0);
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("warning: ").count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("paste the address that begins with http://127.0.0.1:"));
        assert!(ran.stderr.len() < 2048, "{}", ran.stderr.len());
    }
}

#[test]
fn a_second_sign_in_uses_the_client_that_was_registered() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    for _ in 0..2 {
        login(&bench, &["--config", &config, "notes"]).0.expect(0);
    }
    let log = std::fs::read_to_string(&fake.log).unwrap();
    assert_eq!(log.matches("\"ev\": \"register\"").count(), 1, "{log}");
}

#[test]
fn a_port_that_is_taken_is_told_and_nothing_is_registered() {
    let bench = Bench::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, &format!("oauth = {{ callback_port = {port} }}\n"));
    let ran = bench.run(["login", "--no-browser", "--config", &config, "notes"]);
    ran.expect(3);
    assert!(ran.stderr.contains(&format!("port {port}")), "{}", ran.stderr);
    drop(taken);
    let (ran, _) = login(&bench, &["--config", &config, "notes"]);
    ran.expect(0);
    let log = std::fs::read_to_string(&fake.log).unwrap();
    assert_eq!(log.matches("\"ev\": \"register\"").count(), 1, "{log}");
    assert!(log.contains(&format!("127.0.0.1:{port}/callback")), "{log}");
}

#[test]
fn servers_that_nobody_signs_in_to() {
    let bench = Bench::new();
    let config = bench.configuration(
        "[mcp_servers.local]\ncommand = \"x\"\n\
         [mcp_servers.keyed]\nurl = \"https://mcp.example/mcp\"\nbearer_token_env_var = \"T\"\n\
         [mcp_servers.plain]\nurl = \"http://mcp.example/mcp\"\n",
    );
    for (name, expected) in [
        ("local", "its credentials come from its environment"),
        ("keyed", "has credentials in its configuration"),
        ("plain", "only https, or http on loopback"),
        ("none", "there is no server `none`"),
    ] {
        for command in ["login", "logout"] {
            let ran = bench.run(["--config", &config, command, name]);
            ran.expect(2);
            assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_device_sign_in_needs_a_server_that_has_one() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    let ran = bench.run(["login", "--device", "--config", &config, "notes"]);
    ran.expect(4);
    assert!(ran.stderr.contains("device_authorization_endpoint"), "{}", ran.stderr);
    let log = std::fs::read_to_string(&fake.log).unwrap_or_default();
    assert!(!log.contains("register"), "nothing is registered: {log}");
}
