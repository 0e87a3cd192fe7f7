//! Where credentials are kept, what a broken store stops and what it does not, and whose they are.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use plenipo_connect::HttpClientOptions;
use plenipo_credentials::{
    CredentialKey, FileStore, Grant, KeyringStore, PostgresStore, SealingKey, Vault,
};
use plenipo_oauth::{
    ClientCredential, ClientRegistration, Issuer, ResourceId, TokenResponse, TokenType,
};
use plenipo_redact::Secret;
use plenipo_testkit::{PostgresCluster, SecretService};
use serde_json::Value;

use crate::person::{Steps, on_terminal};
use crate::sign_in::{Fake, begin, get, location, login, login_command};
use crate::support::{Bench, Ran, python};

fn directory(bench: &Bench) -> PathBuf {
    bench.home.join(".local/share/plenipo/credentials")
}

/// A server that answers everything as it is told and remembers what was asked.
struct Plain {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Plain {
    /// `/mcp` is answered with `head`, anything else with 404.
    fn start(head: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 4096];
                let count = stream.read(&mut request).unwrap_or(0);
                let text = String::from_utf8_lossy(&request[..count]).into_owned();
                let line = text.lines().next().unwrap_or_default().to_owned();
                let head = if line.contains(" /mcp ") { head } else { "404 Not Found\r\n" };
                noted.lock().unwrap().push(line);
                let answer =
                    format!("HTTP/1.1 {head}Content-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).ok();
            }
        });
        Self { url, seen }
    }

    fn posts(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|line| line.starts_with("POST") && !line.contains("/mcp"))
            .cloned()
            .collect()
    }
}

