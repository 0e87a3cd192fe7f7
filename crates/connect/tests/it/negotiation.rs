use std::time::Duration;

use plenipo_connect::{Connection, EraHint, ErrorKind, Fault, ServerName, StdioCommand};
use plenipo_testkit::Fixture;

use crate::support::{Fake, call, member, said};

#[tokio::test]
async fn modern_request_carries_meta_triplet() {
    let fake = Fake::new("peer", &[("F_ERA", "modern")]);
    let connection = fake.start().await.unwrap();
    assert_eq!(connection.era().version(), "2026-07-28");
    assert_eq!(connection.identity().name, "peer");
    let line = said(&connection, "line", r#"{"n":1.10}"#).await;
    insta::assert_snapshot!(
        line.replace(env!("CARGO_PKG_VERSION"), "VERSION").trim_end(),
        @r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"line","arguments":{"n":1.10},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"plenipo","title":"Plenipo","version":"VERSION"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
    connection.shut_down().await;
    for method in ["server/discover", "tools/list", "tools/call"] {
        let params = fake.params(method);
        assert_eq!(params.len(), 1, "{method}");
        for key in ["protocolVersion", "clientInfo", "clientCapabilities"] {
            assert!(params[0].contains(&format!("\"io.modelcontextprotocol/{key}\"")));
        }
    }
}

#[tokio::test]
async fn modern_peer_never_sees_legacy_methods() {
    let fake = Fake::new("peer", &[("F_ERA", "modern"), ("F_ASKS", "1")]);
    let connection = fake.start().await.unwrap();
    said(&connection, "line", "{}").await;
    connection.shut_down().await;
    assert_eq!(fake.methods(), ["server/discover", "tools/list", "tools/call"]);
    assert!(fake.log("answer").is_empty(), "no response was sent either");
    assert!(fake.seen.warnings()[0].contains("`ping`"));
}

#[tokio::test]
async fn legacy_order_is_probe_initialize_initialized() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let line = said(&connection, "line", "{}").await;
    assert!(!line.contains("_meta"), "{line}");
    connection.shut_down().await;
    let expected =
        ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"];
    assert_eq!(fake.methods(), expected);
    insta::assert_snapshot!(
        fake.params("initialize")[0].replace(env!("CARGO_PKG_VERSION"), "VERSION"),
        @r#"{"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "plenipo", "title": "Plenipo", "version": "VERSION"}}"#
    );
}

#[tokio::test]
async fn a_question_before_the_era_is_known_is_answered_once_it_is() {
    let fake = Fake::new("peer", &[("F_ASKS", "1")]);
    let connection = fake.start().await.unwrap();
    said(&connection, "line", "{}").await;
    connection.shut_down().await;
    let answers = fake.log("answer");
    assert_eq!(answers.len(), 1);
    assert_eq!(member(&answers[0], "id").as_deref(), Some("before"));
}

#[tokio::test]
async fn a_known_era_skips_the_probe() {
    let mut fake = Fake::new("peer", &[]);
    fake.options.era = EraHint::Legacy;
    let connection = fake.start().await.unwrap();
    connection.shut_down().await;
    assert_eq!(fake.methods(), ["initialize", "notifications/initialized"]);
}

#[tokio::test]
async fn stdio_probe_falls_back_on_any_unknown_error() {
    for error in [
        r#"{"code":-32601,"message":"Method not found"}"#,
        r#"{"code":-32602,"message":"initialize first"}"#,
        r#"{"code":-32000,"message":"Server not initialized"}"#,
        r#"{"code":-32600}"#,
        r#""not yet""#,
        r#"{"code":-32022,"message":"v","data":{"supported":["2025-06-18"],"requested":"2026-07-28"}}"#,
        r#"{"code":-32022,"message":"v"}"#,
    ] {
        let fake = Fake::new("peer", &[("F_ERA", "code"), ("F_ERROR", error)]);
        let connection = fake.start().await.unwrap();
        assert_eq!(connection.era().hint(), EraHint::Legacy, "{error}");
        connection.shut_down().await;
    }
}

#[tokio::test]
async fn stdio_probe_timeout_falls_back() {
    let mut fake = Fake::new("04", &[("F_MODE", "mute")]);
    fake.options.probe_timeout = Duration::from_millis(300);
    let connection = fake.start().await.unwrap();
    assert_eq!(connection.era().version(), "2025-11-25");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_server_that_starts_after_the_probe_was_given_up_is_connected() {
    let mut fake = Fake::new("peer", &[("F_ERA", "modern"), ("F_SLOW", "0.8")]);
    fake.options.probe_timeout = Duration::from_millis(200);
    let connection = fake.start().await.unwrap();
    assert_eq!(connection.era().version(), "2026-07-28");
    said(&connection, "line", "{}").await;
    connection.shut_down().await;

    let mut fake = Fake::new("04", &[("F_MODE", "die"), ("F_SLOW", "0.8")]);
    fake.options.probe_timeout = Duration::from_millis(200);
    let connection = fake.start().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    assert_eq!(fake.log("start").len(), 2, "the probe killed it late");
    connection.shut_down().await;
    assert_eq!(fake.processes(), 0);
}

#[tokio::test]
async fn a_recognised_modern_error_does_not_fall_back() {
    let unsupported = r#"{"code":-32022,"message":"v","data":{"supported":["2027-01-01"]}}"#;
    let missing = r#"{"code":-32021,"message":"needs elicitation"}"#;
    for (error, expected) in [
        (unsupported, "the server speaks no protocol revision that we do (it offers 2027-01-01)"),
        (missing, "needs elicitation"),
    ] {
        let fake = Fake::new("peer", &[("F_ERA", "code"), ("F_ERROR", error)]);
        let error = fake.start().await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert_eq!(fake.methods(), ["server/discover"]);
        assert_eq!(fake.processes(), 0);
    }
}

#[tokio::test]
async fn every_legacy_revision_is_accepted_and_no_other() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "only 2025-03-26"] {
        let fake = Fake::new("peer", &[("F_VERSION", version)]);
        let connection = fake.start().await.unwrap();
        assert_eq!(connection.era().version(), version.trim_start_matches("only "));
        connection.shut_down().await;
    }
    for version in ["1999-01-01", "2026-07-28", ""] {
        let fake = Fake::new("peer", &[("F_VERSION", version)]);
        let started = fake.start().await;
        if version.is_empty() {
            started.unwrap().shut_down().await;
            continue;
        }
        let error = started.unwrap_err();
        assert!(matches!(error.fault(), Fault::UnsupportedVersion { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_capability_that_is_no_object_is_no_opt_in_but_one_warning() {
    for value in ["true", "null", "\"yes\""] {
        let caps = format!(
            r#"{{"tools":{{}},"experimental":{{"codex/sandbox-state":{value},"codex/sandbox-state-meta":{value}}}}}"#
        );
        let fake = Fake::new("peer", &[("F_CAPS", &caps)]);
        let connection = fake.start().await.unwrap();
        assert!(!connection.sandbox_opt_in(), "{value}");
        said(&connection, "line", "{}").await;
        let warnings = fake.seen.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("codex/sandbox-state"), "{warnings:?}");
        connection.shut_down().await;
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_with_the_path_searched() {
    let mut command = StdioCommand::new("no-such-server");
    command.environment([("PATH", "/nowhere:/usr/bin")]);
    let start = |command: StdioCommand| async move {
        let name = ServerName::new("x").unwrap();
        Connection::start(name, &command, Fake::new("peer", &[]).options).await.unwrap_err()
    };
    let error = start(command.clone()).await;
    insta::assert_snapshot!(
        error,
        @"start server `x`: program `no-such-server` was not found in PATH `/nowhere:/usr/bin`"
    );
    assert_eq!(error.kind(), ErrorKind::Start);
    assert!(error.hint().unwrap().contains("absolute path"));

    command.current_dir("/no/such/folder");
    let error = start(command).await;
    insta::assert_snapshot!(
        error,
        @"start server `x`: its working directory `/no/such/folder` is not a directory"
    );

    let fixture = Fixture::new();
    let script = fixture.executable("server", "#!/no/such/interpreter\n");
    let error = start(StdioCommand::new(&script)).await;
    assert!(matches!(error.fault(), Fault::InterpreterMissing { .. }), "{error}");
    let mut by_name = StdioCommand::new("server");
    by_name.environment([("PATH", fixture.path())]);
    let error = start(by_name).await;
    assert!(matches!(error.fault(), Fault::InterpreterMissing { .. }), "{error}");
    fixture.set_mode("server", 0o644);
    let error = start(StdioCommand::new(&script)).await;
    assert!(matches!(error.fault(), Fault::Spawn { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_ends_or_stays_silent_at_the_start_says_why() {
    let fixture = Fixture::new();
    let script = fixture.executable("server", "#!/bin/sh\necho 'no API key' >&2\nexit 3\n");
    let fake = Fake::new("peer", &[]);
    let name = || ServerName::new("x").unwrap();
    let command = StdioCommand::new(&script);
    let error = Connection::start(name(), &command, fake.options.clone()).await.unwrap_err();
    insta::assert_snapshot!(
        error,
        @"start server `x`: the server exited with code 3; last line on stderr: no API key"
    );

    let script = fixture.executable(
        "lsp",
        "#!/bin/sh\necho 'downloading' >&2\nprintf 'Content-Length: 2\\r\\n\\r\\n{}'\ncat >/dev/null\n",
    );
    let mut options = fake.options.clone();
    options.start_timeout = Duration::from_millis(600);
    let mut command = StdioCommand::new(&script);
    command.environment([("PATH", "/usr/bin:/bin")]);
    let error = Connection::start(name(), &command, options).await.unwrap_err();
    insta::assert_snapshot!(
        error,
        @"start server `x`: no answer to `initialize` within 0.6 s; last line on stderr: downloading"
    );
    assert!(error.hint().unwrap().contains("Content-Length"));
}

#[tokio::test]
async fn server_name_never_keys_policy() {
    let fake = Fake::new("peer", &[("F_ERA", "modern")]);
    let connection = fake.start().await.unwrap();
    assert_eq!(connection.name().as_str(), "fake");
    let error = call(&connection, "rpc_error", r#"{"code":-32000}"#).await.unwrap_err();
    assert_eq!(error.server().as_str(), "fake", "not the name it gives itself");
    connection.shut_down().await;
    let entry = fake.log("in");
    assert_eq!(member(&entry[0], "method").as_deref(), Some("server/discover"));
}

#[tokio::test]
async fn one_stdio_process_serves_many_sessions() {
    let fake = Fake::new("peer", &[("F_ERA", "modern")]);
    let connection = std::sync::Arc::new(fake.start().await.unwrap());
    let mut conversations = tokio::task::JoinSet::new();
    for conversation in 0..8 {
        let connection = std::sync::Arc::clone(&connection);
        conversations.spawn(async move {
            for turn in 0..5 {
                let arguments = format!("{{\"conversation\":{conversation},\"turn\":{turn}}}");
                let line = said(&connection, "line", &arguments).await;
                assert!(line.contains(&arguments), "{line}");
            }
        });
    }
    while let Some(ended) = conversations.join_next().await {
        ended.unwrap();
        assert_eq!(fake.processes(), 1, "one conversation's end is not the process's");
    }
    connection.shut_down().await;
    assert_eq!(fake.params("server/discover").len(), 1);
    assert_eq!(fake.params("tools/call").len(), 40);
}
