//! What a limited network lets through, byte for byte, and what it refuses.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use plenipo_testkit::{find_tool, is_root, requires};

use super::{BODY, Web, configured, curl, first_line, run, run_to_its_end};
use crate::support::{Bench, Ran, as_each_user, python};

#[test]
fn a_listed_host_is_reached_by_every_way_that_programs_have() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let domains = format!("domains = [\"*.localhost:{port}\", \"127.0.0.1:{port}\"]");
        let ways = [
            format!("curl -sS http://a.localhost:{port}/x"),
            format!("curl -sS --proxytunnel http://a.localhost:{port}/x"),
            format!("curl -sS -x socks5h://127.0.0.1:3128 http://a.localhost:{port}/x"),
            format!("curl -sS -x socks5h://127.0.0.1:3128 http://127.1:{port}/x"),
            format!(
                "curl -sS --request POST --data-binary @/etc/passwd http://a.localhost:{port}/x"
            ),
        ];
        for way in ways {
            let ran = run(bench, &domains, &way);
            assert!(
                ran.expect(0).stdout.ends_with(&format!(" /x HTTP/1.1\n{BODY}")),
                "{way}: {ran:?}"
            );
            assert_eq!(ran.stderr, "", "{way}");
        }
    });
}

#[test]
fn what_is_not_listed_is_refused_and_told_at_the_end() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        let domains = format!(
            "domains = {{ \"*.localhost:{port}\" = \"allow\", \"bad.localhost\" = \"deny\" }}"
        );
        let script = format!(
            "for u in bad.localhost:{port} localhost:{port} x.localhost.evil:{port} 0x7f000001:{port} \
             [::ffff:127.0.0.1]:{port} a.localhost:1; do \
             curl -g -sS -o /dev/null -w '%{{http_code}} ' http://$u/; done; \
             curl -s -o /dev/null https://evil.example/; echo $?"
        );
        let (ran, end) = run_to_its_end(bench, &domains, &script);
        assert_eq!(ran.expect(0).stdout, "403 403 403 403 403 403 56\n");
        let told = ran.stderr.lines().last().unwrap_or_default();
        assert!(
            told.starts_with("plenipo: the network is limited; refused: 127.0.0.1:")
                && told.contains("(not listed, 2 times)")
                && told.ends_with("and 3 more"),
            "{told}"
        );
        assert_eq!((&end["status"], &end["exit_code"]), (&"ended".into(), &0.into()));
        let refused = end["network"]["refused"].as_array().unwrap();
        let denied = refused.iter().find(|refused| refused["host"] == "bad.localhost").unwrap();
        assert_eq!((&denied["reason"], &denied["count"]), (&"denied".into(), &1.into()));
        assert_eq!(refused.len(), 6, "{refused:?}");
        assert_eq!(end["network"]["connections"], 7);
    });
}

#[test]
fn an_empty_list_reaches_nothing() {
    if !curl() {
        return;
    }
    as_each_user(|bench| {
        let port = Web::start().port;
        for domains in ["", "domains = []", "domains = {}"] {
            let script =
                format!("curl -s -o /dev/null -w '%{{http_code}}' http://localhost:{port}/");
            assert_eq!(run(bench, domains, &script).expect(0).stdout, "403", "{domains}");
        }
    });
}

#[test]
fn git_clones_through_the_proxy() {
    let (Some(git), Some(python)) = (find_tool("git"), python()) else {
        requires("git", find_tool("git").is_some());
        return;
    };
    let git = git.display().to_string();
    as_each_user(|bench| {
        let served = bench.fixture.directory("served");
        make_repository(&git, &served);
        let mut web = std::process::Command::new(&python)
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "-d"])
            .arg(&served)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = first_line(&mut web);
        let port = line.split_whitespace().nth(5).unwrap_or_default().to_owned();
        let url = format!("http://git.localhost:{port}/repo.git");
        let clone = |domains: &str| {
            run(
                bench,
                domains,
                &format!("rm -rf clone; {git} clone -q {url} clone && cat clone/file"),
            )
        };
        let cloned = clone(&format!("domains = [\"git.localhost:{port}\"]"));
        let refused = clone("domains = [\"git.localhost\"]");
        web.kill().unwrap();
        web.wait().unwrap();
        assert_eq!(cloned.expect(0).stdout, "content\n");
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains("listed with other ports only"), "{refused:?}");
    });
}

