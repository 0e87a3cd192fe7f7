use std::ffi::{OsStr, OsString};

use plenipo_config::{Config, Origin, ServerState, StartContext, parse};
use plenipo_connect::{ConnectOptions, Endpoint, ServerName};
use proptest::prelude::*;

const WHOLE: &str = r#"
launcher = "/opt/plenipo"
default_permissions = ":read-only"

[server.workspace]
allow_unsandboxed = true

[sandbox]
minimum_rung = "no-proc"
deny_glob = "strict"

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
max_message_bytes = 65_536
max_tools = 10_000
max_list_pages = 7
max_list_items = 8
max_error_bytes = 1024
max_questions = 9
tool_total_timeout_sec = 60
restart = "never"
shutdown = "wait"
enabled_tools = ["a", "b"]
disabled_tools = ["b"]
default_tools_approval_mode = "writes"
tools = { a = { approval_mode = "approve", tool_timeout_sec = 7 }, "odd name" = { approval_mode = "prompt" } }
trust_annotations = true
max_input_rounds = 3

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
oauth = { client_id = "pre-1", callback_port = 8765 }
supports_parallel_tool_calls = true
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
    assert_eq!(config.minimum_rung.as_deref(), Some("no-proc"));
    assert!(config.strict_globs && !read("[sandbox]\ndeny_glob = \"at-start\"").strict_globs);
    assert_eq!(config.permissions_source(), Some(WHOLE));
    let server = |name: &str| config.servers[&ServerName::new(name).unwrap()].clone().unwrap();
    insta::assert_debug_snapshot!(server("files"));
    let state = |name: &str| match server(name).state {
        ServerState::Disabled { reason } => reason,
        other => format!("{other:?}"),
    };
    assert_eq!(state("off"), "`enabled = false`");
    assert_eq!(state("later"), "not honoured yet: `supports_parallel_tool_calls`");
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
    assert_eq!(options.tool_timeouts["a"].as_secs(), 7);
    assert_eq!(options.max_message_bytes, 65_536);
    assert_eq!((options.max_tools, options.max_list_pages), (10_000, 7));
    assert_eq!((options.max_list_items, options.max_error_bytes), (8, 1024));
    assert_eq!((options.max_questions, options.max_input_rounds), (9, 3));
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
        "command = \"x\"\nmax_message_bytes = 65535",
        "command = \"x\"\nmax_tools = 0",
        "command = \"x\"\nmax_list_items = 100001",
        "command = \"x\"\nmax_error_bytes = 1023",
        "command = \"x\"\nmax_questions = \"many\"",
        "command = \"x\"\ndefault_tools_approval_mode = \"never\"",
        "command = \"x\"\ntools = { a = { approval_mod = \"auto\" } }",
        "command = \"x\"\ntools.a.approval_mode = true",
        "command = \"x\"\ntools.a.tool_timeout_sec = 0",
        "command = \"x\"\nmax_input_rounds = 1001",
        "command = \"x\"\nmax_input_rounds = 1.5",
        "command = \"x\"\ntool_total_timeout_sec = \"long\"",
        "command = \"x\"\nrestart = \"always\"",
        "command = \"x\"\nrestart = true",
        "url = \"https://x\"\nrestart = \"never\"",
        "command = \"x\"\nshutdown = \"later\"",
        "url = \"https://x\"\nshutdown = \"wait\"",
        "command = \"x\"\nstartup_timeout_ms = 1.5",
        "command = \"x\"\nurl = \"https://x\"",
        "command = \"x\"\nbearer_token = \"secret\"",
        "command = \"x\"\nzzz = 1",
        "command = \"x\"\nhttp_headers = { A = \"1\" }",
        "command = \"x\"\nscopes = [\"a\"]",
        "url = \"https://x\"\nscopes = [\"a b\"]",
        "url = \"https://x\"\noauth_resource = \"http://x\"",
        "url = \"https://x\"\noauth = { callback_port = 0 }",
        "url = \"https://x\"\noauth = { callback_prot = 1 }",
        "url = \"https://x\"\noauth = { client_secret_env_var = \"S\" }",
        "url = \"https://x\"\noauth = { authorization_server_issuer = \"https://x/?a\" }",
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
        ("\n[sandbox]\nminimum_rung = \"landlock\"", Origin::Project),
        ("[sandbox]\nminimum_rung = \"none\"", Origin::User),
        ("\n[sandbox]\ndeny_glob = \"at-start\"", Origin::Project),
        ("[sandbox]\ndeny_glob = true", Origin::User),
        ("[sandbox]\ndeny_glob = \"stric\"", Origin::User),
        ("[sandbox]\nminimum = \"full\"", Origin::User),
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

