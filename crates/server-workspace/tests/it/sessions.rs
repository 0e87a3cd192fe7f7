//! Shells that stay, each under the authority of the call that started it.

use std::path::PathBuf;

use plenipo_testkit::Deadline;
use serde_json::{Value, json};

use crate::harness::{Host, LIMIT, Launcher, meta, text, unsandboxed};

const STATE: &str = r#"{"n":1}"#;

/// Calls a tool of sessions.
async fn call(host: &mut Host, tool: &str, arguments: Value, meta: &str) -> Value {
    let meta: Value = serde_json::from_str(meta).unwrap();
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let mut answer = host.request(1, "tools/call", params).await;
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

async fn start(host: &mut Host, meta: &str) -> String {
    let started = call(host, "session_start", json!({}), meta).await;
    assert_eq!(started["isError"], false, "{started}");
    started["structuredContent"]["session"].as_str().unwrap().to_owned()
}

async fn send(host: &mut Host, session: &str, command: &str, meta: &str) -> Value {
    let arguments = json!({ "session": session, "command": command, "timeout_seconds": 20 });
    call(host, "session_send", arguments, meta).await
}

fn process(pid: &str) -> PathBuf {
    PathBuf::from("/proc").join(pid.trim())
}

async fn ends(pid: &str) -> bool {
    let path = process(pid);
    let gone = || !path.exists();
    tokio::task::spawn_blocking({
        let path = path.clone();
        move || Deadline::poll_until(LIMIT, || !path.exists())
    })
    .await
    .unwrap()
        && gone()
}

#[tokio::test]
async fn a_session_keeps_its_shell_and_refuses_another_authority() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    let own = launcher.meta(STATE);
    let session = start(&mut host, &own).await;
    assert_eq!(launcher.recorded("state"), STATE);
    let first = send(&mut host, &session, "x=41; cd /; echo one >&2; false", &own).await;
    assert_eq!(first["structuredContent"]["exit_code"], 1);
    assert_eq!(first["structuredContent"]["output"], "one\n");
    assert_eq!(first["isError"], true);
    let second = send(&mut host, &session, "echo $((x+1)) $PWD $FAKE_STATE", &own).await;
    assert_eq!(second["structuredContent"]["output"], "42 / {\"n\":1}\n");
    assert_eq!(second["isError"], false);
    for (other, changed) in [
        (launcher.meta(r#"{"n":2}"#), "state"),
        (meta(STATE, "/bin/true".as_ref()), "launcher"),
        ("{}".to_owned(), "state"),
    ] {
        for tool in ["session_send", "session_close"] {
            let mut arguments = json!({ "session": session });
            if tool == "session_send" {
                arguments["command"] = json!("echo ran");
            }
            let refused = call(&mut host, tool, arguments, &other).await;
            assert_eq!(refused["isError"], true, "{refused}");
            let said = text(&refused);
            assert!(said.starts_with("refused: ") && said.contains(changed), "{said}");
        }
    }
    let third = send(&mut host, &session, "echo $x", &own).await;
    assert_eq!(text(&third), "41\n", "nothing of it ran, and the session is there");
    host.close().await.unwrap();
}

#[tokio::test]
async fn closing_ends_everything_that_a_session_started() {
    let mut host = Host::new(unsandboxed());
    let session = start(&mut host, "{}").await;
    let said = send(&mut host, &session, "sleep 600 & echo $!", "{}").await;
    let pid = said["structuredContent"]["output"].as_str().unwrap().to_owned();
    assert!(process(&pid).exists());
    let closed = call(&mut host, "session_close", json!({ "session": session }), "{}").await;
    assert_eq!(closed["structuredContent"]["closed"], true);
    assert!(ends(&pid).await);
    let gone = send(&mut host, &session, "echo", "{}").await;
    assert!(text(&gone).contains("no such session"), "{gone}");
    host.close().await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_connection_ends_every_session() {
    let mut host = Host::new(unsandboxed());
    let session = start(&mut host, "{}").await;
    let said = send(&mut host, &session, "sleep 600 & echo $!", "{}").await;
    let pid = said["structuredContent"]["output"].as_str().unwrap().to_owned();
    host.close().await.unwrap();
    assert!(ends(&pid).await);
}

#[tokio::test]
async fn a_session_that_ends_or_runs_out_of_time_is_gone() {
    let mut host = Host::new(unsandboxed());
    let session = start(&mut host, "{}").await;
    let ended = send(&mut host, &session, "echo bye; exit 3", "{}").await;
    assert_eq!(ended["structuredContent"]["output"], "bye\n");
    assert_eq!(ended["structuredContent"]["ended"], true);
    let session = start(&mut host, "{}").await;
    let arguments =
        json!({ "session": session, "command": "echo $$; sleep 600", "timeout_seconds": 0.3 });
    let late = call(&mut host, "session_send", arguments, "{}").await;
    assert!(text(&late).contains("timed out"), "{late}");
    let gone = send(&mut host, &session, "echo", "{}").await;
    assert!(text(&gone).contains("no such session"), "{gone}");
    host.close().await.unwrap();
}

#[tokio::test]
async fn without_a_launcher_no_session_starts_and_a_refusal_is_told() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    let refused = call(&mut host, "session_start", json!({}), "{}").await;
    assert!(text(&refused).starts_with("refused: "), "{refused}");
    host.close().await.unwrap();
    let mut host = Host::new(launcher.options(&[("FAKE_REPORT", "refuse")]));
    let refused = call(&mut host, "session_start", json!({}), &launcher.meta(STATE)).await;
    assert!(text(&refused).contains("no user namespaces"), "{refused}");
    assert_eq!(refused["isError"], true);
    host.close().await.unwrap();
}

#[tokio::test]
async fn output_is_bounded_and_a_session_goes_on_after_much_of_it() {
    let mut host = Host::new(unsandboxed());
    let session = start(&mut host, "{}").await;
    let much = send(&mut host, &session, "head -c 3000000 /dev/zero | tr '\\0' x", "{}").await;
    assert_eq!(much["structuredContent"]["truncated"], true);
    assert_eq!(much["structuredContent"]["exit_code"], 0);
    let next = send(&mut host, &session, "echo next", "{}").await;
    assert_eq!(text(&next), "next\n");
    host.close().await.unwrap();
}