fn make_repository(git: &str, served: &Path) {
    let work = served.join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("file"), "content\n").unwrap();
    let run = |directory: &Path, words: &[&str]| {
        let identity = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ];
        let status = std::process::Command::new(git)
            .args(identity)
            .args(words)
            .current_dir(directory)
            .env("HOME", served)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{words:?}");
    };
    run(&work, &["init", "-q"]);
    run(&work, &["add", "."]);
    run(&work, &["commit", "-q", "-m", "first"]);
    run(served, &["clone", "-q", "--bare", "work", "repo.git"]);
    run(&served.join("repo.git"), &["update-server-info"]);
}

#[test]
fn a_large_transfer_is_exact() {
    if !curl() {
        return;
    }
    const MANY: usize = 64 * 1024 * 1024;
    as_each_user(|bench| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {MANY}\r\n\r\n").unwrap();
            let block: Vec<u8> = (0..1_048_576_usize).map(|n| (n * 7 % 253) as u8).collect();
            for _ in 0..MANY / block.len() {
                stream.write_all(&block).unwrap();
            }
        });
        let ran = run(
            bench,
            &format!("domains = [\"localhost:{port}\"]"),
            &format!("curl -sS http://localhost:{port}/ | sha256sum"),
        );
        server.join().unwrap();
        let mut expected = std::process::Command::new("sha256sum")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let block: Vec<u8> = (0..1_048_576_usize).map(|n| (n * 7 % 253) as u8).collect();
        let mut stdin = expected.stdin.take().unwrap();
        for _ in 0..MANY / block.len() {
            stdin.write_all(&block).unwrap();
        }
        drop(stdin);
        let expected = expected.wait_with_output().unwrap();
        assert_eq!(ran.expect(0).stdout, String::from_utf8(expected.stdout).unwrap());
    });
}

/// Names that only a hosts file of this test's own knows, in a mount namespace of its own: the machine's resolver answers.
#[test]
fn a_name_of_the_machines_resolver_is_checked_by_its_address() {
    let in_root = requires("root, for a hosts file of the test's own", is_root());
    if !in_root || !curl() {
        return;
    }
    let bench = Bench::new();
    let port = Web::start().port;
    let hosts = bench.fixture.file("hosts", "127.0.0.1 inside.example mixed.example\n10.11.12.13 private.example\n169.254.169.254 metadata.example mixed.example\n::ffff:127.0.0.1 mapped.example\n");
    let program = bench.program().display().to_string();
    let status = |domains: &str, name: &str| {
        let file = configured(&bench, domains);
        let script = format!("curl -sS -m 20 http://{name}:{port}/ | tail -1");
        let inside = format!(
            "mount --bind {} /etc/hosts && exec {program} --config {file} sandbox -P web -- sh -c '{script}'",
            hosts.display()
        );
        let words = ["-m", "/bin/sh", "-c", &inside];
        let ran = Ran::of(bench.command_of("/usr/bin/unshare".into(), words).output().unwrap());
        ran.expect(0).stdout.clone()
    };
    let names = format!("\"*.example:{port}\"");
    for (name, kind, address) in [
        ("inside", "loopback", "127.0.0.1"),
        ("private", "private", "10.11.12.13"),
        ("metadata", "metadata", "169.254.169.254"),
        ("mapped", "loopback", "127.0.0.1"),
    ] {
        let refused = status(&format!("domains = [{names}]"), &format!("{name}.example"));
        let expected = format!(
            "plenipo: refused {name}.example:{port}: resolves to the {kind} address {address}, which is not listed itself\n"
        );
        assert_eq!(refused, expected);
    }
    let with_address = format!("domains = [{names}, \"127.0.0.1:{port}\"]");
    for name in ["inside.example", "mapped.example", "mixed.example", "INSIDE.example."] {
        assert_eq!(status(&with_address, name), BODY, "{name}");
    }
    assert_eq!(status(&with_address, "unknown.example").lines().count(), 1);
    assert!(
        status(&with_address, "unknown.example")
            .starts_with("plenipo: cannot resolve unknown.example")
    );
}
