//! Time, output, number of calls: what is bounded, and what is left when a call ends early.

use std::time::Duration;

use plenipo_testkit::{Deadline, processes_with_marker};
use serde_json::json;
use tokio::time::sleep;

use crate::harness::{Host, LIMIT, Launcher, text};

/// A launcher whose commands carry a marker of their own.
fn marked(name: &str) -> (Launcher, Host, String) {
    let launcher = Launcher::new();
    let value = format!("{name}-{}", std::process::id());
    let host = Host::new(launcher.options(&[("FAKE_MARKER", &value)]));
    (launcher, host, format!("FAKE_MARKER={value}"))
}

/// Waits, without stopping the server, which runs on the same thread.
async fn becomes(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Deadline::after(LIMIT);
    while !condition() {
        if deadline.has_passed() {
            return false;
        }
        sleep(Duration::from_millis(5)).await;
    }
    true
}

pub(crate) async fn all_gone(marker: &str) -> bool {
    becomes(|| processes_with_marker(marker).is_empty()).await
}

/// Runs a process in the background and in the foreground; both ignore SIGTERM if `deaf`.
fn tree(deaf: bool) -> String {
    let trap = if deaf { "trap '' TERM;" } else { "" };
    format!("{trap} sleep 1000 & echo started; sleep 1001")
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree_and_shows_what_there_was() {
    let (launcher, mut host, marker) = marked("timeout");
    for deaf in [false, true] {
        let arguments = json!({"command": tree(deaf), "timeout_seconds": 0.5});
        let result = host.call(arguments, &launcher.meta("{}")).await;
        assert_eq!(result["isError"], true);
        assert_eq!(
            text(&result),
            "started\ntimed out after 0.5 s: the command and everything it started were ended"
        );
        assert_eq!(result["structuredContent"]["timed_out"], true);
        assert_eq!(result["structuredContent"]["exit_code"], json!(null));
        assert!(all_gone(&marker).await, "{:?}", processes_with_marker(&marker));
    }
}

#[tokio::test]
async fn sigterm_comes_first() {
    let (launcher, mut host, _) = marked("sigterm");
    let command = "trap 'echo cleaned up; exit 0' TERM; echo started; while :; do sleep 0.01; done";
    let arguments = json!({"command": command, "timeout_seconds": 0.3});
    let result = host.call(arguments, &launcher.meta("{}")).await;
    assert_eq!(result["structuredContent"]["stdout"], "started\ncleaned up\n");
}

#[tokio::test]
async fn a_cancelled_call_is_ended_and_not_answered() {
    let (launcher, mut host, marker) = marked("cancel");
    host.start(5, &json!({"command": tree(true)}), &launcher.meta("{}")).await;
    assert!(becomes(|| processes_with_marker(&marker).len() >= 3).await);
    let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": 5}});
    host.send(&cancel.to_string()).await;
    // The id is free again at once, and belongs to the new call alone.
    host.start(5, &json!({"command": "echo new; sleep 1"}), &launcher.meta("{}")).await;
    let answer = host.answer().await;
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "new\n", "{answer}");
    assert!(all_gone(&marker).await);
    assert_eq!(host.request(6, "ping", json!({})).await["id"], 6);
}