#[test]
fn relative_commands_and_directories_are_taken_from_where_the_host_works() {
    let started = |body: &str| {
        let config = read(&format!("[mcp_servers.a]\n{body}"));
        let server = config.servers.into_values().next().unwrap().unwrap();
        let nothing = |_: &str| None;
        let mut context = StartContext::new(&nothing);
        context.directory = Some(std::path::Path::new("/work"));
        let Endpoint::Stdio(command) = server.endpoint(&context).unwrap() else {
            panic!("it has a command")
        };
        let shown = format!("{command:?}");
        let cwd = shown.split("cwd: ").nth(1).unwrap().trim_end_matches(" }").to_owned();
        format!("{} in {cwd}", command.program().display())
    };
    assert_eq!(started("command = \"npx\""), "npx in Some(\"/work\")");
    assert_eq!(started("command = \"bin/x\"\ncwd = \"sub\""), "/work/bin/x in Some(\"/work/sub\")");
    assert_eq!(started("command = \"/x\"\ncwd = \"/srv\""), "/x in Some(\"/srv\")");
}

#[test]
fn disabled_in_any_programs_words_is_disabled() {
    for (file, text) in [
        ("plenipo.toml", "[mcp_servers.a]\ncommand = \"x\"\nenabled = false"),
        ("mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": true}}}"),
        ("mcp.json", "{\"servers\": {\"a\": {\"command\": \"x\", \"enabled\": false}}}"),
    ] {
        let config = parse(text, file, Origin::User).unwrap();
        let server = config.servers.into_values().next().unwrap().unwrap();
        assert!(matches!(server.state, ServerState::Disabled { .. }), "{text}");
    }
}

#[test]
fn deep_nesting_is_refused_and_does_not_overflow() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let json = format!("{{\"mcpServers\": {deep}}}");
        assert!(parse(&json, "mcp.json", Origin::User).is_err());
    }
    let toml = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&toml, "plenipo.toml", Origin::Project).is_err());
}

#[test]
fn a_template_is_filled_in_once_and_shows_no_value() {
    let config = read(
        "[mcp_servers.a]\ncommand = \"c\"\n\
         env = { A = \"${X}-${Y:-d}-$${X}-$5\", B = \"${EMPTY:-d}\", C = \"${EMPTY}\" }\n",
    );
    let server = config.servers.into_values().next().unwrap().unwrap();
    let host = |name: &str| match name {
        "X" => Some(OsString::from("${Y}$${X}")),
        "EMPTY" => Some(OsString::new()),
        _ => None,
    };
    let Endpoint::Stdio(command) = server.endpoint(&StartContext::new(&host)).unwrap() else {
        panic!("it has a command")
    };
    let shown: Vec<_> = command
        .variables()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    assert_eq!(shown, ["A=${Y}$${X}-d-${X}-$5", "B=d", "C="]);
    assert!(format!("{server:?}").contains("${X}[redacted]${Y:-[redacted]}[redacted]"));
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
            "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "max_message_bytes", "max_tools", "max_list_pages", "enabled_tools",
            "disabled_tools", "default_tools_approval_mode", "tools", "max_input_rounds", "url", &key];
        let known = keys[index.index(keys.len())];
        for origin in [Origin::Managed, Origin::User, Origin::Project] {
            std::hint::black_box(parse(&text, "f", origin).is_ok());
            let server = format!("[mcp_servers.a]\n{known} = {value}\n");
            std::hint::black_box(parse(&server, "f", origin).is_ok());
            std::hint::black_box(parse(&format!("{known} = {value}"), "f", origin).is_ok());
            std::hint::black_box(parse(&format!("[{text}]\n{text} = {value}"), "f", origin).is_ok());
            std::hint::black_box(parse(&format!("{{{text}"), "f", origin).is_ok());
            for servers in ["mcpServers", "servers"] {
                let json = format!("{{\"{servers}\": {{\"a\": {{\"{known}\": {value}, {text}}}}}}}");
                std::hint::black_box(parse(&json, "f", origin).is_ok());
            }
        }
    }
}

#[test]
fn limits_and_the_restart_policy_reach_the_connection() {
    let config = read(WHOLE);
    let options_of = |name: &str| {
        let mut options = ConnectOptions::default();
        let name = ServerName::new(name).unwrap();
        config.servers[&name].as_ref().unwrap().apply_to(&mut options);
        options
    };
    let files = options_of("files");
    assert_eq!(files.tool_timeout.as_secs(), 10);
    assert_eq!(files.tool_total_timeout.map(|limit| limit.as_secs()), Some(60));
    assert_eq!(files.restart, plenipo_connect::RestartPolicy::Never);
    assert_eq!(files.shutdown, plenipo_connect::ShutdownPolicy::Wait);
    let off = options_of("off");
    assert_eq!(off.tool_total_timeout, None);
    assert_eq!(off.restart, plenipo_connect::RestartPolicy::OnFailure);
}