#[test]
fn a_store_that_fails_stops_only_servers_that_want_a_token() {
    let bench = Bench::new();
    let Some(free) = Fake::start(&bench, "10.py", "") else { return };
    let Some(closed) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = bench.configuration(&format!(
        "[mcp_servers.free]\nurl = {:?}\n[mcp_servers.closed]\nurl = {:?}\n",
        free.mcp, closed.mcp
    ));
    let run = |words: &[&str]| bench.run([&["--config", &config], words].concat());
    let place = directory(&bench);
    fs::create_dir_all(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    run(&["tools", "free"]).expect(0);
    let ran = run(&["tools", "closed"]);
    ran.expect(2);
    assert!(ran.stderr.contains("it has mode 0755"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(&format!("hint: run `chmod go= {}`", place.display())),
        "{}",
        ran.stderr
    );

    // Behind a link somebody else may have made the directory: no command that would change it.
    let elsewhere = bench.fixture.join("elsewhere");
    fs::rename(&place, &elsewhere).unwrap();
    symlink(&elsewhere, &place).unwrap();
    run(&["tools", "free"]).expect(0);
    for words in [&["tools", "closed"][..], &["login", "closed"], &["auth", "status"]] {
        let ran = run(words);
        ran.expect(2);
        assert!(ran.stderr.contains("leads to a directory with mode 0755"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("hint: let ") && !ran.stderr.contains("chmod"),
            "{}",
            ran.stderr
        );
    }
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
    run(&["tools", "closed"]).expect(5);
}

#[test]
fn what_a_store_needs_is_asked_for_when_a_token_is() {
    let bench = Bench::new();
    let Some(free) = Fake::start(&bench, "10.py", "") else { return };
    let Some(closed) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let secret = bench.fixture.file("passphrase", "correct horse\n");
    let servers = format!(
        "[mcp_servers.free]\nurl = {:?}\n[mcp_servers.closed]\nurl = {:?}\n",
        free.mcp, closed.mcp
    );
    let sealed_by = |key: &str, value: &str| {
        bench.configuration(&format!(
            "credentials_store = \"file\"\n[credentials]\n{key} = {value:?}\n{servers}"
        ))
    };
    let path = secret.display().to_string();
    let pipe = bench.fixture.file("pipe", "");
    fs::remove_file(&pipe).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let pipe = pipe.display().to_string();
    for (key, value, expected) in [
        (
            "passphrase_env_var",
            "ABSENT",
            "it needs a passphrase in the variable `ABSENT`, which is not set",
        ),
        ("key_env_var", "PATH", "the key is not 32 bytes in hexadecimal or base64"),
        ("passphrase_file", &path, "others may not have access"),
        ("passphrase_file", &pipe, "is no regular file"),
    ] {
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
        let config = sealed_by(key, value);
        bench.run(["--config", &config, "tools", "free"]).expect(0);
        let ran = bench.run(["--config", &config, "tools", "closed"]);
        ran.expect(2);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let config = sealed_by("passphrase_file", &path);
    login(&bench, &["--config", &config, "closed"]).0.expect(0);
    bench.run(["--config", &config, "tools", "closed"]).expect(0);
    for entry in fs::read_dir(directory(&bench)).unwrap() {
        let kept = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&kept).contains("_token"));
    }
    let unsealed = bench.configuration(&format!("credentials_store = \"file\"\n{servers}"));
    let ran = bench.run(["--config", &unsealed, "tools", "closed"]);
    ran.expect(2);
    assert!(ran.stderr.contains("no passphrase or key is configured"), "{}", ran.stderr);
}

#[test]
fn auto_takes_files_for_an_absent_keyring_and_not_for_a_broken_one() {
    let bench = Bench::new();
    let Some(closed) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = closed.configuration(&bench, "");
    let socket = bench.fixture.join("bus");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let address = format!("unix:path={}", socket.display());
    let run = |words: &[&str]| {
        let mut command = bench.command([&["--config", &config], words].concat());
        Ran::of(command.env("DBUS_SESSION_BUS_ADDRESS", &address).output().unwrap())
    };
    for words in [&["call", "notes.hi"][..], &["login", "notes"], &["auth", "status"]] {
        let ran = run(words);
        ran.expect(3);
        assert!(ran.stderr.contains("the default keyring"), "{}", ran.stderr);
    }
    assert!(!directory(&bench).exists(), "nothing is kept elsewhere");
    login(&bench, &["--config", &config, "notes"]).0.expect(0);
    assert!(directory(&bench).exists(), "the control: without a bus there are files");

    let only = closed.configuration(&bench, "").replace("plenipo.toml", "only.toml");
    fs::write(
        &only,
        format!("credentials_store = \"keyring\"\n{}", fs::read_to_string(&config).unwrap()),
    )
    .unwrap();
    let ran = bench.run(["--config", &only, "call", "notes.hi"]);
    ran.expect(2);
    assert!(ran.stderr.contains("there is no session bus"), "{}", ran.stderr);
    assert!(ran.stderr.contains("credentials_store = \"file\""), "{}", ran.stderr);
}

/// Signs in, calls, sees where the sign-in is kept, signs out; with `variable` set for each command.
fn round_trip(bench: &Bench, config: &str, (name, value): (&str, &str), place: &str) {
    let run = |words: &[&str]| {
        let mut command = bench.command([&["--config", config], words].concat());
        Ran::of(command.env(name, value).output().unwrap())
    };
    run(&["call", "notes.hi"]).expect(5);
    let mut command = login_command(bench, &["--config", config, "notes"]);
    let (child, page) = begin(command.env(name, value));
    assert!(get(&location(&get(&page).0)).1.contains("You can close this page"));
    let ran = Ran::of(child.wait_with_output().unwrap());
    ran.expect(0);
    assert!(ran.stderr.contains(&format!("kept in {place}")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("not encrypted"), "{}", ran.stderr);
    assert_eq!(run(&["call", "notes.hi"]).expect(0).stdout, "hi\n");
    let rows: Value =
        serde_json::from_str(&run(&["auth", "status", "--json"]).expect(0).stdout).unwrap();
    assert!(rows[0]["store"].as_str().unwrap().starts_with(place), "{rows}");
    assert!(!directory(bench).exists(), "nothing is kept in files");
    run(&["logout", "notes"]).expect(0);
    run(&["call", "notes.hi"]).expect(5);
    assert_eq!(run(&["auth", "status", "--json"]).expect(0).stdout, "[]\n");
}

#[test]
fn a_sign_in_is_kept_in_the_keyring_where_there_is_one() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let is_there = |service: &SecretService| {
        let locks = service.fixture().join("locks");
        KeyringStore::new(Some(service.address()), locks).exists().unwrap()
    };
    let Some(mut service) = SecretService::start(is_there) else { return };
    for choice in ["", "credentials_store = \"keyring\"\n"] {
        let config = fake.configuration(&bench, "");
        let text = format!("{choice}{}", fs::read_to_string(&config).unwrap());
        fs::write(&config, text).unwrap();
        let bus = service.address();
        round_trip(&bench, &config, ("DBUS_SESSION_BUS_ADDRESS", &bus), "keyring: ");
    }
    service.restart(false, is_there);
    let config = fake.configuration(&bench, "");
    let mut command = bench.command(["--config", &config, "call", "notes.hi"]);
    let ran = Ran::of(command.env("DBUS_SESSION_BUS_ADDRESS", service.address()).output().unwrap());
    ran.expect(2);
    assert!(ran.stderr.contains("it is locked"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: unlock it"), "{}", ran.stderr);
}

#[test]
fn a_sign_in_is_kept_in_a_database() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let key = Secret::new("0f".repeat(32));
    let key_file = bench.fixture.file("key", key.expose());
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
    let answers = |address: &str| {
        let key = SealingKey::parse(&key).unwrap();
        let tls = HttpClientOptions::default().tls_config().unwrap();
        let store = PostgresStore::new(&Secret::new(address.to_owned()), key, tls);
        Vault::new(Arc::new(store.unwrap())).records().is_ok()
    };
    let Some(cluster) = PostgresCluster::start(answers) else { return };
    let config = bench.configuration(&format!(
        "credentials_store = \"postgres\"\n[credentials]\ndatabase_url_env_var = \"DATABASE\"\n\
         key_file = {key_file:?}\n[mcp_servers.notes]\nurl = {:?}\n",
        fake.mcp
    ));
    let address = cluster.address();
    round_trip(&bench, &config, ("DATABASE", &address), "postgres: database `postgres` at ");
    let ran = bench.run(["--config", &config, "call", "notes.hi"]);
    ran.expect(2);
    assert!(ran.stderr.contains("the variable `DATABASE`, which is not set"), "{}", ran.stderr);
}

#[test]
fn nothing_is_registered_at_guessed_addresses() {
    let bench = Bench::new();
    for (head, expected, posts) in [
        ("200 OK\r\n", "it does not ask for a token", 0),
        ("404 Not Found\r\n", "it does not ask for a token", 0),
        // A server of the newer revisions, whose document is missing.
        (
            "401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata=\"http://127.0.0.1:1/x\"\r\n",
            "",
            0,
        ),
        // MCP of 2025-03-26 has fixed addresses for a server that asks and publishes nothing.
        ("401 Unauthorized\r\n", "/register", 1),
    ] {
        let server = Plain::start(head);
        let config = bench.configuration(&format!("[mcp_servers.notes]\nurl = {:?}\n", server.url));
        for form in ["--no-browser", "--device"] {
            let ran = bench.run(["--config", &config, "login", form, "notes"]);
            assert_ne!(ran.code, Some(0));
            if form == "--no-browser" {
                assert!(ran.stderr.contains(expected), "{head}: {}", ran.stderr);
            }
        }
        assert_eq!(server.posts().len(), posts, "{head}: {:?}", server.posts());
    }
}

#[test]
fn junk_in_the_store_is_said_and_stops_nothing() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    login(&bench, &["--config", &config, "notes"]).0.expect(0);
    let place = directory(&bench);
    let private = |name: &str, text: &str| {
        fs::write(place.join(name), text).unwrap();
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    private("notes.txt", "x");
    let broken = format!("{}.credential", "0".repeat(64));
    private(&broken, "{");
    let run = |words: &[&str]| bench.run([&["--config", &config], words].concat());
    assert_eq!(run(&["call", "notes.hi"]).expect(0).stdout, "hi\n");
    let status = run(&["auth", "status", "--json"]);
    let rows: Value = serde_json::from_str(&status.expect(5).stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert!(status.stderr.contains("notes.txt is no credential"), "{}", status.stderr);
    assert!(
        status.stderr.contains(&broken) && status.stderr.contains("remove "),
        "{}",
        status.stderr
    );
    run(&["logout", "notes"]).expect(0);
    let ran = run(&["logout", "notes"]);
    ran.expect(2);
    assert!(ran.stderr.contains("failed to sign out of server `notes` wholly"), "{}", ran.stderr);
    // One that cannot be read may have been the one.
    let ran = run(&["call", "notes.hi"]);
    ran.expect(2);
    assert!(ran.stderr.contains(&broken), "{}", ran.stderr);
}

#[test]
fn a_credential_that_others_could_have_read_stops_its_own_server_only() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    login(&bench, &["--config", &config, "notes"]).0.expect(0);
    let place = directory(&bench);
    let records = || {
        let entries = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.extension().is_some_and(|end| end == "credential"))
            .collect::<Vec<_>>()
    };
    let own = records().remove(0);
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let run = |words: &[&str]| bench.run([&["--config", &config], words].concat());
    mode(&own, 0o644);
    let name = own.display().to_string();
    for words in [
        &["logout", "notes"][..],
        &["logout", "--json", "notes"],
        &["call", "notes.hi"],
        &["login", "notes"],
    ] {
        let ran = run(words);
        ran.expect(2);
        assert!(
            ran.stderr.contains(&format!("{name}: it has mode 0644")),
            "{words:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(&format!("hint: run `chmod go= {name}`")), "{}", ran.stderr);
        assert!(!ran.stderr.contains("nobody is signed in"), "{}", ran.stderr);
    }
    assert!(fs::read_to_string(&own).unwrap().contains("access_token"), "the control: it was left");
    let status = run(&["auth", "status"]);
    assert!(status.expect(5).stdout.contains("it has mode 0644"), "{}", status.stdout);
    assert!(!status.stdout.contains("nobody is signed in"), "{}", status.stdout);

    // Another server's matters to nobody else: sign-in, call and sign-out go on, and it is said.
    mode(&own, 0o600);
    keep(&bench, "http://127.0.0.1:1/mcp", "ada");
    let foreign = records().into_iter().find(|path| *path != own).unwrap();
    mode(&foreign, 0o644);
    assert_eq!(run(&["call", "notes.hi"]).expect(0).stdout, "hi\n");
    let ran = run(&["logout", "notes"]);
    ran.expect(0);
    assert!(ran.stderr.contains("credential for http://127.0.0.1:1/mcp"), "{}", ran.stderr);
    assert!(ran.stderr.contains("signed out of `notes`"), "{}", ran.stderr);
    assert!(run(&["logout", "notes"]).expect(0).stderr.contains("nobody is signed in to `notes`"));
    run(&["call", "notes.hi"]).expect(5);
    login(&bench, &["--config", &config, "notes"]).0.expect(0);
    assert_eq!(run(&["call", "notes.hi"]).expect(0).stdout, "hi\n");
}

#[test]
fn nobody_signs_in_to_a_server_that_a_call_would_not_reach() {
    let bench = Bench::new();
    let server = Plain::start("401 Unauthorized\r\n");
    for (more, expected, note) in [
        ("enabled = false", "server `notes` is disabled: `enabled = false`", true),
        ("supports_parallel_tool_calls = true", "server `notes` is disabled: not honoured", true),
        (
            "oauth = { client_id = \"c\", client_secret = \"hunter2\" }",
            "`mcp_servers.notes.oauth.client_secret` is never read from a configuration file",
            false,
        ),
    ] {
        let text = format!("[mcp_servers.notes]\nurl = {:?}\n{more}\n", server.url);
        let config = bench.configuration(&text);
        let run = |words: &[&str]| bench.run([&["--config", &config], words].concat());
        for words in
            [&["call", "notes.hi"][..], &["login", "--no-browser", "notes"], &["login", "notes"]]
        {
            let ran = run(words);
            ran.expect(2);
            assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        }
        let seen = server.seen.lock().unwrap().clone();
        assert!(seen.is_empty(), "nothing is sent: {seen:?}");
        let code = if note { 0 } else { 2 };
        assert!(!run(&["config", "check"]).expect(code).stdout.contains("hunter2"));
    }
    // What was kept before it was switched off can be given up.
    let text = format!("[mcp_servers.notes]\nurl = {:?}\nenabled = false\n", server.url);
    let config = bench.configuration(&text);
    keep(&bench, &server.url, "ada");
    let ran = bench.run(["--config", &config, "logout", "notes"]);
    assert!(ran.expect(0).stderr.contains("signed out of `notes`"), "{}", ran.stderr);
}

#[test]
fn a_credential_under_another_name_is_not_left_behind_in_silence() {
    let bench = Bench::new();
    let config = bench.configuration("[mcp_servers.notes]\nurl = \"http://127.0.0.1:1/mcp\"\n");
    let run = |words: &[&str]| bench.run([&["--config", &config], words].concat());
    keep(&bench, "http://127.0.0.1:1/mcp", "ada");
    let place = directory(&bench);
    let mut files = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    let own = files.find(|path| path.extension().is_some_and(|it| it == "credential"));
    let moved = place.join(format!("{}.credential", "a".repeat(64)));
    fs::rename(own.unwrap(), &moved).unwrap();
    // A second one, under its own name, changes nothing about the first.
    for second in [false, true] {
        if second {
            keep(&bench, "http://127.0.0.1:1/mcp", "bob");
        }
        let ran = run(&["logout", "notes"]);
        ran.expect(2);
        let name = moved.display().to_string();
        assert!(ran.stderr.contains(&name), "{}", ran.stderr);
        assert!(ran.stderr.contains("failed to sign out of server `notes` wholly"));
        assert!(ran.stderr.contains(&format!("hint: remove {name}")), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("signed out of `notes`"), second, "{}", ran.stderr);
        assert!(moved.exists(), "the control: it is for its owner to look at");
        let status = run(&["auth", "status"]);
        assert!(status.expect(5).stdout.contains("not used"), "{}", status.stdout);
        assert_eq!(run(&["auth", "status", "--json"]).expect(5).stdout, "[]\n");
    }
    fs::remove_file(&moved).unwrap();
    let ran = run(&["logout", "notes"]);
    assert!(ran.expect(0).stderr.contains("nobody is signed in to `notes`"), "{}", ran.stderr);
}

#[test]
fn a_sign_in_and_a_sign_out_can_be_read_by_programs() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    let mut command = bench.command(["--config", &config, "login", "--json", "notes"]);
    browsed(&bench, &mut command);
    let ran = Ran::of(command.output().unwrap());
    let row: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    assert_eq!(
        (&row["servers"][0], &row["resource"]),
        (&"notes".into(), &fake.mcp.as_str().into())
    );
    assert!(row["store"].as_str().unwrap().starts_with("file: "), "{row}");
    assert!(!ran.stdout.contains("token"), "{row}");
    for count in [1, 0] {
        let ran = bench.run(["--config", &config, "logout", "--json", "notes"]);
        let done: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        assert_eq!(done.as_array().unwrap().len(), count, "{done}");
    }
}

/// Gives a command a desktop whose browser consents at once.
fn browsed(bench: &Bench, command: &mut Command) {
    let python = python().unwrap();
    let script = format!(
        "#!{python}\nimport sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n"
    );
    bench.fixture.executable("bin/xdg-open", script);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bench.fixture.join("bin").display());
    command.env("PATH", path).env("DISPLAY", ":0");
}

#[test]
fn a_call_on_a_terminal_offers_the_sign_in_and_goes_on() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "13.py", "") else { return };
    let audit = bench.fixture.join("audit.jsonl");
    let config = fake.configuration(&bench, &format!("[audit]\nfile = {audit:?}\n"));
    let outcomes = || -> Vec<String> {
        let text = fs::read_to_string(&audit).unwrap();
        let line = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        text.lines().map(|text| line(text)["outcome"].as_str().unwrap().to_owned()).collect()
    };
    let call = |tool: &str, steps: Steps<'_>| {
        let mut command = bench.command(["call", "--config", &config, tool]);
        browsed(&bench, &mut command);
        on_terminal(command, steps)
    };
    let question = "Sign in to `notes` now? [Y]es, [n]o: ";
    let ran = call("notes.read", &[(question, "n\n")]);
    ran.expect(5);
    assert_eq!(fake.stats()["authorize"], serde_json::json!([]), "nobody was sent anywhere");
    assert_eq!(outcomes(), ["sign-in"]);
    // Given up while it is offered: recorded all the same.
    let ran = call("notes.read", &[(question, "\u{3}")]);
    ran.expect(130);
    assert_eq!(outcomes(), ["sign-in", "sign-in"]);
    let ran = call(
        "notes.read",
        &[("sign-in needed: ", ""), (question, "\n"), ("signed in to `notes`", "")],
    );
    assert!(ran.expect(0).stdout.contains("read done"), "{}", ran.stdout);
    assert_eq!(outcomes()[2..], ["ok"], "one call, one line");
    // More scopes are a sign-in as well, for what there was and what is wanted.
    let ran = call(
        "notes.write",
        &[("files:write", ""), (question, "y\n"), ("signed in to `notes`", "")],
    );
    assert!(ran.expect(0).stdout.contains("write done"), "{}", ran.stdout);
    assert_eq!(
        fake.stats()["authorize"],
        serde_json::json!(["files:read", "files:read files:write"])
    );
    // Nobody is asked where nobody is.
    let ran = bench.run(["call", "--config", &config, "notes.never"]);
    assert!(!ran.expect(5).stderr.contains(question), "{}", ran.stderr);
    // Never granted: asked once, and then an end.
    let before = outcomes().len();
    let ran = call("notes.never", &[(question, "y\n"), ("signed in to `notes`", "")]);
    ran.expect(5);
    assert_eq!(outcomes()[before..], ["sign-in"]);
}