#[tokio::test]
async fn the_end_of_the_connection_ends_every_command() {
    let (launcher, mut host, marker) = marked("end");
    for id in 0..3 {
        host.start(id, &json!({"command": tree(id == 1)}), &launcher.meta("{}")).await;
    }
    let file = launcher.fixture.join("told");
    let polite = "trap 'echo told >told; exit' TERM; echo $$ >ready; while :; do sleep 0.01; done";
    let polite = format!("cd {}; {polite}", launcher.fixture.path().display());
    host.start(3, &json!({"command": polite}), &launcher.meta("{}")).await;
    assert!(becomes(|| processes_with_marker(&marker).len() >= 10).await);
    assert!(becomes(|| launcher.fixture.exists("ready")).await);
    host.close().await.unwrap();
    assert!(file.exists(), "SIGTERM comes first");
    assert!(processes_with_marker(&marker).is_empty(), "{:?}", processes_with_marker(&marker));
    assert_eq!(host.next_line().await, None);
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let (launcher, mut host, marker) = marked("left");
    let result =
        host.call(json!({"command": "sleep 1000 & echo done"}), &launcher.meta("{}")).await;
    assert_eq!(text(&result), "done\n");
    assert!(all_gone(&marker).await);
    // One that left the group keeps the pipe, but not the call.
    let pid = launcher.fixture.join("pid");
    let command = format!(
        "setsid sh -c 'echo $$ >{}; exec sleep 1000' & while [ ! -s {0} ]; do :; done",
        pid.display()
    );
    let result = host.call(json!({"command": command}), &launcher.meta("{}")).await;
    assert_eq!(result["isError"], false);
    let pid = launcher.fixture.read("pid").unwrap().trim().parse().unwrap();
    drop(plenipo_testkit::PidGuard::new(pid));
    assert!(all_gone(&marker).await);
}

#[tokio::test]
async fn output_is_bounded_and_the_command_is_not_held_up() {
    let (launcher, mut host, _) = marked("output");
    let command = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 1048577 /dev/zero | tr '\\0' y >&2; exit 4";
    let result = host.call(json!({"command": command}), &launcher.meta("{}")).await;
    let structured = &result["structuredContent"];
    assert_eq!(structured["exit_code"], 4);
    assert_eq!(structured["stdout"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(structured["stderr"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(structured["truncated"], true);
    let text = text(&result);
    assert!(text.contains("x\n[stdout is cut here: 3000000 bytes in all]\n[stderr]\ny"));
    assert!(text.ends_with("y\n[stderr is cut here: 1048577 bytes in all]\nexit code 4"));
    let exact = "head -c 1048576 /dev/zero | tr '\\0' x";
    let result = host.call(json!({"command": exact}), &launcher.meta("{}")).await;
    assert_eq!(result["structuredContent"]["truncated"], false);
}

#[tokio::test]
async fn an_answer_never_exceeds_the_longest_message() {
    let launcher = Launcher::new();
    let mut options = launcher.options(&[]);
    options.max_message_bytes = 100_000;
    let mut host = Host::new(options);
    let command = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2";
    host.start(1, &json!({"command": command}), &launcher.meta("{}")).await;
    let line = host.next_line().await.unwrap();
    assert!((50_000..100_000).contains(&line.len()), "{}", line.len());
}

#[tokio::test]
async fn calls_run_side_by_side_up_to_a_number() {
    let (launcher, mut host, marker) = marked("many");
    let gate = launcher.fixture.join("gate");
    let command = format!("until [ -e {} ]; do sleep 0.05; done; echo through", gate.display());
    for id in 0..64 {
        host.start(id, &json!({"command": command}), &launcher.meta("{}")).await;
    }
    host.start(64, &json!({"command": "true"}), &launcher.meta("{}")).await;
    let answer = host.answer().await;
    assert_eq!(answer["id"], 64);
    assert_eq!(
        text(&answer["result"]),
        "64 commands are running already, which is the most at once\nhint: call again when one of them has ended"
    );
    // Other requests go on meanwhile, and an id in use stays its owner's.
    assert_eq!(host.request(70, "ping", json!({})).await["result"], json!({}));
    host.start(3, &json!({"command": "true"}), &launcher.meta("{}")).await;
    assert_eq!(host.answer().await["error"]["code"], -32600);
    launcher.fixture.file("gate", "");
    let mut ids = Vec::new();
    for _ in 0..64 {
        let answer = host.answer().await;
        assert_eq!(answer["result"]["structuredContent"]["stdout"], "through\n", "{answer}");
        ids.push(answer["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..64).collect::<Vec<_>>());
    assert!(all_gone(&marker).await);
}
