use plenipo_config::{ConfigError, Defined, Origin, ServerState, StartContext, parse};
use plenipo_connect::environment::Quoting;
use plenipo_connect::{ConnectOptions, ServerName};

const WHOLE: &str = r#"
[environments.build]
command = ["ssh", "{env}", "${HOST}", "--"]
quoting = "posix"
cwd = "C:\\work"
env = { A = "${HOST}" }
env_vars = ["SSH_AUTH_SOCK"]
forward_env = ["-o", "SendEnv={name}"]
permissions = ":read-only"
startup_timeout_sec = 90
tool_timeout_sec = 7

[environments.bare]
command = ["docker", "exec", "-i", "box"]
watchdog = false

[mcp_servers.notes]
command = "./notes"
cwd = "/srv"
env = { TOKEN = "s3cret" }
environment_id = "build"
"#;

fn shown(fault: &ConfigError) -> String {
    match fault.hint() {
        Some(hint) => format!("{fault} ({hint})"),
        None => fault.to_string(),
    }
}

#[test]
fn an_environment_is_read_and_its_server_bound_to_it() {
    let config = parse(WHOLE, "plenipo.toml", Origin::User).unwrap();
    let build = config.environments["build"].as_ref().unwrap();
    assert_eq!((build.quoting, build.cwd.as_deref()), (Quoting::Posix, Some("C:\\work")));
    assert!(!config.environments["bare"].as_ref().unwrap().watchdog);
    let mut options = ConnectOptions::default();
    build.apply_to(&mut options);
    assert_eq!(options.environment.as_str(), "build");
    assert_eq!((options.start_timeout.as_secs(), options.tool_timeout.as_secs()), (90, 7));
    let lookup = |name: &str| (name == "HOST").then(|| "host.example".into());
    let mut context = StartContext::new(&lookup);
    context.directory = Some(std::path::Path::new("/here"));
    let server = config.servers[&ServerName::new("notes").unwrap()].as_ref().unwrap();
    assert!(matches!(server.state, ServerState::Enabled));
    assert_eq!(server.environment_id.as_ref().map(|id| id.as_str()), Some("build"));
    let plenipo_config::TransportSettings::Stdio(stdio) = &server.transport else {
        panic!("it is stdio")
    };
    let elsewhere = stdio.command_elsewhere(&context).unwrap();
    assert_eq!(elsewhere.program(), "./notes", "not from a directory here");
    let bound = build.environment(&context).unwrap().bind(&elsewhere).unwrap();
    let words: Vec<_> = bound.arguments().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(words[..4], ["-o", "SendEnv=TOKEN", "host.example", "--"]);
    assert!(words[4].ends_with(" 'plenipo-watchdog' '/srv' './notes'"), "{}", words[4]);
    assert_eq!(bound.directory(), context.directory, "the command itself starts here");
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn a_faulty_environment_is_kept_with_its_fault() {
    let faults: Vec<_> = [
        "quoting = \"argv\"",
        "command = []",
        "command = [\"\"]",
        "command = \"ssh host\"",
        "command = [\"{env}\"]\nforward_env = [\"{name}\"]",
        "command = [\"/usr/bin/ssh\", \"host\"]",
        "command = [\"x\"]\nquoting = \"shell\"",
        "command = [\"x\"]\ncwd = \"work\"",
        "command = [\"x\"]\ncwd = \"/w\"\nwatchdog = false",
        "command = [\"x\", \"{env}\"]",
        "command = [\"x\"]\nforward_env = [\"-e\", \"{name}\"]",
        "command = [\"x\", \"{env}\"]\nforward_env = [\"-e\"]",
        "command = [\"x\"]\nqouting = \"posix\"",
        "command = [\"x\"]\nstartup_timeout_sec = 0",
        "command = [\"x\"]\ntool_timeout_sec = \"soon\"",
        "cwd = \"/w\"",
    ]
    .into_iter()
    .map(|body| {
        let text = format!("[environments.good]\ncommand = [\"x\"]\n[environments.x]\n{body}");
        let config = parse(&text, "plenipo.toml", Origin::User).unwrap();
        assert!(config.environments["good"].is_ok(), "others are not taken away");
        shown(config.environments["x"].as_ref().unwrap_err())
    })
    .collect();
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn this_machine_can_only_be_switched_off() {
    let read = |text: &str| parse(text, "plenipo.toml", Origin::User).unwrap();
    assert!(read("").local_environment);
    assert!(!read("[environments.local]\nenabled = false").local_environment);
    let config = read("[environments.local]\ncommand = [\"x\"]\n[environments.\"a b\"]\n");
    assert!(config.environments["local"].is_err() && config.environments["a b"].is_err());
}

#[test]
fn a_project_leads_nowhere_else() {
    let fault = parse("[environments.x]\ncommand = [\"x\"]", "plenipo.toml", Origin::Project);
    assert!(fault.unwrap_err().to_string().contains("may not be set by a project's file"));
    let text = "[mcp_servers.a]\ncommand = \"x\"\nenvironment_id = \"box\"\n\
                [mcp_servers.b]\ncommand = \"x\"\nenvironment_id = \"local\"\n";
    let config = parse(text, "plenipo.toml", Origin::Project).unwrap();
    let server = |name| config.servers[&ServerName::new(name).unwrap()].as_ref();
    for name in ["a", "b"] {
        let fault = server(name).unwrap_err();
        let place = format!("mcp_servers.{name}.environment_id");
        assert_eq!((fault.key.as_str(), fault.hint().is_some()), (place.as_str(), true));
    }
    let trusted = parse(text, "plenipo.toml", Origin::User).unwrap();
    assert!(trusted.servers.values().all(Result::is_ok), "the control");
}

#[test]
fn a_server_elsewhere_has_no_path_that_is_relative_to_here_and_no_url() {
    let text = "[mcp_servers.a]\ncommand = \"x\"\ncwd = \"sub\"\nenvironment_id = \"box\"\n\
                [mcp_servers.b]\nurl = \"https://x\"\nenvironment_id = \"box\"\n";
    let config = parse(text, "plenipo.toml", Origin::User).unwrap();
    let server = |name| config.servers[&ServerName::new(name).unwrap()].as_ref();
    assert!(server("a").unwrap_err().to_string().contains("absolute path there"));
    let ServerState::Disabled { reason } = &server("b").unwrap().state else {
        panic!("it is disabled")
    };
    assert!(reason.contains("requests to a `url` leave from this machine"), "{reason}");
    let local = "[mcp_servers.b]\nurl = \"https://x\"\nenvironment_id = \"local\"\n";
    let config = parse(local, "plenipo.toml", Origin::User).unwrap();
    let server = config.servers[&ServerName::new("b").unwrap()].as_ref().unwrap();
    assert!(matches!(server.state, ServerState::Enabled), "this machine is where requests leave");
}

#[test]
fn a_name_that_points_nowhere_is_a_fault_where_it_stands() {
    let text = r#"
default_permissions = "workspac"
[sandbox]
default_for_servers = "tight"
[environments.box]
command = ["x"]
cwd = "/w"
permissions = "raed"
[environments.fine]
command = ["x"]
cwd = "/w"
permissions = "read"
[mcp_servers.a]
command = "x"
sandbox = "confind"
[mcp_servers.b]
command = "x"
environment_id = "bx"
[mcp_servers.good]
command = "x"
sandbox = "confined"
[mcp_servers.off]
command = "x"
sandbox = "off"
[mcp_servers.there]
command = "x"
environment_id = "fine"
[environments.bare]
command = ["x"]
permissions = "read"
[mcp_servers.named]
command = "x"
cwd = "/w"
environment_id = "bare"
[mcp_servers.unnamed]
command = "x"
environment_id = "bare"
[mcp_servers.nowhere]
command = "x"
environment_id = "quite-another-thing"
"#;
    let mut config = parse(text, "plenipo.toml", Origin::User).unwrap();
    assert!(config.has_names());
    let profiles = [":read-only", ":workspace", "confined", "read"].map(str::to_owned);
    let defined = Defined::new(profiles).with_environments_of(&config);
    let mut faults: Vec<String> = config.check_names(&defined).iter().map(shown).collect();
    faults.extend(config.environments.values().filter_map(|it| it.as_ref().err()).map(shown));
    faults.extend(config.servers.values().filter_map(|it| it.as_ref().err()).map(shown));
    insta::assert_snapshot!(faults.join("\n"));
    let well: Vec<_> = config.servers.iter().filter(|(_, server)| server.is_ok()).collect();
    assert_eq!(well.len(), 4, "the controls: `good`, `named`, `off` and `there`");
    assert!(!parse("[mcp_servers.a]\ncommand = \"x\"", "", Origin::User).unwrap().has_names());
}
