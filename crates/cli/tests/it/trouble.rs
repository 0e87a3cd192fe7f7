//! Sign-ins that public reports say go wrong: callbacks, resources, several at once, foreign configurations.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use plenipo_testkit::{ChildGuard, Deadline};
use serde_json::json;

use crate::sign_in::{Fake, PATIENCE, begin, get, location, login, login_command};
use crate::support::{Bench, Ran};

/// A port that was free a moment ago.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn f53_the_callback_is_the_one_address_that_the_issuer_knows() {
    for (host, path) in [("127.0.0.1", "/callback"), ("localhost", "/oauth/back"), ("[::1]", "/")] {
        let bench = Bench::new();
        let port = port();
        let callback = format!("http://{host}:{port}{path}");
        let mode = json!({ "redirect": callback }).to_string();
        let Some(fake) = Fake::start(&bench, "exact.py", &mode) else { return };
        let plain = fake.configuration(&bench, "");
        let ran = bench.run(["login", "--no-browser", "--config", &plain, "notes"]);
        ran.expect(2);
        assert!(ran.stderr.contains("`oauth.callback_url`"), "the control: {}", ran.stderr);

        let config =
            fake.configuration(&bench, &format!("oauth = {{ callback_url = {callback:?} }}\n"));
        let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let ran = bench.run(["login", "--no-browser", "--config", &config, "notes"]);
        ran.expect(3);
        assert!(ran.stderr.contains(&format!("port {port}")), "{}", ran.stderr);
        drop(taken);
        let (ran, page) = login(&bench, &["--config", &config, "notes"]);
        ran.expect(0);
        assert!(page.contains("You can close this page"), "{page}");
        assert_eq!(bench.run(["call", "--config", &config, "notes.hi"]).expect(0).stdout, "hi\n");
        let refused = fake.stats()["refused"].as_array().unwrap().len();
        assert_eq!(refused, 1, "the control's registration");
    }
}

#[test]
fn f61_the_resource_is_sent_as_it_is_published_or_configured() {
    for (published, configured) in [("/mcp", None), ("", None), ("/", None), ("/mcp", Some("/mcp"))]
    {
        let bench = Bench::new();
        let mode = json!({ "resource": published }).to_string();
        let Some(fake) = Fake::start(&bench, "exact.py", &mode) else { return };
        let origin = fake.mcp.trim_end_matches("/mcp").to_owned();
        let more = configured.map(|path| format!("oauth_resource = \"{origin}{path}\"\n"));
        let config = fake.configuration(&bench, &more.unwrap_or_default());
        login(&bench, &["--config", &config, "notes"]).0.expect(0);
        let refreshed = Deadline::poll_until(PATIENCE, || {
            assert_eq!(
                bench.run(["call", "--config", &config, "notes.hi"]).expect(0).stdout,
                "hi\n"
            );
            fake.stats()["refresh"].as_u64().unwrap() >= 1
        });
        let stats = fake.stats();
        assert!(refreshed && stats["refused"] == json!([]), "{stats}");
        let expected = format!("{origin}{published}");
        let sent = stats["resources"].as_array().unwrap();
        assert!(sent.len() >= 3, "the page, the code and the refresh: {stats}");
        assert!(sent.iter().all(|resource| *resource == expected.as_str()), "{stats}");
    }
}