#[test]
fn every_fault_is_told_and_none_that_only_follows_from_another() {
    let text = r#"
launcher = "relative"
nonsense = 1
[sandbox]
minimum_rung = "none"
deny_glob = "x"
[environments.away]
command = ["docker", 7, false]
quoting = "loud"
env = { "A=B" = "x", C = 1 }
[mcp_servers.many]
comand = "x"
args = [1, "y", true]
env = { A = 1, B = "${", C = "z" }
env_vars = ["A B", 3, { name = "X", source = "remote" }]
startup_timeout_sec = -1
max_tools = 0
[mcp_servers.many.tools.a]
approval_mode = "maybe"
tool_timeout_sec = 0
other = 1
[mcp_servers.both]
command = "x"
url = "https://a.example/"
restart = "perhaps"
[mcp_servers.web]
url = "https://a.example/"
cwd = "/x"
args = []
http_headers = { "a b" = "x", Host = "x", X-A = 1 }
[mcp_servers.web.oauth]
grant = "none"
callback_port = 0
client_secret = "s3cr3t"
[mcp_servers.good]
command = "x"
[mcp_servers."no name"]
command = "x"
"#;
    let (config, faults) = plenipo_config::check(text, "plenipo.toml", Origin::User);
    let told: Vec<String> =
        faults.iter().map(|fault| fault.to_string().replace("read plenipo.toml:", "")).collect();
    insta::assert_snapshot!(told.join("\n"));
    assert!(!told.concat().contains("s3cr3t"));
    let faulty = config.servers.iter().filter(|(_, server)| server.is_err());
    assert_eq!(faulty.count(), 3, "each is kept with its fault, and the good one is good");
    assert!(config.environments["away"].is_err());
    assert_eq!(&parse(text, "plenipo.toml", Origin::User).unwrap_err(), &faults[0]);
    for part in text.split("\n[").skip(1) {
        let (config, faults) = plenipo_config::check(&format!("[{part}"), "f", Origin::User);
        let kept = config.servers.values().filter_map(|server| server.as_ref().err());
        let kept = kept.chain(config.environments.values().filter_map(|it| it.as_ref().err()));
        assert!(kept.count() <= faults.len(), "{part}");
        assert_eq!(faults.is_empty(), part.contains(".good]"), "{part}");
    }
}

#[test]
fn credentials_that_others_see_are_warned_of_and_nothing_else() {
    let warnings = |origin, line: &str| {
        let text = format!("[mcp_servers.x]\n{line}\n");
        let config = parse(&text, "plenipo.toml", origin).unwrap();
        let server = config.servers.into_values().next().unwrap().unwrap();
        server.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let command = |more: &str| format!("command = \"x\"\n{more}");
    let token = format!("ghp_{}", "a1".repeat(18));
    for (origin, line) in [
        (Origin::User, command("args = [\"--api-key\", \"s3cr3t-s3cr3t\"]")),
        (Origin::User, command("args = [\"--token=s3cr3t-s3cr3t\"]")),
        (Origin::User, command("args = [\"postgresql://ada:s3cr3t@db.example/notes\"]")),
        (Origin::User, command(&format!("args = [{token:?}]"))),
        (Origin::User, "url = \"https://a.example/mcp?apiKey=s3cr3t-s3cr3t\"".to_owned()),
        (Origin::User, format!("url = \"https://a.example/{token}/mcp\"")),
        (Origin::Project, command("env = { NOTES_TOKEN = \"s3cr3t-s3cr3t\" }")),
        (Origin::Project, command(&format!("env = {{ NOTES = {token:?} }}"))),
    ] {
        let found = warnings(origin, &line);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(!found[0].contains("s3cr3t") && !found[0].contains(&token), "{found:?}");
    }
    for (origin, line) in [
        (Origin::User, command("env = { NOTES_TOKEN = \"s3cr3t-s3cr3t\" }")),
        (Origin::Project, command("env = { NOTES_TOKEN = \"${NOTES_TOKEN}\" }")),
        (Origin::Project, command("env = { GITHUB_PERSONAL_ACCESS_TOKEN = \"<YOUR_TOKEN>\" }")),
        (Origin::Project, command("env = { MEMORY_FILE_PATH = \"/path/to/custom/memory.jsonl\" }")),
        (
            Origin::User,
            command("args = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv/notes\"]"),
        ),
        (
            Origin::User,
            command("args = [\"mcp-server-time\", \"--local-timezone=America/New_York\"]"),
        ),
        (Origin::User, command("args = [\"mcp-server-fetch\", \"--user-agent=ExampleAgent/1.0\"]")),
        (
            Origin::User,
            command(
                "args = [\"postgresql://localhost/mydb\", \"--token-file\", \"/run/secrets/token\"]",
            ),
        ),
        (
            Origin::User,
            "url = \"https://a.example/mcp?tools=search&page_size=100000000\"".to_owned(),
        ),
    ] {
        assert_eq!(warnings(origin, &line), [""; 0], "{line}");
    }
}
