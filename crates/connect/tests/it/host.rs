//! What a host does around connections: callbacks that panic, futures that it drops, runtimes that end.

use std::io::Write as _;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plenipo_connect::input::{InputFuture, InputRefusal};
use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::{
    ChangeFilter, Connection, Endpoint, ErrorKind, Fault, Fleet, InputAnswer, InputHandler,
    InputOffer, InputRequest, Member, NameRules, RequestOptions, Server, ServerName, ToolIndex,
};
use plenipo_testkit::Deadline;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::support::{Fake, call, python, request, said, until};
use crate::web::Web;

const MANY: Duration = Duration::from_secs(30);

struct Panics(AtomicUsize);

impl Observer for Panics {
    fn event(&self, _event: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("the observer's own fault");
    }
}

impl InputHandler for Panics {
    fn offers(&self) -> InputOffer {
        InputOffer::ELICITATION
    }

    fn answer<'a>(
        &'a self,
        _request: &'a InputRequest,
    ) -> InputFuture<'a, Result<InputAnswer, InputRefusal>> {
        Box::pin(async { panic!("the handler's own fault") })
    }
}

fn runtime(threads: usize) -> Runtime {
    match threads {
        0 => Builder::new_current_thread().enable_all().build().unwrap(),
        _ => Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap(),
    }
}

#[tokio::test]
async fn an_observer_that_panics_loses_events_and_no_calls() {
    let mut fake = Fake::new("peer", &[]);
    let observer = Arc::new(Panics(AtomicUsize::new(0)));
    fake.options.observer = Arc::clone(&observer) as Arc<dyn Observer>;
    let connection = fake.start().await.unwrap();
    let held = request(&connection, "hold", r#"{"of":2,"token":"a"}"#).await;
    let other = async {
        assert_eq!(said(&connection, "stderr", "{}").await, "fine");
        assert_eq!(said(&connection, "grow", "{}").await, "grown");
        said(&connection, "hold", r#"{"of":2,"token":"b"}"#).await
    };
    let (held, other) = tokio::join!(connection.call(held), other);
    assert_eq!((held.unwrap().view().unwrap().text().as_str(), other.as_str()), ("a", "b"));
    until(|| connection.stderr_tail().len() == 100).await;
    assert!(observer.0.load(Ordering::SeqCst) > 100, "each line on stderr, and the tools");
    connection.shut_down().await;
}

#[tokio::test]
async fn a_progress_observer_that_panics_loses_progress_and_no_calls() {
    let fake = Fake::new("peer", &[]);
    let connection = fake.start().await.unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let mut steps = request(&connection, "steps", r#"{"steps":3,"every":0.01}"#).await;
    steps.progress = Some(Arc::new({
        let told = Arc::clone(&told);
        move |_| {
            told.fetch_add(1, Ordering::SeqCst);
            panic!("the observer's own fault");
        }
    }));
    assert_eq!(connection.call(steps).await.unwrap().view().unwrap().text(), "done");
    assert_eq!(told.load(Ordering::SeqCst), 3);
    assert!(said(&connection, "line", "{}").await.contains("tools/call"));
    connection.shut_down().await;
}

#[tokio::test]
async fn a_server_whose_question_makes_the_handler_panic_is_told() {
    let mut fake = Fake::new("asks", &[]);
    fake.options.input = Some(Arc::new(Panics(AtomicUsize::new(0))));
    let connection = fake.start().await.unwrap();
    let question = r#"{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}"#;
    let answer = timeout(MANY, said(&connection, "ask", question)).await.unwrap();
    assert_eq!(answer, r#"{"error": {"code": -32603, "message": "the handler failed"}}"#);
    connection.shut_down().await;
}

#[test]
fn a_runtime_that_ends_takes_its_connections_along() {
    for threads in [0, 2] {
        let fake = Fake::new("peer", &[]);
        let (first, second) = (runtime(threads), runtime(0));
        let connection = first.block_on(fake.start()).unwrap();
        let name = ServerName::new("kept").unwrap();
        let endpoint = Endpoint::from(fake.command.clone());
        let server = first.block_on(Server::open(name, endpoint, fake.options.clone())).unwrap();
        assert!(first.block_on(said(&connection, "line", "{}")).contains("line"));
        drop(first);
        assert!(Deadline::poll_until(MANY, || fake.processes() == 0), "its servers are gone");
        second.block_on(async {
            let lost = timeout(MANY, call(&connection, "line", "{}")).await.unwrap();
            assert!(matches!(lost.unwrap_err().fault(), Fault::ShutDown));
            timeout(MANY, connection.ended()).await.unwrap();
            let gone = timeout(MANY, server.connection()).await.unwrap().unwrap_err();
            assert_eq!(gone.kind(), ErrorKind::Transport, "nobody would start it again");
            timeout(MANY, connection.shut_down()).await.unwrap();
        });
    }
}

#[test]
fn over_http_a_connection_does_without_the_runtime_that_it_was_opened_on() {
    let (servers, first, second) = (runtime(1), runtime(0), runtime(0));
    let web = servers.block_on(Web::modern(|_| None));
    let options = web.options.clone();
    let name = ServerName::new("web").unwrap();
    let endpoint = web.endpoint();
    let opened = Connection::connect(name, &endpoint, options);
    let connection = first.block_on(opened).unwrap();
    assert_eq!(first.block_on(said(&connection, "hi", "{}")), "hi");
    drop(first);
    second.block_on(async {
        assert_eq!(timeout(MANY, said(&connection, "hi", "{}")).await.unwrap(), "hi");
        timeout(MANY, connection.shut_down()).await.unwrap();
    });
}

#[test]
fn a_connection_serves_other_runtimes_and_threads_while_its_own_runs() {
    let fake = Fake::new("peer", &[]);
    let own = runtime(1);
    let connection = own.block_on(fake.start()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                assert!(runtime(0).block_on(said(&connection, "line", "{}")).contains("line"));
            });
        }
    });
    assert!(runtime(0).block_on(connection.shut_down()).exit.is_some());
}

