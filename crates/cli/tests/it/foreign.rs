//! Other programs' files, named with `--config`: the same servers, the same tools.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Bench, Ran, data, python};

/// The same stdio server and the same URL in each program's words.
fn files(python: &str, script: &str) -> Vec<(&'static str, String)> {
    let local =
        format!("\"command\": {python:?}, \"args\": [{script:?}], \"env\": {{\"MODE\": \"a\"}}");
    let url = "\"url\": \"http://127.0.0.1:9/mcp\", \"headers\": {\"X-A\": \"1\"}";
    vec![
        (
            "plenipo.toml",
            format!(
                "[mcp_servers.show]\ncommand = {python:?}\nargs = [{script:?}]\nenv = {{ MODE = \"a\" }}\n\
                 [mcp_servers.web]\nurl = \"http://127.0.0.1:9/mcp\"\nhttp_headers = {{ X-A = \"1\" }}\n"
            ),
        ),
        (
            "codex/config.toml",
            format!(
                "model = \"gpt\"\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n\n[mcp_servers.show]\n\
                 command = {python:?}\nargs = [{script:?}]\n\n[mcp_servers.show.env]\nMODE = \"a\"\n\n\
                 [mcp_servers.web]\nurl = \"http://127.0.0.1:9/mcp\"\n\n\
                 [mcp_servers.web.http_headers]\nX-A = \"1\"\n"
            ),
        ),
        (
            ".mcp.json",
            format!(
                "{{\"mcpServers\": {{\"show\": {{\"type\": \"stdio\", {local}}}, \"web\": {{\"type\": \"http\", {url}}}}}}}"
            ),
        ),
        (
            ".cursor/mcp.json",
            format!("{{\"mcpServers\": {{\"show\": {{{local}}}, \"web\": {{{url}}}}}}}"),
        ),
        (
            "claude_desktop_config.json",
            format!(
                "{{\"globalShortcut\": \"x\", \"mcpServers\": {{\"show\": {{{local}}}, \"web\": {{{url}}}}}}}"
            ),
        ),
        (
            ".vscode/mcp.json",
            format!(
                "\u{feff}// servers\n{{\n  \"inputs\": [], // none\n  \"servers\": {{\n    \"show\": {{ \"type\": \"stdio\", {local}, }},\n    /* by URL */ \"web\": {{ \"type\": \"http\", {url} }},\n  }},\n}}\n"
            ),
        ),
    ]
}

#[test]
fn five_programs_files_give_the_same_servers_and_the_same_tool() {
    let bench = Bench::new();
    let Some(python) = python() else { return };
    let script = bench.fixture.file("show.py", std::fs::read(data("tests/data/show.py")).unwrap());
    let mut first: Option<Value> = None;
    for (name, text) in files(&python, &script.display().to_string()) {
        let file = bench.fixture.file(name, text).display().to_string();
        bench.run(["config", "check", &file]).expect(0);
        let shown = bench.run(["config", "show", "--json", "--config", &file]);
        let mut shown: Value = serde_json::from_str(&shown.expect(0).stdout).unwrap();
        for server in shown["servers"].as_array_mut().unwrap() {
            server.as_object_mut().unwrap().remove("source");
        }
        match &first {
            Some(first) => assert_eq!(&shown, first, "{name}"),
            None => first = Some(shown),
        }
        let called = bench.run(["call", "show.show", "text=t", "--config", &file]);
        assert_eq!(called.expect(0).stdout, "{\"text\": \"t\"}\n", "{name}");
    }
    assert_eq!(first.unwrap()["servers"].as_array().unwrap().len(), 2);
}

