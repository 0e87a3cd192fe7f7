//! A company with real parts: an OpenID provider that trades refresh tokens for signed identity assertions, an
//! authorization server that verifies them, three servers, and a person with a browser.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};

use plenipo_testkit::{ChildGuard, find_tool, peers, requires};
use serde_json::Value;

use crate::sign_in::{begin, get};
use crate::support::{Bench, Ran, data};

/// It ends when its input does.
struct Company {
    bench: Bench,
    _child: ChildGuard,
    _input: ChildStdin,
    idp: String,
    ras: String,
    origin: String,
    log: PathBuf,
    /// Everything that the program said.
    said: std::cell::RefCell<String>,
}

impl Company {
    /// `None`, counted as skipped, where a program or the provider is missing.
    fn start() -> Option<Self> {
        let bench = Bench::new();
        let modules = peers().map(|peers| peers.join("oidc/node_modules"));
        let there = modules.as_ref().is_some_and(|modules| modules.is_dir());
        let tools = ["node", "chromium"].iter().all(|tool| find_tool(tool).is_some());
        if !requires("node, chromium and the peer oidc-provider", there && tools) {
            return None;
        }
        let log = bench.fixture.join("company.log");
        let child = Command::new("node")
            .arg(data("tests/data/company.mjs"))
            .arg(modules?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn();
        let mut child = ChildGuard::new(child.unwrap());
        let input = child.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready = line.strip_prefix("READY ");
        assert!(ready.is_some(), "{line} {:?}", std::fs::read_to_string(&log));
        let urls: Value = serde_json::from_str(ready?).unwrap();
        let url = |name: &str| urls[name].as_str().unwrap().to_owned();
        let (idp, ras, origin) = (url("idp"), url("ras"), url("origin"));
        let said = std::cell::RefCell::default();
        Some(Self { bench, _child: child, _input: input, idp, ras, origin, log, said })
    }

    fn configuration(&self, issuer: &str) -> String {
        let mut text = format!(
            "credentials_store = \"file\"\n[credentials]\npassphrase_env_var = \"PASSPHRASE\"\n\
             [mcp_enterprise_managed_auth.idp]\nissuer = {issuer:?}\nclient_id = \"plenipo\"\n\
             [account]\nissuer = {:?}\nclient_id = \"plenipo\"\n",
            self.idp
        );
        for name in ["crm", "wiki", "mail"] {
            let server = format!(
                "[mcp_servers.{name}]\nrequired = {}\nurl = \"{}/{name}/mcp\"\nauth = \"enterprise\"\nscopes = [\"use\"]\n\
                 oauth = {{ client_id = \"plenipo-company\", authorization_server_issuer = {:?} }}\n",
                name == "wiki",
                self.origin,
                self.ras
            );
            text.push_str(&server);
        }
        self.bench.configuration(&text)
    }

    fn run(&self, config: &str, words: &[&str]) -> Ran {
        let mut command = self.bench.command([&["--config", config], words].concat());
        let ran = Ran::of(command.env("PASSPHRASE", "correct horse").output().unwrap());
        self.said.borrow_mut().extend([ran.stdout.as_str(), ran.stderr.as_str()]);
        ran
    }

    /// Signs in with a browser.
    fn sign_in(&self, config: &str, source: &str) -> Ran {
        let mut command = self.bench.command(["--config", config, source, "login", "--no-browser"]);
        let (child, page) = begin(command.env("PASSPHRASE", "correct horse"));
        let profile = self.bench.fixture.directory("chromium");
        let output = Command::new("node")
            .arg(data("tests/data/browser.mjs"))
            .arg(find_tool("chromium").unwrap())
            .arg(profile)
            .args([&page, "ada"])
            .env("HOME", self.bench.fixture.directory("browser"))
            .output()
            .unwrap();
        let ran = Ran::of(child.wait_with_output().unwrap());
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(ran.code, Some(0), "{ran:?} {shown} {}", self.errors());
        assert!(shown.contains("Signed in"), "{shown}");
        // The page's address holds a state and a challenge, and no token.
        self.said.borrow_mut().push_str(&ran.stderr);
        ran
    }

    fn stats(&self, name: &str) -> u64 {
        let stats: Value = serde_json::from_str(&get(&format!("{}/stats", self.origin)).1).unwrap();
        stats[name].as_u64().unwrap()
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Nothing that was given out is in what the program said, or in a file that it wrote.
    fn holds_no_secret(&self) {
        let text = get(&format!("{}/secrets", self.origin)).1;
        let secrets: Vec<String> = serde_json::from_str(&text).unwrap();
        assert!(secrets.len() >= 4, "the control: there are secrets");
        let mut everything = self.said.borrow().clone();
        for file in files(&self.bench.home).into_iter().chain(files(&self.bench.workspace)) {
            everything += &String::from_utf8_lossy(&std::fs::read(file).unwrap());
        }
        assert!(everything.contains("plenipo sealed"), "the control: the store is looked at");
        for secret in secrets {
            assert!(!everything.contains(&secret), "a secret of {} characters", secret.len());
        }
    }
}

fn files(directory: &std::path::Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files
}

#[test]
fn ema_one_sign_in_for_three_servers_until_the_company_says_no() {
    let Some(company) = Company::start() else { return };
    let config = company.configuration(&company.idp);
    let run = |words: &[&str]| company.run(&config, words);
    let before = run(&["call", "crm.read"]);
    before.expect(5);
    assert!(before.stderr.contains("enterprise sign-in needed"), "{}", before.stderr);
    assert!(before.stderr.contains("hint: run `plenipo enterprise login`"), "{}", before.stderr);

    let signed_in = company.sign_in(&config, "enterprise");
    assert!(signed_in.stderr.contains("signed in as ada at "), "{}", signed_in.stderr);
    for name in ["crm", "wiki", "mail"] {
        let ran = run(&["-v", "call", &format!("{name}.read")]);
        assert_eq!(ran.expect(0).stdout, format!("from {name}\n"), "{}", company.errors());
    }
    assert_eq!(
        ["codes", "exchanged", "redeemed", "replayed", "calls"].map(|name| company.stats(name)),
        [1, 3, 3, 0, 3],
        "{}",
        company.errors()
    );
    let status = run(&["enterprise", "status"]);
    assert!(status.expect(0).stdout.contains("crm, mail, wiki: enterprise sign-in of ada"));

    // The administrator withdraws one server.
    get(&format!("{}/withdraw?server=wiki", company.origin));
    let denied = run(&["call", "wiki.read"]);
    denied.expect(6);
    assert!(denied.stderr.contains("policy refused"), "{}", denied.stderr);
    assert!(denied.stderr.contains("`access_denied`"), "{}", denied.stderr);
    assert!(!denied.stderr.contains("withdrew"), "what the provider wrote: {}", denied.stderr);
    assert!(denied.stderr.contains("hint: ask the administrator for access"), "{}", denied.stderr);
    assert_eq!((company.stats("denied"), company.stats("redeemed")), (1, 3));
    // It is required: what needs all servers fails, and the others are listed all the same.
    let listed = run(&["tools"]);
    let tools = &listed.expect(6).stdout;
    assert!(tools.contains("crm\n  read()") && tools.contains("mail\n  read()"), "{tools}");
    assert!(!tools.contains("wiki"), "{tools}");
    assert_eq!(run(&["call", "mail.read"]).expect(0).stdout, "from mail\n");

    let out = run(&["enterprise", "logout"]);
    assert!(out.expect(0).stderr.contains("signed out ada"), "{}", out.stderr);
    assert_eq!(company.stats("revoked"), 1);
    for name in ["crm", "mail"] {
        run(&["call", &format!("{name}.read")]).expect(5);
    }
    assert_eq!(company.stats("calls"), 4);
    assert_eq!(company.stats("replayed"), 0);
    company.holds_no_secret();
}

#[test]
fn ema_an_account_stands_in_where_it_is_the_same_to_the_letter() {
    let Some(company) = Company::start() else { return };
    let config = company.configuration(&company.idp);
    company.sign_in(&config, "account");
    assert_eq!(company.run(&config, &["call", "crm.read"]).expect(0).stdout, "from crm\n");
    let status = company.run(&config, &["auth", "status"]);
    assert!(status.expect(0).stdout.contains("account sign-in of ada"), "{}", status.stdout);

    // The configured issuer has a slash more than the account's.
    let slash = company.configuration(&format!("{}/", company.idp));
    let ran = company.run(&slash, &["call", "crm.read"]);
    ran.expect(6);
    assert!(ran.stderr.contains("issuer mismatch"), "{}", ran.stderr);
    assert!(ran.stderr.contains("differ by a slash at the end"), "{}", ran.stderr);
    for command in [&["auth", "status"][..], &["doctor"], &["enterprise", "status"]] {
        let shown = company.run(&slash, command).stdout;
        assert!(shown.contains("differ by a slash at the end"), "{command:?}: {shown}");
    }
    company.run(&config, &["account", "logout"]).expect(0);
    company.run(&config, &["call", "crm.read"]).expect(5);
    assert_eq!(company.stats("calls"), 1);
}
