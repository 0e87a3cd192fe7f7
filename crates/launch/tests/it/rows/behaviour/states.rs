//! Rows 33 to 35: working directories and states that cannot be enforced.

use serde_json::json;

use super::{Seen, seen};
use crate::stage::{Ended, Profile, Stage, Who};

pub(super) fn working_directory(who: Who) -> Seen {
    let stage = Stage::new(who);
    stage.fixture.file("ws/file", "");
    stage.fixture.symlink("alias", "ws");
    let profile = stage.workspace();
    let in_directory = |name: &str| stage.sh(&profile.clone().cwd(&stage.path(name)), "pwd");
    in_directory("gone").assert_refused("is not there");
    in_directory("ws/file").assert_refused("is not a directory");
    assert_eq!(in_directory("alias").assert_ok().stdout.trim(), stage.path("ws"));
    if who == Who::User {
        stage.fixture.directory("closed");
        stage.fixture.set_mode("closed", 0);
        in_directory("closed").assert_refused("enter the working directory");
    }
    let restricted = stage.profile().special("read", "minimal").cwd(&stage.path("ws"));
    stage.sh(&restricted, "pwd").assert_refused("is not readable under the policy");
    let denied = profile.path("deny", &stage.path("ws"));
    stage.sh(&denied, "pwd").assert_refused("is not readable under the policy");
    seen("n/a: nothing to refuse", "refused, exit 125")
}

/// One argument of Linux ends at 131,071 bytes.
pub(super) fn long_state(who: Who) -> Seen {
    let stage = Stage::new(who);
    let state = stage.workspace().state();
    let mut value: serde_json::Value = serde_json::from_str(&state).unwrap();
    value["padding"] = "x".repeat(200_000).into();
    let text = value.to_string();
    let mut words = stage.launch_words(&stage.workspace(), &["--report-fd", "9"], &["/bin/true"]);
    let place = words.iter().position(|word| *word == *state).unwrap();
    words[place] = text.clone().into();
    let control = stage.command(words.clone()).output().unwrap_err();
    assert_eq!(control.raw_os_error(), Some(7), "E2BIG expected: {control}");
    words[place] = format!("@{}", stage.fixture.file("state.json", &text).display()).into();
    let ended = stage.run_words(words, &[]);
    assert_eq!(ended.assert_ok().report.as_ref().unwrap()["unknown_members"], json!(["padding"]));
    seen("n/a: E2BIG as an argument", "works by @FILE")
}

fn with_state(stage: &Stage, text: &str) -> Ended {
    let state = stage.workspace().state();
    let mut words =
        stage.launch_words(&stage.workspace(), &["--report-fd", "9"], &["/bin/echo", "ran"]);
    let place = words.iter().position(|word| *word == *state).unwrap();
    words[place] = text.into();
    stage.run_words(words, &[])
}

pub(super) fn malformed(who: Who) -> Seen {
    let stage = Stage::new(who);
    let good = stage.workspace().state();
    assert_eq!(with_state(&stage, &good).assert_ok().stdout, "ran\n");
    let cases = [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        format!("{good} x"),
        good.replace("\"write\"", "\"append\""),
        good.replace("\"restricted\",", "\"mystery\","),
        good.replace("file://", ""),
        good.replace("file://", "https://host"),
        good.replace(&stage.path("ws"), "ws"),
        good.replace("/ws", "/ws\\u0000"),
        good.replacen("\"entries\"", "\"strict\":true,\"entries\"", 1),
        good.replacen('{', "{\"sandboxCwd\":\"file:///\",", 1),
    ];
    for text in cases {
        assert_ne!(text, good, "a case that changes nothing");
        let ended = with_state(&stage, &text);
        assert_eq!((ended.code, ended.stdout.as_str()), (125, ""), "{text}: {ended:?}");
    }
    seen("runs when well-formed", "13 refused, exit 125")
}

pub(super) fn external(who: Who) -> Seen {
    let stage = Stage::new(who);
    let whole = json!({"type": "external", "network": "restricted"});
    let profile = Profile::whole(&stage.path("ws"), whole);
    let script = "echo x > new";
    let ended = stage.sh(&profile, script);
    assert_ne!(ended.code, 0);
    assert_eq!(ended.report.as_ref().unwrap()["status"], "enforced");
    assert!(!stage.fixture.exists("ws/new"));
    let control =
        stage.outside(&["/bin/sh", "-c", &format!("cd {} && {script}", stage.path("ws"))]);
    assert!({ control }.status().unwrap().success());
    assert!(stage.fixture.exists("ws/new"));
    seen("succeeds", "EROFS")
}

pub(super) fn disabled(who: Who) -> Seen {
    let stage = Stage::new(who);
    let profile = Profile::whole(&stage.path("ws"), json!({"type": "disabled"}));
    let ended = stage.sh(&profile, "pwd; echo x > ../new; ls /proc/self/fd; exit 9");
    assert_eq!(ended.code, 9, "{ended:?}");
    assert_eq!(ended.report.as_ref().unwrap()["status"], "disabled");
    assert_eq!(ended.stdout.lines().next(), Some(stage.path("ws").as_str()));
    assert!(stage.fixture.exists("new"));
    assert!(!ended.stdout.lines().any(|line| line == "9"), "the report's descriptor leaked");
    seen("n/a: the same", "runs, and the report says so")
}
