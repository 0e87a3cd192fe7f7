//! Signing in at a real OpenID provider with a real browser, to a server that asks the provider about every token.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use plenipo_testkit::{Deadline, find_tool, peers, requires};
use serde_json::Value;

use crate::sign_in::{PATIENCE, begin, get};
use crate::support::{Bench, Ran, data};

/// It ends when its input does.
struct Provider {
    child: Child,
    _input: ChildStdin,
    mcp: String,
    stats: String,
    issuer: String,
    /// The secret of its client `nightly`, and the key of `signer`.
    secret: String,
    pem: String,
    log: PathBuf,
}

impl Provider {
    /// `None`, counted as skipped, where a program or the provider is missing.
    fn start(bench: &Bench, words: &[&str]) -> Option<Self> {
        let modules = peers().map(|peers| peers.join("oidc/node_modules"));
        let there = modules.as_ref().is_some_and(|modules| modules.is_dir());
        let tools = ["node", "chromium"].iter().all(|tool| find_tool(tool).is_some());
        if !requires("node, chromium and the peer oidc-provider", there && tools) {
            return None;
        }
        let (modules, log) = (modules?, bench.fixture.join("provider.log"));
        let mut child = Command::new("node")
            .arg(data("tests/data/provider.mjs"))
            .arg(&modules)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let urls: Value = serde_json::from_str(line.strip_prefix("READY ").unwrap()).unwrap();
        let url = |name: &str| urls[name].as_str().unwrap().to_owned();
        let (mcp, stats, issuer) = (url("mcp"), url("stats"), url("issuer"));
        let (secret, pem) = (url("secret"), url("pem"));
        Some(Self { child, _input: input, mcp, stats, issuer, secret, pem, log })
    }

    fn configuration(&self, bench: &Bench, top: &str, more: &str) -> String {
        bench.configuration(&format!("{top}\n[mcp_servers.notes]\nurl = {:?}\n{more}", self.mcp))
    }

    fn count(&self, name: &str) -> u64 {
        let stats: Value = serde_json::from_str(&get(&self.stats).1).unwrap();
        stats[name].as_u64().unwrap()
    }