#[test]
fn f61_another_resource_than_the_published_one_can_be_configured() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "exact.py", "") else { return };
    let config = fake.configuration(&bench, "oauth_resource = \"https://elsewhere.example/api\"\n");
    let (mut child, page) = begin(&mut login_command(&bench, &["--config", &config, "notes"]));
    let (head, said) = get(&page);
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert!(said.contains("resource https://elsewhere.example/api is not"), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn f84_sign_ins_at_the_same_time_do_not_meet() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "exact.py", "") else { return };
    let config = fake.configuration(&bench, "");
    let start = || begin(&mut login_command(&bench, &["--config", &config, "notes"]));
    let (mut killed, _) = start();
    let (first, first_page) = start();
    let (mut second, second_page) = start();
    killed.kill().unwrap();
    killed.wait().unwrap();
    // In the other order, and each with its own state: the answer of one is none for the other.
    let (first_back, second_back) = (location(&get(&first_page).0), location(&get(&second_page).0));
    let base = second_back.split("/callback").next().unwrap();
    let foreign = first_back.split_once("/callback").unwrap().1;
    writeln!(second.stdin.take().unwrap(), "{base}/callback{foreign}").unwrap();
    assert!(get(&second_back).1.contains("You can close this page"));
    assert!(get(&first_back).1.contains("You can close this page"));
    for child in [first, second] {
        Ran::of(child.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(fake.stats()["code"], 2);
    assert_eq!(bench.run(["call", "--config", &config, "notes.hi"]).expect(0).stdout, "hi\n");
    bench.run(["logout", "--config", &config, "notes"]).expect(0);
    assert_eq!(
        bench.run(["auth", "status", "--json", "--config", &config]).expect(0).stdout,
        "[]\n"
    );
}

#[test]
fn f83_a_sign_in_belongs_to_the_server_and_not_to_the_file_that_names_it() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "12.py", "no-expiry") else { return };
    let own = fake.configuration(&bench, "");
    let text = json!({ "mcpServers": { "imported": { "url": fake.mcp } } }).to_string();
    let foreign = bench.fixture.file("mcp.json", text).display().to_string();
    let ran = bench.run(["call", "--config", &foreign, "imported.hi"]);
    ran.expect(5);
    assert!(ran.stderr.contains("hint: run `plenipo login imported`"), "{}", ran.stderr);
    login(&bench, &["--config", &foreign, "imported"]).0.expect(0);
    assert_eq!(bench.run(["call", "--config", &foreign, "imported.hi"]).expect(0).stdout, "hi\n");
    assert_eq!(bench.run(["call", "--config", &own, "notes.hi"]).expect(0).stdout, "hi\n");
}

#[test]
fn a_workload_shows_what_its_platform_says_now() {
    let bench = Bench::new();
    let file = bench.fixture.file("token", "jwt-one\n");
    let allow = |mode: u32| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    let mode = json!({ "assertion": file }).to_string();
    let Some(fake) = Fake::start(&bench, "exact.py", &mode) else { return };
    let oauth = format!("grant = \"jwt_bearer\", client_id = \"ci\", assertion_file = {file:?}");
    let config = fake.configuration(&bench, &format!("oauth = {{ {oauth} }}\n"));
    let call = || bench.run(["call", "--config", &config, "notes.hi"]);
    for token in ["jwt-one", "jwt-two"] {
        fs::write(&file, token).unwrap();
        // Platforms let all of a workload read it.
        allow(0o644);
        assert_eq!(call().expect(0).stdout, "hi\n");
    }
    assert_eq!(fake.stats()["assertions"], json!(["jwt-one", "jwt-two"]));
    allow(0o666);
    let ran = call();
    ran.expect(5);
    assert!(ran.stderr.contains("can be written by others"), "{}", ran.stderr);
    fs::remove_file(&file).unwrap();
    let ran = call();
    ran.expect(5);
    assert!(ran.stderr.contains("needs a workload's assertion in the file"), "{}", ran.stderr);
    assert_eq!(fake.stats()["assertions"].as_array().unwrap().len(), 2);
}

