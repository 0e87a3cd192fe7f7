//! Tasks, of the extension and of 2025-11-25.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plenipo_connect::{
    CallRequest, Called, Canceller, Connection, ErrorKind, Fault, Task, TaskOptions,
};
use plenipo_wire::object;

use crate::input::puppet::Puppet;
use crate::web::{Answer, Seen, Web};

const TASKS: &str = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const OPT_IN: &str = r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#;

/// A modern server that makes a task of every call, and answers the n-th `tasks/get` with the n-th
/// of `states`; the last one stays.
async fn server(states: &[&str]) -> (Web, Arc<Mutex<Vec<Instant>>>) {
    let states: Vec<String> = states.iter().map(|state| (*state).to_owned()).collect();
    let polls = Arc::new(Mutex::new(Vec::new()));
    let seen_polls = Arc::clone(&polls);
    let web = Web::modern(move |seen: &Seen| {
        let result = match seen.method()?.as_str() {
            "server/discover" => {
                format!(r#"{{"supportedVersions":["2026-07-28"],"capabilities":{TASKS}}}"#)
            }
            "tools/call" => {
                r#"{"resultType":"task","taskId":"t/1","status":"working","ttlMs":60000,"pollIntervalMs":200}"#
                    .to_owned()
            }
            "tasks/get" => {
                let mut polls = polls.lock().unwrap();
                polls.push(Instant::now());
                let state = &states[(polls.len() - 1).min(states.len() - 1)];
                format!(r#"{{"resultType":"complete","taskId":"t/1",{state}}}"#)
            }
            "tasks/update" | "tasks/cancel" => r#"{"resultType":"complete"}"#.to_owned(),
            _ => return None,
        };
        Some(Answer::json(&seen.result(&result)))
    })
    .await;
    (web, seen_polls)
}

const DONE: &str =
    r#""status":"completed","result":{"content":[{"type":"text","text":"built"}],"new":1.10}"#;

async fn start(connection: &Connection) -> Task {
    let authority = connection.capture(None).await;
    match connection.call_or_task(CallRequest::new("hi", None, authority)).await.unwrap() {
        Called::Task(task) => *task,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn task_poll_interval_respected() {
    let working = r#""status":"working","pollIntervalMs":300"#;
    let (web, polls) = server(&[working, working, DONE]).await;
    let connection = web.connect().await.unwrap();
    let started = Instant::now();
    let mut task = start(&connection).await;
    let outcome = connection.follow_task(&mut task, &TaskOptions::default()).await.unwrap();
    assert!(outcome.result().get().contains("1.10"));
    let polls = polls.lock().unwrap();
    assert_eq!(polls.len(), 3);
    // The pace of the answer before, each time.
    let gaps = [polls[0] - started, polls[1] - polls[0], polls[2] - polls[1]];
    let least = [200, 300, 300].map(Duration::from_millis);
    assert!(gaps.iter().zip(least).all(|(gap, least)| *gap >= least), "{gaps:?}");
    assert_eq!(task.pace(), Duration::from_millis(300));

    let call = &web.of("tools/call")[0];
    assert!(call.body.contains(OPT_IN), "{}", call.body);
    for get in web.of("tasks/get") {
        assert_eq!(get.header("mcp-name"), Some("t/1"));
        assert!(get.body.contains(OPT_IN) && get.body.contains(r#""taskId":"t/1""#));
    }
}

#[tokio::test]
async fn task_survives_client_restart() {
    let (web, _) = server(&[r#""status":"working","pollIntervalMs":100"#, DONE]).await;
    let connection = web.connect().await.unwrap();
    let task = start(&connection).await;
    let record = task.to_record();
    connection.shut_down().await;
    drop((connection, task));

    let connection = web.connect().await.unwrap();
    let mut task = Task::from_record(record.as_str()).unwrap();
    assert_eq!((task.id(), task.tool()), ("t/1", "hi"));
    let outcome = connection.follow_task(&mut task, &TaskOptions::default()).await.unwrap();
    assert!(outcome.result().get().contains("built"));
    assert_eq!(web.count("tools/call"), 1, "nothing is called a second time");
}

const QUESTION: &str = r#"{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}"#;

#[tokio::test]
async fn task_input_required_roundtrip() {
    let one = format!(
        r#""status":"input_required","pollIntervalMs":100,"inputRequests":{{"a":{QUESTION}}}"#
    );
    let both = format!(
        r#""status":"input_required","pollIntervalMs":100,"inputRequests":{{"a":{QUESTION},"b":{QUESTION}}}"#
    );
    let (web, _) = server(&[&one, &one, &both, DONE]).await;
    let connection = web.connect().await.unwrap();
    let mut task = start(&connection).await;

    let nobody = connection.follow_task(&mut task, &TaskOptions::default()).await.unwrap_err();
    assert!(matches!(nobody.fault(), Fault::Input(_)), "{nobody}");
    assert_eq!(web.count("tasks/update"), 0);

    let person = Puppet::accepting(r#"{"name":"Ada"}"#);
    let records = Arc::new(Mutex::new(Vec::new()));
    let mut options = TaskOptions::default();
    options.request.input = Some(Arc::clone(&person) as _);
    options.observer = Some(Arc::new({
        let records = Arc::clone(&records);
        move |task: &Task, _: &_| records.lock().unwrap().push(task.to_record().to_string())
    }));
    connection.follow_task(&mut task, &options).await.unwrap();
    let updates: Vec<_> = web
        .of("tasks/update")
        .iter()
        .map(|seen| {
            assert_eq!(seen.header("mcp-name"), Some("t/1"));
            let params = seen.params().unwrap();
            object::member(&params, "inputResponses").unwrap().get().to_owned()
        })
        .collect();
    let answer = r#"{"action":"accept","content":{"name":"Ada"}}"#;
    assert_eq!(updates, [format!(r#"{{"a":{answer}}}"#), format!(r#"{{"b":{answer}}}"#)]);
    assert_eq!(person.asked(), 2, "what is asked again is not asked again");
    assert!(
        records.lock().unwrap().iter().any(|record| record.contains(r#""answered":["a","b"]"#))
    );
}

#[tokio::test]
async fn task_unsolicited_without_optin_is_error() {
    let (web, _) = server(&[DONE]).await;
    let connection = web.connect().await.unwrap();
    let authority = connection.capture(None).await;
    let error = connection.call(CallRequest::new("hi", None, authority)).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ResultType { found } if found == "task"), "{error}");
    assert!(!web.of("tools/call")[0].body.contains("io.modelcontextprotocol/tasks"));
    assert_eq!(web.count("tasks/get"), 0);
}

#[tokio::test]
async fn a_task_that_fails_or_is_cancelled_has_no_outcome() {
    let states = [
        r#""status":"failed","error":{"code":-32603,"message":"no disk"}"#,
        r#""status":"cancelled","statusMessage":"by an operator""#,
        r#""status":"paused""#,
        r#""status":"completed""#,
    ];
    let mut said = Vec::new();
    for state in states {
        let (web, _) = server(&[state]).await;
        let connection = web.connect().await.unwrap();
        let mut task = start(&connection).await;
        let error = connection.follow_task(&mut task, &TaskOptions::default()).await.unwrap_err();
        said.push(format!("{:?}: {error}", error.kind()));
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    Protocol: follow task `t/1` of server `web`: the server answered with error -32603 (internal error): no disk
    Cancelled: follow task `t/1` of server `web`: it was cancelled: by an operator
    Protocol: follow task `t/1` of server `web`: its status is `paused`, which is not known
    Protocol: follow task `t/1` of server `web`: it is completed and has no result
    ");
}

#[tokio::test]
async fn cancelling_tells_the_server_and_giving_up_does_not() {
    let (web, _) = server(&[r#""status":"working","pollIntervalMs":60000"#]).await;
    let connection = web.connect().await.unwrap();
    let mut task = start(&connection).await;
    let mut options = TaskOptions::default();
    options.max_total = Some(Duration::from_millis(20));
    let error = connection.follow_task(&mut task, &options).await.unwrap_err();
    assert_eq!((error.kind(), web.count("tasks/cancel")), (ErrorKind::Timeout, 0));

    let canceller = Canceller::new();
    let mut options = TaskOptions::default();
    options.request.cancel = Some(canceller.cancellation());
    canceller.cancel("enough");
    let error = connection.follow_task(&mut task, &options).await.unwrap_err();
    assert_eq!((error.kind(), web.count("tasks/cancel")), (ErrorKind::Cancelled, 1));
    assert_eq!(web.of("tasks/cancel")[0].header("mcp-name"), Some("t/1"));
}

#[tokio::test]
async fn a_server_without_tasks_is_called_as_usual() {
    let web = Web::modern(|_| None).await;
    let connection = web.connect().await.unwrap();
    let authority = connection.capture(None).await;
    let called = connection.call_or_task(CallRequest::new("hi", None, authority)).await.unwrap();
    assert!(matches!(called, Called::Outcome(_)));
    assert!(!web.of("tools/call")[0].body.contains("io.modelcontextprotocol/tasks"));
}

#[tokio::test]
async fn tasks_of_the_last_legacy_revision_are_followed() {
    let web = Web::legacy(|seen| {
        let result = match seen.method()?.as_str() {
            "initialize" => {
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"w","version":"1"}}"#
            }
            "tools/list" => {
                r#"{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"hi","inputSchema":{"type":"object"}}]}"#
            }
            "tools/call" if seen.body.contains(r#""task":{}"#) => {
                r#"{"task":{"taskId":"t/1","status":"working","ttl":60000,"pollInterval":100}}"#
            }
            "tasks/get" => r#"{"taskId":"t/1","status":"completed","ttl":60000}"#,
            "tasks/result" => r#"{"content":[{"type":"text","text":"built"}],"isError":true}"#,
            _ => return None,
        };
        Some(Answer::json(&seen.result(result)))
    })
    .await;
    let connection = web.connect().await.unwrap();
    let authority = connection.capture(None).await;
    let called = connection.call_or_task(CallRequest::new("slow", None, authority.clone())).await;
    let Called::Task(mut task) = called.unwrap() else { panic!("no task") };
    let outcome = connection.follow_task(&mut task, &TaskOptions::default()).await.unwrap();
    assert!(outcome.is_error() && outcome.result().get().contains("built"));
    // A tool that knows no tasks is not asked for one.
    let called = connection.call_or_task(CallRequest::new("hi", None, authority)).await.unwrap();
    assert!(matches!(called, Called::Outcome(_)));
}