    /// What the browser shows at the end of the pages that begin at `url`.
    fn browse(&self, bench: &Bench, url: &str, more: &[&str]) -> Value {
        let profile = bench.fixture.directory("chromium");
        let output = Command::new("node")
            .arg(data("tests/data/browser.mjs"))
            .arg(find_tool("chromium").unwrap())
            .arg(profile)
            .args([url, "ada"])
            .args(more)
            .env("HOME", bench.fixture.directory("browser"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let shown = serde_json::from_str(&text).ok();
        assert!(shown.is_some(), "{text} {} {said}", String::from_utf8_lossy(&output.stderr));
        shown.unwrap()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn run(bench: &Bench, words: &[&str]) -> Ran {
    let mut command = bench.command(words);
    Ran::of(command.env("PASSPHRASE", "correct horse").output().unwrap())
}

/// Everything in the store's directory, as text.
fn stored(bench: &Bench) -> String {
    let directory = bench.home.join(".local/share/plenipo/credentials");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()).collect()
}

#[test]
fn a_browser_signs_in_at_a_real_provider_and_the_sign_in_is_given_back() {
    let bench = Bench::new();
    let Some(provider) = Provider::start(&bench, &["ttl=2"]) else { return };
    let sealed =
        "credentials_store = \"file\"\n[credentials]\npassphrase_env_var = \"PASSPHRASE\"\n";
    let config = provider.configuration(&bench, sealed, "");
    let run = |words: &[&str]| run(&bench, &[&["--config", &config], words].concat());
    let before = run(&["call", "notes.read"]);
    before.expect(5);
    assert!(before.stderr.contains("hint: run `plenipo login notes`"), "{}", before.stderr);

    let mut command = bench.command(["login", "--no-browser", "--config", &config, "notes"]);
    let (child, page) = begin(command.env("PASSPHRASE", "correct horse"));
    let shown = provider.browse(&bench, &page, &[]);
    let ran = Ran::of(child.wait_with_output().unwrap());
    ran.expect(0);
    assert_eq!(shown["title"], "Signed in", "{shown}");
    assert!(ran.stderr.contains("signed in to `notes` as ada"), "{}", ran.stderr);
    assert!(ran.stderr.contains("kept in file: "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("not encrypted"), "{}", ran.stderr);
    assert_eq!((provider.count("registered"), provider.count("codes")), (1, 1));

    assert!(run(&["tools", "notes"]).expect(0).stdout.contains("read"));
    // The token lives for two seconds: sooner or later it is refreshed, and the refresh token replaced.
    let deadline = Deadline::poll_until(PATIENCE, || {
        assert_eq!(run(&["call", "notes.read"]).expect(0).stdout, "a note\n");
        provider.count("refreshed") >= 2
    });
    assert!(deadline, "{}", std::fs::read_to_string(&provider.log).unwrap());
    assert_eq!((provider.count("reused"), provider.count("codes")), (0, 1));
    let rows: Value =
        serde_json::from_str(&run(&["auth", "status", "--json"]).expect(0).stdout).unwrap();
    assert_eq!((&rows[0]["account"], &rows[0]["refreshable"]), (&"ada".into(), &true.into()));
    assert_eq!(rows[0]["issuer"], provider.issuer.as_str());
    let kept = stored(&bench);
    assert!(kept.contains("plenipo sealed"), "the control: there is a record");
    assert!(!kept.contains("_token") && !kept.contains("ada"), "{kept}");

    let out = run(&["logout", "--json", "notes"]);
    let done: Value = serde_json::from_str(&out.expect(0).stdout).unwrap();
    assert_eq!((&done[0]["revoked"], &done[0]["account"]), (&true.into(), &"ada".into()), "{done}");
    assert_eq!(provider.count("revoked"), 1);
    run(&["call", "notes.read"]).expect(5);
    assert_eq!(run(&["auth", "status", "--json"]).expect(0).stdout, "[]\n");
}

#[test]
fn the_address_of_a_browser_elsewhere_is_pasted_at_a_real_provider() {
    let bench = Bench::new();
    let Some(provider) = Provider::start(&bench, &[]) else { return };
    let config = provider.configuration(&bench, "credentials_store = \"file\"", "");
    let (mut child, page) =
        begin(&mut bench.command(["login", "--no-browser", "--config", &config, "notes"]));
    let shown = provider.browse(&bench, &page, &["--stop-before-callback"]);
    let back = shown["url"].as_str().unwrap();
    assert!(back.contains("/callback?") && back.contains("iss="), "{shown}");
    writeln!(child.stdin.take().unwrap(), "{back}").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    ran.expect(0);
    assert!(ran.stderr.contains("not encrypted"), "{}", ran.stderr);
    assert!(stored(&bench).contains("\"refresh_token\""));
    assert_eq!(
        run(&bench, &["call", "--config", &config, "notes.read"]).expect(0).stdout,
        "a note\n"
    );
    run(&bench, &["logout", "--config", &config, "notes"]).expect(0);
    let left = stored(&bench);
    assert!(left.contains("generation") && !left.contains("_token"), "{left}");
    assert_eq!(provider.count("revoked"), 1);
}

#[test]
fn another_device_signs_in_at_a_real_provider() {
    let bench = Bench::new();
    let Some(provider) = Provider::start(&bench, &[]) else { return };
    let config = provider.configuration(&bench, "credentials_store = \"file\"", "");
    let mut command = bench.command(["login", "--device", "--config", &config, "notes"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said: Vec<String> = Vec::new();
    let page = loop {
        let line = lines.next();
        assert!(line.is_some(), "{said:?}");
        let line = line.unwrap().unwrap();
        said.push(line.clone());
        if let Some(page) = line.strip_prefix("or open ") {
            break page.to_owned();
        }
    };
    assert!(said[0].starts_with("enter the code "), "{said:?}");
    let shown = provider.browse(&bench, &page, &[]);
    let ended = Deadline::poll_until(PATIENCE, || child.try_wait().unwrap().is_some());
    if !ended {
        child.kill().unwrap();
    }
    said.extend(lines.map_while(Result::ok));
    let log = std::fs::read_to_string(&provider.log).unwrap();
    assert!(child.wait().unwrap().success(), "{said:?} {shown} {log}");
    assert_eq!(provider.count("devices"), 1);
    assert_eq!(
        run(&bench, &["call", "--config", &config, "notes.read"]).expect(0).stdout,
        "a note\n"
    );
}

#[test]
fn a_real_provider_binds_tokens_to_a_key() {
    let bench = Bench::new();
    let Some(provider) = Provider::start(&bench, &["dpop"]) else { return };
    let config = provider.configuration(&bench, "credentials_store = \"file\"", "");
    let (child, page) =
        begin(&mut bench.command(["login", "--no-browser", "--config", &config, "notes"]));
    let shown = provider.browse(&bench, &page, &[]);
    Ran::of(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(shown["title"], "Signed in", "{shown}");
    for _ in 0..2 {
        let ran = run(&bench, &["call", "--config", &config, "notes.read"]);
        assert_eq!(ran.expect(0).stdout, "a note\n");
    }
    assert!(provider.count("proofs") >= 2);
}

#[test]
fn clients_get_tokens_by_themselves_at_a_real_provider() {
    let bench = Bench::new();
    let Some(provider) = Provider::start(&bench, &[]) else { return };
    let secret = bench.fixture.file("secret", &provider.secret);
    let key = bench.fixture.file("key.pem", &provider.pem);
    for file in [&secret, &key] {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let grant = "grant = \"client_credentials\"";
    let by_secret = format!("{grant}, client_id = \"nightly\", client_secret_file = {secret:?}");
    let by_key = format!(
        "{grant}, client_id = \"signer\", private_key_file = {key:?}, private_key_id = \"k1\", \
         private_key_algorithm = \"ES256\", token_endpoint_auth_method = \"private_key_jwt\""
    );
    let bound = format!("{by_key}, dpop = true");
    for (number, oauth) in [by_secret, by_key, bound].iter().enumerate() {
        let more = format!("scopes = [\"notes:read\"]\noauth = {{ {oauth} }}\n");
        let config = provider.configuration(&bench, "", &more);
        let ran = run(&bench, &["call", "--config", &config, "notes.read"]);
        let log = std::fs::read_to_string(&provider.log).unwrap();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a note\n"), "{}{log}", ran.stderr);
        assert_eq!(provider.count("clients"), u64::try_from(number).unwrap() + 1);
        assert_eq!(provider.count("proofs") > 0, number == 2, "only a bound token has proofs");
        let ran = run(&bench, &["login", "--config", &config, "notes"]);
        assert!(ran.expect(2).stderr.contains("needs no sign-in"), "{}", ran.stderr);
    }
    assert!(!bench.home.join(".local/share/plenipo/credentials").exists(), "nothing is kept");
}
