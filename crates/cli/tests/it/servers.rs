//! `plenipo servers` and `plenipo tools`: every server at once, each with its own fate.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use plenipo_testkit::{ChildGuard, Deadline, peers, processes_with_marker, requires};
use serde_json::Value;

use crate::support::{Bench, data, python};

/// One server that works, one that cannot start, one that dies, one that is off, one with a fault in its table.
fn mixed(bench: &Bench, extra: &str) -> Option<String> {
    let python = python()?;
    let script = bench.fixture.file("show.py", std::fs::read(data("tests/data/show.py")).unwrap());
    Some(bench.configuration(&format!(
        "[mcp_servers.show]\ncommand = {python:?}\nargs = [{script:?}]\nenv = {{ FLEET = \"{}\" }}\n\
         [mcp_servers.absent]\ncommand = \"/nonexistent/server\"\n\
         [mcp_servers.dies]\ncommand = \"/bin/false\"\n\
         [mcp_servers.off]\ncommand = \"anything\"\nenabled = false\n\
         [mcp_servers.wrong]\ncomand = \"typo\"\n{extra}",
        marker()
    )))
}

fn marker() -> String {
    format!("fleet-{}", std::process::id())
}

#[test]
fn one_that_fails_is_a_row_and_hides_nobody() {
    let bench = Bench::new();
    let Some(config) = mixed(&bench, "") else { return };
    let ran = bench.run(["servers", "--config", &config]);
    ran.expect(0);
    assert_snapshot!(ran.shown(&bench));
    assert!(processes_with_marker(&format!("FLEET={}", marker())).is_empty());
    let rows: Vec<Value> =
        serde_json::from_str(&bench.run(["servers", "--json", "--config", &config]).stdout)
            .unwrap();
    let status: Vec<_> = rows.iter().map(|row| (&row["server"], &row["status"])).collect();
    assert_eq!(
        serde_json::to_string(&status).unwrap(),
        r#"[["absent","failed"],["dies","failed"],["off","disabled"],["show","ready"],["wrong","failed"],["workspace","ready"]]"#
    );
}

#[test]
fn a_required_server_that_fails_fails_the_command() {
    let bench = Bench::new();
    let needed = "[mcp_servers.needed]\ncommand = \"/nonexistent/needed\"\nrequired = true\n";
    let Some(config) = mixed(&bench, needed) else { return };
    bench.run(["servers", "--config", &config]).expect(3);
    bench.run(["tools", "--config", &config]).expect(3);
}