#[test]
fn a_list_of_tools_on_a_terminal_offers_the_sign_in_too() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    let list = |words: &[&str], steps: Steps<'_>| {
        let mut command = bench.command([&["tools", "--config", &config], words].concat());
        browsed(&bench, &mut command);
        on_terminal(command, steps)
    };
    let question = "Sign in to `notes` now? [Y]es, [n]o: ";
    list(&["notes"], &[(question, "n\n")]).expect(5);
    // Of many servers one row says so, and nobody is asked.
    assert!(!list(&[], &[]).stdout.contains(question));
    let ran = list(&["notes"], &[(question, "\n"), ("signed in to `notes`", "")]);
    assert!(ran.expect(0).stdout.contains("hi()"), "{}", ran.stdout);
    assert_eq!(bench.run(["tools", "--config", &config, "notes"]).expect(0).stderr, "");
}

fn keep(bench: &Bench, mcp: &str, subject: &str) {
    keep_until(bench, mcp, subject, None);
}

fn keep_until(bench: &Bench, mcp: &str, subject: &str, end: Option<SystemTime>) {
    let issuer = Issuer::parse(mcp.trim_end_matches("/mcp")).unwrap();
    let key = CredentialKey::new(issuer, ResourceId::parse(mcp).unwrap(), "client-1");
    let key = key.with_subject(Some(subject.to_owned()));
    let client = ClientRegistration::configured("client-1", ClientCredential::None);
    let token = TokenResponse::new(Secret::new(format!("token-of-{subject}")), TokenType::Bearer);
    let mut grant = Grant::new(client, token, None, SystemTime::now());
    grant.account = Some(format!("{subject}@example.com"));
    grant.expires_at = end;
    let store = FileStore::new(directory(bench));
    Vault::new(Arc::new(store)).sign_in(&key, grant).unwrap();
}