/// The first one's has the alarm of those that wait, and stands still.
#[test]
fn a_time_limit_holds_whichever_runtime_waits() {
    let fake = Fake::new("peer", &[]);
    let (own, first, second) = (runtime(1), runtime(0), runtime(0));
    let connection = own.block_on(fake.start()).unwrap();
    assert!(first.block_on(said(&connection, "line", "{}")).contains("line"));
    second.block_on(async {
        let mut silent = request(&connection, "silent", "{}").await;
        silent.timeout = Some(Duration::from_millis(50));
        let error = timeout(MANY, connection.call(silent)).await.unwrap().unwrap_err();
        assert!(matches!(error.fault(), Fault::TimedOut { .. }), "{error}");
    });
    drop(first);
    assert!(second.block_on(connection.shut_down()).exit.is_some());
}

#[tokio::test]
async fn a_fleets_connection_is_kept_as_a_server() {
    let fake = Fake::new("peer", &[]);
    let name = ServerName::new("fake").unwrap();
    let member = Member::new(name, fake.command.clone(), fake.options.clone());
    let endpoint = member.endpoint.clone();
    let (_, started) = Fleet::start([member]).next().await.unwrap();
    let server = Server::keep(started.unwrap(), endpoint);
    let connection = server.connection().await.unwrap();
    assert!(call(&connection, "die", r#"{"code":3}"#).await.is_err());
    drop(connection);
    let again = timeout(MANY, server.connection()).await.unwrap().unwrap();
    assert_eq!((server.name().as_str(), server.generation()), ("fake", 2));
    assert!(said(&again, "line", "{}").await.contains("line"));
    server.shut_down().await;
}

#[tokio::test]
async fn an_index_asks_all_servers_at_once() {
    let mute: Vec<_> = (0..3).map(|_| Fake::new("peer", &[("F_LIST", "mute")])).collect();
    let mut connections = Vec::new();
    for fake in &mute {
        connections.push(fake.start().await.unwrap());
    }
    let rules = NameRules::default();
    tokio::select! {
        _ = ToolIndex::of(&connections, &rules) => panic!("they do not answer"),
        () = until(|| mute.iter().all(|fake| fake.params("tools/list").len() == 1)) => {}
    }
}

/// The example `host`, which cargo builds along with the tests, talked to.
#[test]
#[expect(clippy::disallowed_methods, reason = "the program under test")]
fn the_example_calls_tools_of_several_servers_and_leaves_nothing() {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/host");
    assert!(program.is_file(), "{} is missing: cargo build --examples", program.display());
    let marker = format!("HOME=/host-example-{}", std::process::id());
    let script =
        |name: &str| format!("{}/tests/data/servers/{name}.py", env!("CARGO_MANIFEST_DIR"));
    let mut host = std::process::Command::new(program)
        .args([python().into_os_string(), script("peer").into(), "+".into()])
        .args(["/no/such/server".into(), "+".into(), python().into_os_string()])
        .arg(script("asks"))
        .env_clear()
        .envs([marker.split_once('=').unwrap(), ("PATH", "/usr/bin:/bin")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let calls = "mcp__s0__steps {\"steps\":2,\"every\":0}\nmcp__s0__tool_error\n";
    host.stdin.take().unwrap().write_all(calls.as_bytes()).unwrap();
    let output = host.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    for line in ["mcp__s0__steps is s0.steps", "mcp__s2__ask is s2.ask", "done", "failed: broken"] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}{told}");
    }
    for part in ["start server `s1`", "approved: s0.steps", "progress: 1"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(plenipo_testkit::processes_with_marker(&marker), Vec::<_>::new());
}

/// Polls a future so often and drops it; true when it had ended by then.
async fn dropped_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future: Pin<Box<F>> = Box::pin(future);
    for _ in 0..polls {
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(future.as_mut().poll(context).is_ready())
        });
        if polled.await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    false
}

#[tokio::test]
async fn what_is_dropped_at_any_await_leaves_the_connection_usable() {
    let caps = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{}}"#;
    for era in ["modern", "legacy"] {
        let fake = Fake::new("peer", &[("F_ERA", era), ("F_CAPS", caps)]);
        let connection = Arc::new(fake.start().await.unwrap());
        let options = RequestOptions::default();
        for polls in 0..6 {
            let silent = request(&connection, "silent", "{}").await;
            assert!(!dropped_after(polls, connection.call(silent)).await);
            dropped_after(polls, connection.catalog()).await;
            dropped_after(polls, connection.capture(None)).await;
            dropped_after(polls, connection.resources(&options)).await;
            dropped_after(polls, connection.read_resource("file:///a", &options)).await;
            dropped_after(polls, connection.prompt("a", &[], &options)).await;
            dropped_after(polls, connection.subscribe(ChangeFilter::tools())).await;
            assert!(said(&connection, "grow", "{}").await.contains("grown"), "lists anew");
        }
        until(|| {
            let sent = fake.params("tools/call").iter().filter(|p| p.contains("silent")).count();
            sent > 1 && fake.params("notifications/cancelled").len() >= sent
        })
        .await;
        assert!(!dropped_after(1, connection.shut_down()).await);
        connection.shut_down().await;
        assert!(Deadline::poll_until(MANY, || fake.processes() == 0));
    }
}

