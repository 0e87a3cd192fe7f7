use std::ffi::{OsStr, OsString};

use plenipo_connect::config::{Endpoint, ServerState, StartContext, parse};
use plenipo_connect::{Config, ConnectOptions, Origin, ServerName};
use proptest::prelude::*;

const WHOLE: &str = r#"
launcher = "/opt/plenipo"
default_permissions = ":read-only"

[server.workspace]
allow_unsandboxed = true

[permissions.tight]
extends = ":read-only"

[mcp_servers.files]
command = "npx"
args = ["-y", "server-files"]
env = { LANG = "C" }
env_vars = ["TOKEN", { name = "OTHER", source = "local" }]
cwd = "/srv"
required = true
startup_timeout_sec = 1.5
startup_timeout_ms = 9000
tool_timeout_sec = 1_0
enabled_tools = ["a", "b"]
disabled_tools = ["b"]

[mcp_servers.off]
command = "x"
enabled = false

[mcp_servers."web:@a/b.c-d"]
url = "https://example.com/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { "X-A" = "one" }
env_http_headers = { "X-B" = "TOKEN" }
http_headers_helper = ["vault", "headers"]

[mcp_servers.later]
url = "https://example.com/mcp"
scopes = ["read"]
oauth_resource = "https://example.com"
auth = "oauth" # the default, so there is nothing to wait for
"#;

fn read(text: &str) -> Config {
    parse(text, "plenipo.toml", Origin::User).unwrap()
}

fn server_fault(body: &str) -> String {
    let text = format!("[mcp_servers.good]\ncommand = \"x\"\n[mcp_servers.x]\n{body}");
    let config = read(&text);
    assert!(config.servers[&ServerName::new("good").unwrap()].is_ok(), "others are not taken away");
    let fault = config.servers[&ServerName::new("x").unwrap()].clone().unwrap_err();
    match fault.hint() {
        Some(hint) => format!("{fault} ({hint})"),
        None => fault.to_string(),
    }
}

#[test]
fn every_honoured_key_is_read() {
    let config = read(WHOLE);
    assert_eq!(config.launcher.as_deref().unwrap().to_str(), Some("/opt/plenipo"));
    assert_eq!(config.default_permissions.as_deref(), Some(":read-only"));
    assert!(config.allow_unsandboxed && config.warnings.is_empty());
    assert_eq!(config.permissions_source(), Some(WHOLE));
    let server = |name: &str| config.servers[&ServerName::new(name).unwrap()].clone().unwrap();
    insta::assert_debug_snapshot!(server("files"));
    let state = |name: &str| match server(name).state {
        ServerState::Disabled { reason } => reason,
        other => format!("{other:?}"),
    };
    assert_eq!(state("off"), "`enabled = false`");
    assert_eq!(state("later"), "not honoured yet: `scopes`, `oauth_resource`");
    insta::assert_debug_snapshot!("an_http_server", server("web:@a/b.c-d"));
}