#[test]
fn what_has_no_meaning_here_disables_one_server_with_the_reason() {
    let bench = Bench::new();
    let text = r#"{
  "inputs": [{"id": "key", "type": "promptString"}],
  "servers": {
    "asks": {"command": "x", "env": {"KEY": "${input:key}"}},
    "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
    "file": {"command": "x", "envFile": "${workspaceFolder}/.env"},
    "setting": {"command": "x", "args": ["${config:x.y}"]},
    "wrong": {"command": 7},
    "misspelt": {"comand": "x"},
    "My Server": {"command": "x"},
    "helper": {"url": "http://127.0.0.1:9/", "headersHelper": "vault \"h\""},
    "good": {"command": "/nonexistent/good"}
  }
}"#;
    let file = bench.fixture.file("mcp.json", text).display().to_string();
    insta::assert_snapshot!(bench.run(["config", "check", &file]).shown(&bench), @r#"
    exit 2
    fault FIXTURE/mcp.json:8: `servers.wrong.command` should be a string, found integer
    fault FIXTURE/mcp.json:9: `servers.misspelt.comand` is not a known key
          hint: did you mean `command`?
    fault FIXTURE/mcp.json:10: `servers."My Server"` is not a server name: letters, digits and `_:@/.-` only
    fault FIXTURE/mcp.json:11: `servers.helper.headersHelper` should be an array of a program and its arguments, found string
          hint: write "headersHelper": ["sh", "-c", "vault \"h\""]
    note  FIXTURE/mcp.json:4: `asks` is disabled: `${input:key}` asks a person each time, which is not honoured yet (line 4)
    note  FIXTURE/mcp.json:6: `file` is disabled: not honoured yet: `envFile`
    note  FIXTURE/mcp.json:5: `old` is disabled: the transport `sse` of 2024 is not supported; many such servers have a streamable HTTP URL, often ending in /mcp
    note  FIXTURE/mcp.json:7: `setting` is disabled: `${config:x.y}` has no meaning outside its editor (line 7)
    4 faults in FIXTURE/mcp.json
    "#);
    bench.run(["call", "good.x", "--config", &file]).expect(3);
    bench.run(["call", "asks.x", "--config", &file]).expect(2);
}

