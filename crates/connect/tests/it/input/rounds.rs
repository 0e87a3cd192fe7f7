//! Multi round-trip requests.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plenipo_authority::{CredentialPin, SandboxState};
use plenipo_connect::input::{InputAnswer, InputHandler, InputKind, InputOffer, InputRefusal};
use plenipo_connect::transport::http::{
    Authorization, AuthorizeRequest, Authorizer, Authorizing, Challenge, Verdict,
};
use plenipo_connect::{
    Canceller, Connection, ErrorKind, Fault, InputFault, LauncherProvider, LauncherSource,
    Operation,
};
use plenipo_wire::{RawValue, object};

use super::puppet::{Puppet, accept};
use crate::support::{Fake, call, request, said, until};
use crate::web::{Answer, Seen, Web};

const STATE: &str = r#""\u0061 \/ {\"n\":1.10}""#;
const ASK: &str = r#"{"method":"elicitation/create","params":{"message":"Go on?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean","default":true}}}}}"#;

const ONE: &str = r#"{"a":{"method":"elicitation/create","params":{"message":"1","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}"#;

fn param<'a>(params: &'a RawValue, name: &str) -> Option<&'a str> {
    object::member(params, name).map(RawValue::get)
}

fn needs(requests: &str, state: &str) -> String {
    let mut members = vec![r#""resultType":"input_required""#.to_owned()];
    if !requests.is_empty() {
        members.push(format!(r#""inputRequests":{requests}"#));
    }
    if !state.is_empty() {
        members.push(format!(r#""requestState":{state}"#));
    }
    format!("{{{}}}", members.join(","))
}

/// A server whose tool asks `requests` with `state` first, and then says what it was answered.
async fn asking(requests: &'static str, state: &'static str) -> Web {
    Web::modern(move |seen| {
        let params = seen.params().filter(|_| seen.method().as_deref() == Some("tools/call"))?;
        let again = param(&params, "inputResponses").or(param(&params, "requestState"));
        Some(Answer::json(&match again {
            Some(again) => seen.says(again),
            None => seen.result(&needs(requests, state)),
        }))
    })
    .await
}

async fn with(web: &mut Web, handler: Arc<dyn InputHandler>) -> Connection {
    web.options.input = Some(handler);
    web.connect().await.unwrap()
}

fn calls(web: &Web) -> Vec<Seen> {
    web.of("tools/call")
}

async fn fault(connection: &Connection) -> (ErrorKind, String) {
    let error = call(connection, "hi", "{}").await.unwrap_err();
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn request_state_echo_exact() {
    let two = r#"{"z":{"method":"elicitation/create","params":{"message":"1","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}},"a\"":{"method":"elicitation/create","params":{"mode":"url","message":"2","url":"https://example.com/"}}}"#;
    let mut web = asking(two, STATE).await;
    let puppet = Arc::new(Puppet::new(InputOffer::ELICITATION, |request| {
        Some(Ok(match request.kind {
            InputKind::Form { .. } => accept(r#"{"name":"\u00e9"}"#),
            _ => InputAnswer::Decline,
        }))
    }));
    let connection = with(&mut web, puppet).await;
    call(&connection, "hi", "{}").await.unwrap();
    let calls = calls(&web);
    assert_eq!(calls.len(), 2);
    let (first, second) = (calls[0].params().unwrap(), calls[1].params().unwrap());
    assert_eq!(param(&first, "requestState"), None);
    assert_eq!(param(&first, "inputResponses"), None);
    assert_eq!(param(&second, "requestState"), Some(STATE));
    assert_eq!(param(&second, "name"), param(&first, "name"));
    assert_eq!(param(&second, "arguments"), param(&first, "arguments"));
    // Ids are fresh.
    assert_ne!(calls[0].id(), calls[1].id());
}

#[tokio::test]
async fn mrtr_answers_all_keys() {
    let three = r#"{"z":{"method":"elicitation/create","params":{"message":"1","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}},"a\"":{"method":"roots/list"},"m":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}}"#;
    let mut web = asking(three, "").await;
    let mut offer = InputOffer::ELICITATION;
    (offer.sampling, offer.roots) = (true, true);
    let puppet = Arc::new(Puppet::new(offer, |request| {
        Some(Ok(match request.kind {
            InputKind::Form { .. } => accept(r#"{"name":"n"}"#),
            InputKind::Roots => InputAnswer::Roots(Vec::new()),
            _ => InputAnswer::Message(
                plenipo_wire::Fragment::parse(r#"{"role":"assistant","model":"m"}"#).unwrap(),
            ),
        }))
    }));
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    insta::assert_snapshot!(
        said(&connection, "hi", "{}").await,
        @r#"{"z":{"action":"accept","content":{"name":"n"}},"a\"":{"roots":[]},"m":{"role":"assistant","model":"m"}}"#
    );
    assert_eq!(puppet.asked(), 3);
    assert_eq!(param(&calls(&web)[1].params().unwrap(), "requestState"), None, "none was sent");

    // A question that nobody could answer keeps the others from being asked.
    let mut web = asking(
        r#"{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"file:///x"}}}"#,
        "",
    )
    .await;
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    let (kind, text) = fault(&connection).await;
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains("neither http nor https"), "{text}");
    assert_eq!((puppet.asked(), calls(&web).len()), (3, 1));
}

#[tokio::test]
async fn prompt_carries_server_identity() {
    let ask: &'static str = Box::leak(format!(r#"{{"k":{ASK}}}"#).into_boxed_str());
    let mut web = asking(ask, "").await;
    let puppet = Puppet::accepting("{}");
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    call(&connection, "hi", "{}").await.unwrap();
    let seen = puppet.seen.lock().unwrap();
    assert_eq!(seen[0].server.as_str(), "web");
    assert_eq!(seen[0].during, Some(Operation::Call { tool: "hi".to_owned() }));
    let sent = calls(&web)[1].params().unwrap();
    let sent = param(&sent, "inputResponses").unwrap();
    assert_eq!(sent, r#"{"k":{"action":"accept","content":{"sure":true}}}"#, "defaults");
}

#[tokio::test]
async fn mrtr_parallel_isolation() {
    let asked = Arc::new(AtomicUsize::new(0));
    let web = Web::modern({
        let asked = Arc::clone(&asked);
        move |seen| {
            let params =
                seen.params().filter(|_| seen.method().as_deref() == Some("tools/call"))?;
            let who = param(&params, "arguments").unwrap().to_owned();
            Some(Answer::json(&match param(&params, "requestState") {
                Some(state) => seen.says(&format!("{who} {state}")),
                None => {
                    asked.fetch_add(1, Ordering::SeqCst);
                    let state = plenipo_wire::Fragment::string(&who);
                    seen.result(&needs(&format!(r#"{{"k":{ASK}}}"#), state.as_str()))
                }
            }))
        }
    });
    let mut web = web.await;
    let connection = Arc::new(with(&mut web, Puppet::accepting("{}")).await);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..16 {
        let connection = Arc::clone(&connection);
        tasks.spawn(async move {
            let arguments = format!(r#"{{"n":{number}}}"#);
            let text = said(&connection, "hi", &arguments).await;
            let state = plenipo_wire::Fragment::string(&arguments);
            assert_eq!(text, format!("{arguments} {state}"));
        });
    }
    assert_eq!(tasks.join_all().await.len(), 16);
    let ids: HashSet<_> = calls(&web).iter().map(Seen::id).collect();
    assert_eq!(ids.len(), 32, "every id is fresh");
    assert_eq!(asked.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn without_questions_the_state_alone_is_sent_again() {
    let mut web = asking("", r#""later""#).await;
    let puppet = Puppet::accepting("{}");
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    assert_eq!(said(&connection, "hi", "{}").await, "\"later\"");
    assert_eq!(puppet.asked(), 0);
    let second = calls(&web)[1].params().unwrap();
    assert_eq!(param(&second, "inputResponses"), None);

    let mut web = asking("", "").await;
    let connection = with(&mut web, puppet).await;
    let (kind, text) = fault(&connection).await;
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.ends_with("the server asks for input and names none"), "{text}");
}

#[tokio::test]
async fn mrtr_round_cap_and_cancel_reaches_prompt() {
    let mut web = Web::modern(|seen| {
        (seen.method().as_deref() == Some("tools/call"))
            .then(|| Answer::json(&seen.result(&needs(&format!(r#"{{"k":{ASK}}}"#), ""))))
    })
    .await;
    web.options.max_input_rounds = 3;
    let puppet = Puppet::accepting("{}");
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Input(InputFault::TooManyRounds { limit: 3 })));
    assert_eq!((puppet.asked(), calls(&web).len()), (3, 4));

    // Cancelling and dropping both end the prompt.
    let silent = Arc::new(Puppet::new(InputOffer::ELICITATION, |_| None));
    let connection = with(&mut web, Arc::clone(&silent) as _).await;
    let canceller = Canceller::new();
    let mut cancelled = request(&connection, "hi", "{}").await;
    cancelled.cancel = Some(canceller.cancellation());
    let (ended, ()) = tokio::join!(connection.call(cancelled), async {
        until(|| silent.asked() == 1).await;
        assert_eq!(silent.dropped.load(Ordering::SeqCst), 0);
        canceller.cancel("enough");
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(silent.dropped.load(Ordering::SeqCst), 1);
    tokio::select! {
        _ = call(&connection, "hi", "{}") => panic!("nobody answers"),
        () = until(|| silent.asked() == 2) => {}
    }
    assert_eq!(silent.dropped.load(Ordering::SeqCst), 2);
    assert_eq!(calls(&web).len(), 6, "nothing was sent after that");
}

#[tokio::test]
async fn the_clock_stands_still_while_a_person_is_asked() {
    let mut fake = Fake::new("mrtr", &[]);
    let mut slow = Puppet::new(InputOffer::ELICITATION, |_| Some(Ok(accept("{}"))));
    slow.delay = Duration::from_secs(3);
    fake.options.input = Some(Arc::new(slow));
    let connection = fake.start().await.unwrap();
    connection.catalog().await.unwrap();
    let mut patient = request(&connection, "ask", "{}").await;
    patient.timeout = Some(Duration::from_secs(2));
    patient.max_total = Some(Duration::from_secs(2));
    assert!(connection.call(patient).await.is_ok());
    connection.shut_down().await;
}

#[tokio::test]
async fn capabilities_are_per_call() {
    let ask: &'static str = Box::leak(format!(r#"{{"k":{ASK}}}"#).into_boxed_str());
    let mut web = asking(ask, "").await;
    let mut form = InputOffer::ELICITATION;
    form.url = false;
    let connection =
        with(&mut web, Arc::new(Puppet::new(form, |_| Some(Ok(InputAnswer::Decline))))).await;
    let mut offer = InputOffer::default();
    (offer.roots, offer.form) = (true, true);
    let mut own = request(&connection, "hi", "{}").await;
    own.input = Some(Arc::new(Puppet::new(offer, |_| Some(Ok(InputAnswer::Cancel)))));
    let (own, shared) = tokio::join!(connection.call(own), call(&connection, "hi", "{}"));
    assert_eq!(crate::support::text(&own.unwrap()), r#"{"k":{"action":"cancel"}}"#);
    assert_eq!(crate::support::text(&shared.unwrap()), r#"{"k":{"action":"decline"}}"#);
    let mut declared: Vec<String> = calls(&web).iter().map(declared).collect();
    declared.sort();
    declared.dedup();
    assert_eq!(
        declared,
        [r#"{"elicitation":{"form":{}},"roots":{}}"#, r#"{"elicitation":{"form":{}}}"#]
    );

    // Nobody there: nothing is declared, and what is asked all the same is refused.
    web.options.input = None;
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Input(InputFault::NotOffered { .. })), "{error}");
    assert!(error.hint().unwrap().contains("terminal"));
    assert_eq!(declared_last(&web), "{}");
}

fn declared(seen: &Seen) -> String {
    let params = seen.params().unwrap();
    let meta = object::member(&params, "_meta").unwrap();
    param(meta, "io.modelcontextprotocol/clientCapabilities").unwrap().to_owned()
}

fn declared_last(web: &Web) -> String {
    declared(calls(web).last().unwrap())
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_not_sent() {
    let ask: &'static str = Box::leak(format!(r#"{{"k":{ASK}}}"#).into_boxed_str());
    for (answer, kind, said) in [
        (Ok(accept(r#"{"sure":"yes"}"#)), ErrorKind::Usage, "`sure` has to be yes or no"),
        (Ok(accept(r#"{"other":1}"#)), ErrorKind::Usage, "`other` is not in the form"),
        (Ok(InputAnswer::Roots(Vec::new())), ErrorKind::Usage, "another kind"),
        (Err(InputRefusal::new("nobody home")), ErrorKind::Refused, "nobody home"),
    ] {
        let mut web = asking(ask, "").await;
        let answer = Mutex::new(Some(answer));
        let puppet = Puppet::new(InputOffer::ELICITATION, move |_| answer.lock().unwrap().take());
        let connection = with(&mut web, Arc::new(puppet)).await;
        let (found, text) = fault(&connection).await;
        assert_eq!(found, kind);
        assert!(text.contains(said), "{text}");
        assert_eq!(calls(&web).len(), 1);
    }
}

#[tokio::test]
async fn input_required_on_list_is_error() {
    for (method, operation) in
        [("tools/list", Operation::List), ("server/discover", Operation::Start)]
    {
        let mut web = Web::modern(move |seen| {
            (seen.method().as_deref() == Some(method))
                .then(|| Answer::json(&seen.result(&needs(&format!(r#"{{"k":{ASK}}}"#), ""))))
        })
        .await;
        let puppet = Puppet::accepting("{}");
        web.options.input = Some(Arc::clone(&puppet) as _);
        let error = match web.connect().await {
            Ok(connection) => connection.catalog().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.operation(), &operation);
        assert_eq!(puppet.asked(), 0);
        if operation == Operation::List {
            assert!(matches!(error.fault(), Fault::ResultType { .. }), "{error}");
        }
    }
}

/// Nothing of an earlier call is used for the next: it is sent bare, asked and answered anew.
#[tokio::test]
async fn a_call_made_again_is_asked_and_answered_anew() {
    let ask: &'static str = Box::leak(format!(r#"{{"k":{ASK}}}"#).into_boxed_str());
    let mut web = asking(ask, STATE).await;
    let answers = [r#"{"sure":true}"#, r#"{"sure":false}"#];
    let number = AtomicUsize::new(0);
    let puppet = Arc::new(Puppet::new(InputOffer::ELICITATION, move |_| {
        Some(Ok(accept(answers[number.fetch_add(1, Ordering::SeqCst)])))
    }));
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    for answer in answers {
        let said = said(&connection, "hi", "{}").await;
        assert_eq!(said, format!(r#"{{"k":{{"action":"accept","content":{answer}}}}}"#));
    }
    let sent: Vec<_> = calls(&web).iter().map(|call| call.params().unwrap()).collect();
    let bare: Vec<_> = sent.iter().map(|params| param(params, "requestState").is_none()).collect();
    assert_eq!(bare, [true, false, true, false]);
    assert_eq!(puppet.asked(), 2);
}

#[tokio::test]
async fn an_unknown_result_type_is_never_answered() {
    let mut web = Web::modern(|seen| {
        (seen.method().as_deref() == Some("tools/call")).then(|| {
            Answer::json(&seen.result(r#"{"resultType":"more_input","requestState":"s"}"#))
        })
    })
    .await;
    let connection = with(&mut web, Puppet::accepting("{}")).await;
    let (kind, text) = fault(&connection).await;
    assert_eq!(kind, ErrorKind::Protocol);
    assert!(text.contains("`more_input`"), "{text}");
    assert_eq!(calls(&web).len(), 1);
}

/// The authority is captured once: what a retry would go out under has to be the same in all.
#[tokio::test]
async fn a_launcher_that_changes_between_rounds_fails_the_call() {
    for replaced in [false, true] {
        let mut fake = Fake::new(
            "mrtr",
            &[("F_CAPS", r#"{"tools":{},"experimental":{"codex/sandbox-state":{}}}"#)],
        );
        let launcher = fake.launcher();
        fake.options.launcher =
            Arc::new(LauncherProvider::new(LauncherSource::Path(launcher.clone())));
        let puppet = Puppet::new(InputOffer::ELICITATION, move |_| {
            if replaced {
                let text = std::fs::read_to_string(&launcher).unwrap();
                std::fs::remove_file(&launcher).unwrap();
                crate::support::write_program(&launcher, &format!("{text}# another\n"));
            }
            Some(Ok(accept("{}")))
        });
        fake.options.input = Some(Arc::new(puppet));
        let connection = fake.start().await.unwrap();
        let state = SandboxState::capture(r#"{"permissionProfile":{"type":"disabled"}}"#).unwrap();
        let authority = connection.capture(Some(state)).await;
        let ended =
            connection.call(plenipo_connect::CallRequest::new("ask", None, authority)).await;
        let sent = fake.params("tools/call");
        match replaced {
            false => {
                assert!(ended.is_ok(), "{ended:?}");
                let meta = |params: &String| {
                    let params = plenipo_wire::Fragment::parse(params).unwrap();
                    let meta = object::member(params.as_raw(), "_meta").unwrap();
                    ["codex/sandbox-state", "codex/sandbox-launcher"]
                        .map(|key| object::member(meta, key).unwrap().get().to_owned())
                };
                assert_eq!(sent.len(), 2);
                assert_eq!(meta(&sent[0]), meta(&sent[1]));
            }
            true => {
                let error = ended.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Refused);
                assert!(error.to_string().contains("authority changed"), "{error}");
                assert!(error.to_string().contains("launcher"), "{error}");
                assert_eq!(sent.len(), 1);
            }
        }
        connection.shut_down().await;
    }
}

/// Its credential is another from some moment on.
#[derive(Debug, Default)]
struct Moved(AtomicBool);

impl Authorizer for Moved {
    fn authorize<'a>(&'a self, _: &'a AuthorizeRequest<'a>) -> Authorizing<'a, Authorization> {
        Box::pin(async { Ok(Authorization::new(http::HeaderMap::new(), 0)) })
    }

    fn challenged<'a>(&'a self, _: &'a Challenge<'a>) -> Authorizing<'a, Verdict> {
        Box::pin(async { Ok(Verdict::Fail) })
    }

    fn pin(&self) -> Option<CredentialPin> {
        let moved = self.0.load(Ordering::SeqCst);
        Some(CredentialPin::new(if moved { "issuer-b" } else { "issuer-a" }))
    }
}

#[tokio::test]
async fn a_credential_that_changes_between_rounds_fails_the_call() {
    for moves in [false, true] {
        let mut web = asking(ONE, STATE).await;
        let authorizer = Arc::new(Moved::default());
        let puppet = Puppet::new(InputOffer::ELICITATION, {
            let authorizer = Arc::clone(&authorizer);
            move |_| {
                authorizer.0.store(moves, Ordering::SeqCst);
                Some(Ok(accept("{}")))
            }
        });
        web.options.input = Some(Arc::new(puppet));
        let mut endpoint = web.endpoint();
        endpoint.authorizer(Arc::clone(&authorizer) as Arc<dyn Authorizer>);
        let connection = web.connect_to(&endpoint).await.unwrap();
        let ended = call(&connection, "hi", "{}").await;
        assert_eq!(calls(&web).len(), if moves { 1 } else { 2 });
        match moves {
            false => assert!(ended.is_ok(), "{ended:?}"),
            true => {
                let error = ended.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Refused);
                assert!(error.to_string().contains("credential"), "{error}");
            }
        }
    }
}

/// The server turns out to be an older one between the rounds, with or without the opt-in it had.
#[tokio::test]
async fn an_opt_in_that_changes_between_rounds_fails_the_call() {
    for keeps in [true, false] {
        let turned = Arc::new(AtomicBool::new(false));
        let old = Arc::clone(&turned);
        let mut web = Web::start(move |seen| {
            let opted = r#""experimental":{"codex/sandbox-state":{}}"#;
            let rest = if keeps { format!(",{opted}") } else { String::new() };
            let refused = seen.error(r#"{"code":-32022,"message":"v","data":{"supported":["2025-06-18"]}}"#);
            Some(match seen.method()?.as_str() {
                "server/discover" => Answer::json(&seen.result(&format!(
                    r#"{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}},{opted}}}}}"#
                ))),
                "initialize" => Answer::json(&seen.result(&format!(
                    r#"{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}{rest}}},"serverInfo":{{}}}}"#
                ))),
                "tools/list" => Answer::json(
                    &seen.result(r#"{"tools":[{"name":"hi","inputSchema":{"type":"object"}}],"ttlMs":60000}"#),
                ),
                "tools/call" if !old.swap(true, Ordering::SeqCst) => {
                    Answer::json(&seen.result(&needs(ONE, STATE)))
                }
                "tools/call" if seen.header("mcp-protocol-version") == Some("2026-07-28") => {
                    Answer::new(400, "Content-Type: application/json\r\n", &refused)
                }
                "tools/call" => Answer::json(&seen.says("done")),
                _ => Answer::empty(202),
            })
        })
        .await;
        web.options.input = Some(Puppet::accepting("{}"));
        let connection = web.connect().await.unwrap();
        let state = SandboxState::capture(r#"{"permissionProfile":{"type":"disabled"}}"#).unwrap();
        let authority = connection.capture(Some(state)).await;
        let ended = connection.call(plenipo_connect::CallRequest::new("hi", None, authority)).await;
        match keeps {
            true => assert!(ended.is_ok(), "{ended:?}"),
            false => {
                let error = ended.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Refused);
                assert!(error.to_string().contains("opt-in"), "{error}");
                assert_eq!(calls(&web).len(), 2, "the one that found it out is the last");
            }
        }
    }
}

/// The other two of the five: the state goes out again as it was captured, to the byte, and an
/// environment is a connection's own.
#[tokio::test]
async fn state_and_environment_are_the_same_in_every_round() {
    let fake = Fake::new(
        "mrtr",
        &[("F_CAPS", r#"{"tools":{},"experimental":{"codex/sandbox-state":{}}}"#)],
    );
    let mut options = fake.options.clone();
    options.input = Some(Puppet::accepting("{}"));
    let name = plenipo_connect::ServerName::new("fake").unwrap();
    let connection = Connection::start(name, &fake.command, options).await.unwrap();
    let text =
        r#"{"z": 1.5, "permissionProfile": {"type": "disabled"}, "n": 12345678901234567890}"#;
    let state = SandboxState::capture(text).unwrap();
    let authority = connection.capture(Some(state)).await;
    let mut elsewhere = plenipo_authority::AuthorityParts::new(
        plenipo_authority::EnvironmentId::new("remote"),
        plenipo_authority::ServerReach::LocalStdio,
    );
    elsewhere.opt_in = true;
    let elsewhere = plenipo_authority::CapturedAuthority::capture(elsewhere);
    let refused = connection.call(plenipo_connect::CallRequest::new("ask", None, elsewhere)).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
    connection.call(plenipo_connect::CallRequest::new("ask", None, authority)).await.unwrap();
    let sent = fake.params("tools/call");
    assert_eq!(sent.len(), 2);
    for params in sent {
        let params = plenipo_wire::Fragment::parse(&params).unwrap();
        let meta = object::member(params.as_raw(), "_meta").unwrap();
        assert_eq!(object::member(meta, "codex/sandbox-state").unwrap().get(), text);
    }
    connection.shut_down().await;
}

#[tokio::test]
async fn what_a_server_may_ask_at_once_is_bounded() {
    let many = (0..65).map(|n| format!(r#""k{n}":{ASK}"#)).collect::<Vec<_>>().join(",");
    let many: &'static str = Box::leak(format!("{{{many}}}").into_boxed_str());
    let mut web = asking(many, "").await;
    let puppet = Puppet::accepting("{}");
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Input(InputFault::TooMany { count: 65, limit: 64 })));
    assert!(error.to_string().contains("`max_questions`"), "{error}");
    assert_eq!(puppet.asked(), 0);
    web.options.max_questions = 65;
    let connection = with(&mut web, Arc::clone(&puppet) as _).await;
    call(&connection, "hi", "{}").await.unwrap();
    assert_eq!(puppet.asked(), 65, "the bound is the host's to set");
}