#[test]
fn all_futures_move_between_threads() {
    fn moves<T: Send>(_: &T) {}
    fn shares<T: Send + Sync + 'static>() {}
    shares::<Connection>();
    shares::<Server>();
    shares::<ToolIndex>();
    shares::<plenipo_connect::ConnectError>();
    shares::<plenipo_connect::CallRequest>();
    shares::<plenipo_connect::CallOutcome>();
    shares::<plenipo_connect::Subscription>();
    shares::<plenipo_connect::Task>();
    let fake = Fake::new("peer", &[]);
    let name = || ServerName::new("s").unwrap();
    moves(&Connection::start(name(), &fake.command, fake.options.clone()));
    moves(&Server::open(name(), fake.command.clone().into(), fake.options.clone()));
    let with = |connection: &Connection, server: &Server, options: &RequestOptions| {
        moves(&connection.catalog());
        moves(&connection.capture(None));
        moves(&connection.resources(options));
        moves(&connection.read_resource("u:", options));
        moves(&connection.prompts(options));
        moves(&connection.prompt("p", &[], options));
        moves(&connection.subscribe(ChangeFilter::lists()));
        moves(&connection.shut_down());
        moves(&connection.leave());
        moves(&server.connection());
        moves(&server.shut_down());
        moves(&server.subscribe(ChangeFilter::lists()));
        moves(&ToolIndex::of([connection], &NameRules::default()));
    };
    let _ = with;
    let calls = |connection: Arc<Connection>, server: Server, call, again, task| {
        moves(&connection.call(call));
        moves(&server.call(again));
        moves(&connection.call_or_task(task));
    };
    let _ = calls;
}