#[test]
fn an_interrupted_call_keeps_the_token_that_it_asked_for() {
    let bench = Bench::new();
    let Some(fake) = Fake::start(&bench, "exact.py", r#"{"slow": 1}"#) else { return };
    let config = fake.configuration(&bench, "");
    login(&bench, &["--config", &config, "notes"]).0.expect(0);
    let call = || bench.command(["--config", &config, "call", "notes.hi"]);
    let mut interrupted = None;
    let asked = || fake.stats()["asked"].as_u64().unwrap();
    // A call that begins when the token has ended asks for another one first.
    while interrupted.is_none() {
        let before = asked();
        let mut child =
            ChildGuard::new(call().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let is_over = || asked() > before || child.try_wait().unwrap().is_some();
        assert!(Deadline::poll_until(PATIENCE, is_over));
        if asked() > before {
            interrupted = Some(child);
        }
    }
    let mut child = interrupted.unwrap();
    let words = ["kill".to_owned(), "-INT".to_owned(), child.id().to_string()];
    assert!(Command::new("/usr/bin/env").args(words).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fake.stats()["refresh"], fake.stats()["asked"], "the answer was waited for");
    for _ in 0..3 {
        assert_eq!(Ran::of(call().output().unwrap()).expect(0).stdout, "hi\n");
    }
    assert_eq!(fake.stats()["reused"], 0, "what was kept is the new one");
}

#[test]
fn no_secret_of_a_whole_sign_in_is_printed() {
    let bench = Bench::new();
    let file = bench.fixture.file("token", "assertion-s3cr3t");
    let mode = json!({ "assertion": file }).to_string();
    let Some(fake) = Fake::start(&bench, "exact.py", &mode) else { return };
    let config = fake.configuration(&bench, "");
    let loud = |words: &[&str]| {
        let mut command = bench.command([words, &["-v", "--config", &config]].concat());
        // Whatever a library would say, it may say here.
        for (name, value) in
            [("RUST_LOG", "trace"), ("RUST_BACKTRACE", "full"), ("G_MESSAGES_DEBUG", "all")]
        {
            command.env(name, value);
        }
        command
    };
    let mut printed = String::new();
    let mut note = |ran: Ran| {
        printed.extend([ran.stdout, ran.stderr, "\n".to_owned()]);
        ran.code
    };
    let (child, page) = begin(&mut loud(&["login", "--no-browser", "notes"]));
    assert!(get(&location(&get(&page).0)).1.contains("You can close this page"));
    assert_eq!(note(Ran::of(child.wait_with_output().unwrap())), Some(0));
    let refreshed = Deadline::poll_until(PATIENCE, || {
        assert_eq!(note(Ran::of(loud(&["call", "notes.hi"]).output().unwrap())), Some(0));
        fake.stats()["refresh"].as_u64().unwrap() >= 1
    });
    assert!(refreshed);
    for words in [&["auth", "status", "--json"][..], &["tools", "notes"], &["call", "notes.none"]] {
        note(Ran::of(loud(words).output().unwrap()));
    }
    // Refused, and told of: an answer that is pasted again, a refresh token that is no good any more.
    let kept = bench.home.join(".local/share/plenipo/credentials");
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"refresh_token\":\"", "\"refresh_token\":\"used-s3cr3t"))
            .unwrap();
    }
    let refused = Deadline::poll_until(PATIENCE, || {
        note(Ran::of(loud(&["call", "notes.hi"]).output().unwrap())) == Some(5)
    });
    assert!(refused);
    assert_eq!(note(Ran::of(loud(&["logout", "notes"]).output().unwrap())), Some(0));
    let oauth = format!("grant = \"jwt_bearer\", client_id = \"ci\", assertion_file = {file:?}");
    fake.configuration(&bench, &format!("oauth = {{ {oauth} }}\n"));
    assert_eq!(note(Ran::of(loud(&["call", "notes.hi"]).output().unwrap())), Some(0));

    let stats = fake.stats();
    let secrets = stats["secrets"].as_array().unwrap();
    assert!(
        secrets.len() >= 8 && secrets.contains(&json!("assertion-s3cr3t")),
        "the control: {stats}"
    );
    assert!(
        printed.contains("signed in to `notes`") && printed.contains("signed out of"),
        "{printed}"
    );
    for secret in secrets.iter().filter_map(serde_json::Value::as_str) {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
    assert!(!printed.contains("s3cr3t"), "{printed}");
}
