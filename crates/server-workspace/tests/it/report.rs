//! The launcher's enforcement report.

use serde_json::{Value, json};

use crate::harness::{Host, Launcher, meta, options, text};

async fn enforcement(report: &str) -> Value {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[("FAKE_REPORT", report)]));
    let mut result = host.call(json!({"command": "echo ran"}), &launcher.meta("{}")).await;
    assert_eq!(text(&result), "ran\n");
    result["structuredContent"]["enforcement"].take()
}

#[tokio::test]
async fn a_report_is_carried_on_as_it_was_written() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    host.start(1, &json!({"command": "true"}), &launcher.meta("{}")).await;
    let line = host.next_line().await.unwrap();
    let report = r#""enforcement":{"version":1,"status":"enforced","rung":"full","big":12345678901234567890.10}"#;
    assert!(line.contains(report), "{line}");
}

#[tokio::test]
async fn a_launcher_that_does_not_list_the_option_is_not_asked() {
    assert_eq!(enforcement("plain").await, json!({"reported": false}));
}

#[tokio::test]
async fn a_report_that_is_none_is_not_taken_for_one() {
    for report in ["garbage", "nothing", "long"] {
        let enforcement = enforcement(report).await;
        assert_eq!(enforcement["reported"], false, "{report}");
        assert!(enforcement["reason"].is_string(), "{report}");
    }
}

#[tokio::test]
async fn a_refusal_is_a_tool_error_with_its_reason() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[("FAKE_REPORT", "refuse")]));
    let result = host.call(json!({"command": "echo ran"}), &launcher.meta("{}")).await;
    assert_eq!(result["isError"], true);
    assert_eq!(
        text(&result),
        "the sandbox refused to run the command: no user namespaces\nhint: run `plenipo doctor`"
    );
    assert_eq!(result["structuredContent"]["exit_code"], 125);
    assert_eq!(result["structuredContent"]["enforcement"]["status"], "refused");
    assert_eq!(result["structuredContent"]["stdout"], "");
    let variables = [("FAKE_REPORT", "refuse"), ("FAKE_EXIT", "0")];
    let mut host = Host::new(launcher.options(&variables));
    let result = host.call(json!({"command": "echo ran"}), &launcher.meta("{}")).await;
    assert_eq!(result["isError"], true, "whatever the exit code");
}

#[tokio::test]
async fn a_launcher_is_asked_for_its_help_once() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    for id in 0..8 {
        host.start(id, &json!({"command": "true"}), &launcher.meta("{}")).await;
    }
    for _ in 0..8 {
        assert_eq!(host.answer().await["result"]["isError"], false);
    }
    assert_eq!(launcher.recorded("help"), "asked\n");
    // Another file at the same path is another launcher.
    let changed = include_str!("../data/launcher.sh").replace("--report-fd <FD>", "--other");
    std::fs::remove_file(&launcher.path).unwrap();
    launcher.fixture.executable("launcher", changed);
    let result = host.call(json!({"command": "true"}), &launcher.meta("{}")).await;
    assert_eq!(result["structuredContent"]["enforcement"], json!({"reported": false}));
    assert_eq!(launcher.recorded("help"), "asked\nasked\n");
}

#[tokio::test]
async fn a_launcher_whose_help_hangs_is_used_without_a_report() {
    const SCRIPT: &str = "#!/bin/sh
        [ \"$2\" = --help ] && echo --report-fd && sleep 1000 && exit
        shift 4
        exec \"$@\"";
    let fixture = plenipo_testkit::Fixture::new();
    let path = fixture.executable("launcher", SCRIPT);
    let value = format!("help-{}", std::process::id());
    let mut options = options();
    options.additions.push(("FAKE_MARKER".into(), value.clone().into()));
    let mut host = Host::new(options);
    let result = host.call(json!({"command": "echo ran"}), &meta("{}", &path)).await;
    assert_eq!(result["structuredContent"]["enforcement"], json!({"reported": false}));
    assert_eq!(text(&result), "ran\n");
    let marker = format!("FAKE_MARKER={value}");
    assert!(crate::limits::all_gone(&marker).await);
}