#[test]
fn limits_and_filter_reach_the_options_and_variables_the_command() {
    let config = read(WHOLE);
    let server = config.servers[&ServerName::new("files").unwrap()].clone().unwrap();
    let mut options = ConnectOptions::default();
    server.apply_to(&mut options);
    assert_eq!(options.start_timeout.as_millis(), 1500);
    assert_eq!(options.tool_timeout.as_secs(), 10);
    assert!(options.filter.allows("a") && !options.filter.allows("b"));
    let host = |name: &str| (name != "OTHER").then(|| OsString::from(format!("host {name}")));
    let Endpoint::Stdio(command) = server.endpoint(&StartContext::new(&host)).unwrap() else {
        panic!("it has a command")
    };
    let variables: Vec<_> = command
        .variables()
        .filter(|(name, _)| ["LANG", "TOKEN", "OTHER"].map(OsStr::new).contains(name))
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    assert_eq!(variables, ["LANG=C", "TOKEN=host TOKEN"]);
    let shown = format!("{command:?} {config:?}");
    assert!(shown.contains(r#""-y", "server-files""#) && shown.contains("TOKEN"), "{shown}");
    assert!(!shown.contains("host TOKEN") && !shown.contains("\"C\""), "no values: {shown}");
}

#[test]
fn a_fault_names_file_line_key_and_the_nearest_known_key() {
    let faults: Vec<_> = [
        "comand = \"x\"",
        "command = 7",
        "command = \"\"",
        "args = [\"a\"]",
        "command = \"x\"\nargs = [\"a\", 7]",
        "command = \"x\"\nenv = { A = 1 }",
        "command = \"x\"\nenv = { \"A=B\" = \"1\" }",
        "command = \"x\"\nenv_vars = [{ name = \"A\", source = \"remote\" }]",
        "command = \"x\"\nenv_vars = [{ nmae = \"A\" }]",
        "command = \"x\"\ntool_timeout_sec = -1",
        "command = \"x\"\ntool_timeout_sec = nan",
        "command = \"x\"\nstartup_timeout_ms = 1.5",
        "command = \"x\"\nurl = \"https://x\"",
        "command = \"x\"\nbearer_token = \"secret\"",
        "command = \"x\"\nzzz = 1",
        "command = \"x\"\nhttp_headers = { A = \"1\" }",
        "command = \"x\"\nscopes = [\"a\"]",
        "url = \"https://x\"\nargs = []",
        "url = \"https://x\"\ncwd = \"/\"",
        "url = \"ftp://x\"",
        "url = \"https://me:secret@x\"",
        "url = \"https://x\"\nhttp_headers = { \"A B\" = \"1\" }",
        "url = \"https://x\"\nhttp_headers = { Host = \"1\" }",
        "url = \"https://x\"\nhttp_headers = { A = \"1\\r\\nB: 2\" }",
        "url = \"https://x\"\nhttp_headers = { A = \"1\" }\nenv_http_headers = { a = \"T\" }",
        "url = \"https://x\"\nhttp_headers_helper = \"vault read -field=\\\"h\\\" x\"",
        "url = \"https://x\"\nhttp_headers_helper = []",
        "url = \"https://x/${TOKEN\"",
        "command = \"x\"\nenv = { A = \"${A-B}\" }",
        "command = \"x\"\nenv = { A = \"${A:-${B}}\" }",
        "command = \"a\\u0000b\"",
        "enabled = \"yes\"",
    ]
    .into_iter()
    .map(server_fault)
    .collect();
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn faults_outside_servers_fail_the_file() {
    let faults: Vec<_> = [
        ("launcher = \"bin/x\"", Origin::User),
        ("launcher = \"/x\"", Origin::Project),
        ("\n[server.workspace]\nallow_unsandboxed = true", Origin::Project),
        ("[server.other]", Origin::User),
        ("[server.workspace]\nallow = true", Origin::User),
        ("[mcp_server.x]\ncommand = \"y\"", Origin::User),
        ("mcp_servers = 3", Origin::User),
        ("a = \n", Origin::User),
        ("[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"", Origin::User),
    ]
    .into_iter()
    .map(|(text, origin)| {
        let fault = parse(text, "plenipo.toml", origin).unwrap_err();
        match fault.hint() {
            Some(hint) => format!("{fault} ({hint})"),
            None => fault.to_string(),
        }
    })
    .collect();
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn a_name_that_is_none_takes_no_other_server_away() {
    let config = read(
        "[mcp_servers.workspace]\ncommand = \"y\"\n[mcp_servers.\"a b\"]\ncommand = \"y\"\n\
         [mcp_servers.good]\ncommand = \"y\"\n",
    );
    assert_eq!(config.server_names().map(ServerName::as_str).collect::<Vec<_>>(), ["good"]);
    let refused: Vec<_> = config.refused.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn a_byte_order_mark_and_keys_of_other_parts_are_tolerated() {
    let config = read("\u{feff}mcp_oauth_callback_port = 1\n");
    assert_eq!(config.warnings.len(), 1);
    assert_eq!(
        config.warnings[0].to_string(),
        "read plenipo.toml:1: `mcp_oauth_callback_port` is recognised but not honoured yet"
    );
}

proptest! {
    #[test]
    fn reading_never_panics(
        text in any::<String>(),
        key in "[a-z_]{1,24}",
        value in prop::sample::select(vec![
            "1", "-1", "1e999", "nan", "true", "\"\"", "\"a\\u0000\"", "[]", "[[]]", "{}", "{name=1}",
            "1979-05-27", "99999999999999999999", "0xffffffffffffffff", "[{source=\"remote\"}]",
        ]),
        index in any::<prop::sample::Index>(),
    ) {
        let keys = ["command", "args", "env", "env_vars", "cwd", "enabled", "required",
            "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "enabled_tools",
            "disabled_tools", "url", &key];
        let known = keys[index.index(keys.len())];
        for origin in [Origin::Managed, Origin::User, Origin::Project] {
            std::hint::black_box(parse(&text, "f", origin).is_ok());
            let server = format!("[mcp_servers.a]\n{known} = {value}\n");
            std::hint::black_box(parse(&server, "f", origin).is_ok());
            std::hint::black_box(parse(&format!("{known} = {value}"), "f", origin).is_ok());
            std::hint::black_box(parse(&format!("[{text}]\n{text} = {value}"), "f", origin).is_ok());
        }
    }
}