#[test]
fn broken_json_is_named_by_line_and_column() {
    let bench = Bench::new();
    let said = |text: &str| {
        let file = bench.fixture.file("mcp.json", text).display().to_string();
        bench.run(["config", "check", &file]).shown(&bench)
    };
    let told = [
        said("{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"\n  }\n"),
        said("{\"mcpServers\": []}"),
        said("{\"other\": {}}"),
        said("[]"),
        said("{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"a\": {\"command\": \"y\"}}}"),
    ];
    insta::assert_snapshot!(told.join("\n"), @r"
    exit 2
    fault FIXTURE/mcp.json:5: is not JSON: EOF while parsing an object
    1 fault in FIXTURE/mcp.json

    exit 2
    fault FIXTURE/mcp.json:1: `mcpServers` should be a table, found array
    1 fault in FIXTURE/mcp.json

    exit 2
    fault FIXTURE/mcp.json:1: is JSON with neither `mcpServers` nor `servers`
    1 fault in FIXTURE/mcp.json

    exit 2
    fault FIXTURE/mcp.json:1: should be a JSON object, found array
    1 fault in FIXTURE/mcp.json

    exit 2
    fault FIXTURE/mcp.json:1: `mcpServers.a` is given twice; the first one counts
    1 fault in FIXTURE/mcp.json
    ");
}

#[test]
fn placeholders_are_filled_in_once_as_each_program_means_them() {
    let bench = Bench::new();
    let Some(python) = python() else { return };
    let script = bench.fixture.file("show.py", std::fs::read(data("tests/data/show.py")).unwrap());
    let script = script.display().to_string();
    let call = |name: &str, text: &str| {
        let file = bench.fixture.file(name, text).display().to_string();
        let mut command = bench.command(["call", "s.x", "--config", &file]);
        let ran = command.env("SCRIPT", &script).env("CASH", "a$b${c}").output().unwrap();
        Ran::of(ran)
    };
    // The program itself: what it would be started as tells what was filled in.
    let started = |name: &str, text: &str| call(name, text).stderr;
    let toml = |command: &str| format!("[mcp_servers.s]\ncommand = \"/nonexistent/{command}\"\n");
    assert!(started("p.toml", &toml("${CASH}")).contains("`/nonexistent/a$b${c}`"));
    assert!(started("p.toml", &toml("${UNSET:-fall back}")).contains("`/nonexistent/fall back`"));
    assert!(
        started("p.toml", &toml("$5 and 100% $${CASH}"))
            .contains("`/nonexistent/$5 and 100% ${CASH}`")
    );
    assert!(started("config.toml", &toml("${CASH}")).contains("`/nonexistent/${CASH}`"));
    let json = |key: &str, command: &str| {
        format!("{{\"{key}\": {{\"s\": {{\"command\": \"/nonexistent/{command}\"}}}}}}")
    };
    assert!(
        started("mcp.json", &json("servers", "${env:CASH}")).contains("`/nonexistent/a$b${c}`")
    );
    assert!(
        started("mcp.json", &json("mcpServers", "${CASH}${/}x"))
            .contains("`/nonexistent/a$b${c}/x`")
    );
    let folder = bench.fixture.path().display();
    let ran = started(".vscode/mcp.json", &json("servers", "${workspaceFolder}"));
    assert!(ran.contains(&format!("`/nonexistent/{folder}`")), "{ran}");
    let unset = format!(
        "[mcp_servers.s]\ncommand = {python:?}\nargs = [\"${{SCRIPT}}\"]\nenv = {{ KEY = \"${{UNSET}}\" }}\n"
    );
    let ran = call("p.toml", &unset);
    insta::assert_snapshot!(ran.shown(&bench), @r"
    exit 2
    warning: read FIXTURE/p.toml:3: `mcp_servers.s.args[0]` shows the value of `SCRIPT` to every user of this machine, in the list of processes
    error: failed to read FIXTURE/p.toml:4: `mcp_servers.s.env.KEY` needs the variable `UNSET`, which is not set
    hint: set `UNSET`, or write a default: ${UNSET:-text}
    ");
}

/// The server of trouble case 14, which tells back the headers it got, and its URLs.
struct Echo {
    child: std::process::Child,
    urls: Value,
}

impl Echo {
    fn start(bench: &Bench) -> Option<Self> {
        let python = python()?;
        for name in ["14.py", "common.py", "common_http.py"] {
            let file = data("../connect/tests/data/servers").join(name);
            bench.fixture.file(format!("servers/{name}"), std::fs::read(file).unwrap());
        }
        let mut child = Command::new(python)
            .arg(bench.fixture.join("servers/14.py"))
            .stdin(Stdio::piped()) // it ends with it
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let urls = serde_json::from_str(line.strip_prefix("READY ").unwrap()).unwrap();
        Some(Self { child, urls })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn header_placeholders_arrive_filled_in_and_the_secret_is_shown_nowhere() {
    let bench = Bench::new();
    let Some(echo) = Echo::start(&bench) else { return };
    let (mcp, deny) = (echo.urls["mcp"].as_str().unwrap(), echo.urls["deny"].as_str().unwrap());
    let headers = "Authorization = \"Bearer ${TOK}\", X-Cash = \"${CASH}\", \
                   X-Default = \"${UNSET:-fallback}\", X-Literal = \"$5 and 100%\"";
    let config = bench.configuration(&format!(
        "[mcp_servers.echo]\nurl = \"{mcp}\"\nhttp_headers = {{ {headers} }}\n\
         [mcp_servers.deny]\nurl = \"{deny}\"\nhttp_headers = {{ {headers} }}\n\
         [mcp_servers.missing]\nurl = \"{mcp}\"\nhttp_headers = {{ X-Missing = \"${{UNSET}}\" }}\n"
    ));
    let run = |words: &[&str]| {
        let mut command = bench.command(["-v", "--config", &config]);
        command.args(words).env("TOK", "s3cr3t-VALUE-99").env("CASH", "a$b${c}");
        Ran::of(command.output().unwrap())
    };
    let told = run(&["call", "echo.headers"]);
    let got: Value = serde_json::from_str(&told.expect(0).stdout).unwrap();
    assert_eq!(got["x-cash"], "a$b${c}", "{got}");
    assert_eq!(got["x-default"], "fallback", "{got}");
    assert_eq!(got["x-literal"], "$5 and 100%", "{got}");
    let missing = run(&["call", "missing.headers"]);
    missing.expect(2);
    assert!(missing.stderr.contains("`mcp_servers.missing.http_headers.X-Missing`"), "{missing:?}");
    assert!(missing.stderr.contains("`UNSET`"), "{missing:?}");
    for words in [
        &["call", "echo.leak"][..],
        &["call", "deny.headers"],
        &["config", "show"],
        &["config", "show", "--json"],
        &["config", "check"],
    ] {
        let ran = run(words);
        let whole = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!whole.contains("s3cr3t-VALUE-99"), "{words:?}: {whole}");
    }
}