#[test]
fn the_status_says_by_its_exit_code_that_a_sign_in_is_over() {
    let bench = Bench::new();
    let mcp = "http://127.0.0.1:1/mcp";
    let hour = Duration::from_secs(3600);
    bench.run(["auth", "status"]).expect(0);
    keep(&bench, mcp, "ada");
    keep_until(&bench, mcp, "bob", Some(SystemTime::now() + hour));
    let ran = bench.run(["auth", "status"]);
    assert!(!ran.expect(0).stdout.contains("sign in again"), "{}", ran.stdout);
    keep_until(&bench, mcp, "cyd", Some(SystemTime::now() - hour));
    let ran = bench.run(["auth", "status"]);
    assert!(ran.expect(5).stdout.contains("60 min ago: sign in again"), "{}", ran.stdout);
    bench.run(["auth", "status", "--json"]).expect(5);
}

#[test]
fn whose_sign_in_is_used_can_be_said() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let config = fake.configuration(&bench, "");
    keep(&bench, &fake.mcp, "ada");
    keep(&bench, &fake.mcp, "bob");
    let run = |words: &[&str]| bench.run([&["--config", &config], words].concat());
    let ran = run(&["call", "notes.hi"]);
    ran.expect(5);
    assert!(ran.stderr.contains("several people are signed in"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--as ACCOUNT"), "{}", ran.stderr);
    // Theirs is sent, and refused: the fake never issued it.
    for account in ["ada", "bob@example.com"] {
        let ran = run(&["call", "--as", account, "notes.hi"]);
        ran.expect(5);
        assert!(!ran.stderr.contains("several people"), "{}", ran.stderr);
    }
    let ran = run(&["logout", "--as", "ada@example.com", "--json", "notes"]);
    let done: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    assert_eq!(done[0]["account"], "ada@example.com");
    let rows: Value =
        serde_json::from_str(&run(&["auth", "status", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows[0]["account"], "bob@example.com");
    assert!(!run(&["call", "notes.hi"]).expect(5).stderr.contains("several people"));
}
