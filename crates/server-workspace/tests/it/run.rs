//! What a result says.

use serde_json::json;

use crate::harness::{Host, Launcher, text};

#[tokio::test]
async fn output_and_exit_code_are_told_as_text_and_as_structure() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[("FAKE_REPORT", "plain")]));
    let meta = launcher.meta("{}");
    let result = host.call(json!({"command": "echo hello"}), &meta).await;
    assert_eq!(text(&result), "hello\n");
    assert_eq!(
        result["structuredContent"],
        json!({"exit_code": 0, "stdout": "hello\n", "stderr": "", "truncated": false,
               "timed_out": false, "enforcement": {"reported": false}})
    );
    assert_eq!(result["isError"], false);
    let failing = json!({"command": "echo out; echo err >&2; exit 7"});
    let result = host.call(failing, &meta).await;
    assert_eq!(text(&result), "out\n[stderr]\nerr\nexit code 7");
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["exit_code"], 7);
    let result = host.call(json!({"command": "kill -9 $$"}), &meta).await;
    assert_eq!(text(&result), "killed by signal 9 (SIGKILL)");
    assert_eq!(result["structuredContent"]["exit_code"], 137);
    let result = host.call(json!({"command": "exit 125"}), &meta).await;
    assert_eq!(text(&result), "exit code 125");
}

#[tokio::test]
async fn stdin_is_empty_and_bytes_become_text() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    let result =
        host.call(json!({"command": "cat; printf 'a\\377b\\0c'"}), &launcher.meta("{}")).await;
    assert_eq!(result["structuredContent"]["stdout"], "a\u{fffd}b\0c");
}

#[tokio::test]
async fn a_launcher_that_cannot_start_is_named() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    let gone = launcher.fixture.join("gone");
    let result = host.call(json!({"command": "true"}), &crate::harness::meta("{}", &gone)).await;
    assert_eq!(result["isError"], true);
    let expected =
        format!("failed to run `{}`: No such file or directory (os error 2)", gone.display());
    assert_eq!(text(&result), expected);
}

#[tokio::test]
async fn progress_tells_the_newest_line_in_rising_numbers() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    let state = launcher.meta("{}");
    let meta = format!(r#"{},"progressToken":"p-1"}}"#, state.strip_suffix('}').unwrap());
    // Each line waits for the one before to be told, so nothing here depends on time.
    let pipe = launcher.fixture.join("go");
    let command =
        format!("mkfifo {0}; for n in 1 2 3; do echo line $n; cat {0}; done", pipe.display());
    host.start(1, &json!({"command": command}), &meta).await;
    let mut last = 0;
    for number in 1..=3 {
        let progress = host.next().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "p-1");
        assert_eq!(progress["params"]["message"], format!("line {number}"));
        let bytes = progress["params"]["progress"].as_i64().unwrap();
        assert!(bytes > last);
        last = bytes;
        let pipe = pipe.clone();
        // Opening it waits for the reader.
        tokio::task::spawn_blocking(|| std::fs::write(pipe, "")).await.unwrap().unwrap();
    }
    let answer = host.next().await;
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "line 1\nline 2\nline 3\n");
}

#[tokio::test]
async fn progress_is_limited_and_ends_with_the_answer() {
    let launcher = Launcher::new();
    let mut host = Host::new(launcher.options(&[]));
    let state = launcher.meta("{}");
    let meta = format!(r#"{},"progressToken":7}}"#, state.strip_suffix('}').unwrap());
    let begin = std::time::Instant::now();
    let flood = json!({"command": "seq 1 300000"});
    let result = host.call(flood, &meta).await;
    assert_eq!(result["isError"], false);
    let most = begin.elapsed().as_millis() / 100 + 2;
    assert!(host.notifications.len() as u128 <= most, "{} > {most}", host.notifications.len());
    let progress: Vec<_> =
        host.notifications.iter().map(|sent| sent["params"]["progress"].as_i64()).collect();
    assert!(progress.windows(2).all(|pair| pair[0] < pair[1]), "{progress:?}");
    // Without a token there is none, and nothing of the first call is left.
    host.notifications.clear();
    host.call(json!({"command": "seq 1 1000"}), &launcher.meta("{}")).await;
    assert!(host.notifications.is_empty());
}