#[test]
fn tools_are_shown_as_calls_and_sent_on_as_they_came() {
    let bench = Bench::new();
    let Some(config) = mixed(&bench, "") else { return };
    let ran = bench.run(["tools", "show", "--config", &config]);
    ran.expect(0);
    assert_snapshot!(ran.shown(&bench));
    let json = bench.run(["tools", "--json", "--config", &config]);
    json.expect(0);
    let servers: Vec<Value> = serde_json::from_str(&json.stdout).unwrap();
    let show = servers.iter().find(|server| server["server"] == "show").unwrap();
    assert_eq!(show["tools"][0]["inputSchema"]["required"], serde_json::json!(["text"]));
    let absent = bench.run(["tools", "absent", "--config", &config]);
    assert_snapshot!(absent.shown(&bench), @r"
    exit 3
    error: failed to start server `absent`: program `/nonexistent/server` was not found
    hint: check the path in `command`
    ");
    bench.run(["tools", "nobody", "--config", &config]).expect(2);
    bench.run(["tools", "off", "--config", &config]).expect(2);
}

#[test]
fn filters_hold_in_lists_and_calls() {
    let bench = Bench::new();
    let Some(python) = python() else { return };
    let script = bench.fixture.file("show.py", std::fs::read(data("tests/data/show.py")).unwrap());
    let config = bench.configuration(&format!(
        "[mcp_servers.show]\ncommand = {python:?}\nargs = [{script:?}]\nenabled_tools = [\"show\", \"fails\"]\ndisabled_tools = [\"fails\"]\n"
    ));
    let listed = bench.run(["tools", "show", "--config", &config]);
    assert!(listed.expect(0).stdout.contains("show(text: string"));
    assert!(!listed.stdout.contains("fails"));
    bench.run(["call", "--config", &config, "show.fails"]).expect(6);
    bench.run(["call", "--config", &config, "show.picture"]).expect(6);
}

/// The same server behind a URL, on a free port of this machine.
fn everything_over_http(peers: &Path) -> (u16, ChildGuard) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script =
        peers.join("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let child = Command::new("node")
        .arg(script)
        .arg("streamableHttp")
        .env("PORT", free.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let guard = ChildGuard::new(child);
    let listens = || std::net::TcpStream::connect(("127.0.0.1", free)).is_ok();
    assert!(Deadline::poll_until(Duration::from_secs(60), listens));
    (free, guard)
}

/// Servers that nobody here wrote, over both transports, and one broken entry.
#[test]
fn real_servers_from_npm_and_pypi_in_one_configuration() {
    let Some(peers) = peers() else {
        requires("real servers (cargo xtask test --peers)", false);
        return;
    };
    let bench = Bench::new();
    let node = |package: &str, rest: &str| {
        let script = peers.join("node/node_modules/@modelcontextprotocol").join(package);
        format!("command = \"node\"\nargs = [{:?}{rest}]\n", script.display().to_string())
    };
    let pypi = |module: &str, rest: &str| {
        let python = peers.join("python/bin/python3").display().to_string();
        format!("command = {python:?}\nargs = [\"-m\", {module:?}{rest}]\n")
    };
    bench.fixture.file("workspace/note.txt", "from the file system\n");
    let git = ["init", "-q"];
    let repository = bench.command_of("/usr/bin/env".into(), ["git"].iter().chain(&git)).status();
    assert!(repository.unwrap().success());
    let workspace = bench.workspace.display().to_string();
    let (port, _http) = everything_over_http(&peers);
    let config = bench.configuration(&format!(
        "[mcp_servers.http]\nurl = \"http://127.0.0.1:{port}/mcp\"\n[mcp_servers.everything]\n{}[mcp_servers.filesystem]\n{}[mcp_servers.memory]\n{}\
         [mcp_servers.time]\n{}[mcp_servers.fetch]\n{}[mcp_servers.git]\n{}\
         [mcp_servers.broken]\ncommand = \"/nonexistent/server\"\n",
        node("server-everything/dist/index.js", ", \"stdio\""),
        node("server-filesystem/dist/index.js", &format!(", {workspace:?}")),
        node("server-memory/dist/index.js", ""),
        pypi("mcp_server_time", ""),
        pypi("mcp_server_fetch", ""),
        pypi("mcp_server_git", ""),
    ));
    let rows: Vec<Value> =
        serde_json::from_str(&bench.run(["servers", "--json", "--config", &config]).stdout)
            .unwrap();
    for row in &rows {
        let expected = if row["server"] == "broken" { "failed" } else { "ready" };
        assert_eq!(row["status"], expected, "{row}");
    }
    assert_eq!(rows.len(), 9);
    let call = |words: &[&str]| {
        let mut all = vec!["call", "--config", &config];
        all.extend(words);
        bench.run(all).expect(0).stdout.clone()
    };
    assert_eq!(call(&["everything.echo", "message=hello"]), "Echo: hello\n");
    assert_eq!(call(&["http.echo", "message=over HTTP"]), "Echo: over HTTP\n");
    let note = bench.workspace.join("note.txt").display().to_string();
    assert!(
        call(&["filesystem.read_text_file", &format!("path={note}")])
            .contains("from the file system")
    );
    assert!(call(&["memory.read_graph"]).contains("entities"));
    assert!(call(&["time.get_current_time", "timezone=Europe/Berlin"]).contains("Europe/Berlin"));
    assert!(call(&["git.git_status", &format!("repo_path={workspace}")]).contains("note.txt"));
    let fetched =
        bench.run(["call", "--config", &config, "fetch.fetch", "url=http://127.0.0.1:9/"]);
    fetched.expect(1); // nothing listens there, and the tool says so
}
