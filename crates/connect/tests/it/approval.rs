//! Who is asked before a call is made.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plenipo_connect::approval::{
    Approval, ApprovalDecision, ApprovalMode, ApprovalRequest, Approvals, Approver,
};
use plenipo_connect::input::InputFuture;
use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::{Canceller, Connection, ErrorKind, Fault};

use crate::support::{call, request, until};
use crate::web::{Answer, Web, event};

const TOOLS: &str = r#"{"tools":[
    {"name":"reads","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
    {"name":"plain","inputSchema":{"type":"object"}}]}"#;

/// Answers with what it is given, and remembers what it was shown.
#[derive(Default)]
struct Judge {
    answer: Option<Approval>,
    shown: Mutex<Vec<String>>,
    dropped: AtomicUsize,
}

struct Dropped<'a>(&'a AtomicUsize);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Approver for Judge {
    fn approve<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> InputFuture<'a, Approval> {
        let arguments = request.arguments.map(ToString::to_string).unwrap_or_default();
        let (server, tool, mode) = (request.server, request.tool.name(), request.mode.name());
        let text = format!("{server}.{tool} {mode} {arguments}");
        self.shown.lock().unwrap().push(text);
        Box::pin(async move {
            let _dropped = Dropped(&self.dropped);
            match self.answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
}

#[derive(Default)]
struct Decisions(Mutex<Vec<(String, ApprovalDecision)>>);

impl Observer for Decisions {
    fn event(&self, event: &Event<'_>) {
        if let Event::Approval { tool, decision, .. } = event {
            self.0.lock().unwrap().push(((*tool).to_owned(), *decision));
        }
    }
}

struct Scene {
    web: Web,
    judge: Arc<Judge>,
    decisions: Arc<Decisions>,
    connection: Connection,
}

async fn scene(answer: Option<Approval>, change: impl FnOnce(&mut Approvals)) -> Scene {
    let mut web = Web::modern(|seen| {
        (seen.method().as_deref() == Some("tools/list")).then(|| Answer::json(&seen.result(TOOLS)))
    })
    .await;
    let judge = Arc::new(Judge { answer, ..Judge::default() });
    let decisions = Arc::new(Decisions::default());
    let mut rules = Approvals::default();
    rules.approver = Some(Arc::clone(&judge) as _);
    change(&mut rules);
    web.options.approvals = Some(rules);
    web.options.observer = Arc::clone(&decisions) as _;
    let connection = web.connect().await.unwrap();
    Scene { web, judge, decisions, connection }
}

impl Scene {
    async fn call(&self, tool: &str) -> ApprovalDecision {
        let ended = call(&self.connection, tool, r#"{"a":1}"#).await;
        let (name, decision) = self.decisions.0.lock().unwrap().last().unwrap().clone();
        assert_eq!(name, tool);
        assert_eq!(ended.is_ok(), decision.allows(), "{ended:?}");
        if let Err(error) = ended {
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(matches!(error.fault(), Fault::NotApproved { .. }), "{error}");
        }
        decision
    }

    fn asked(&self) -> usize {
        self.judge.shown.lock().unwrap().len()
    }

    fn sent(&self) -> usize {
        self.web.count("tools/call")
    }
}

#[tokio::test]
async fn annotations_ignored_for_untrusted() {
    for mode in [None, Some(ApprovalMode::Auto), Some(ApprovalMode::Writes)] {
        let untrusted = scene(Some(Approval::Refused), |rules| rules.default_mode = mode).await;
        assert_eq!(untrusted.call("reads").await, ApprovalDecision::Refused, "{mode:?}");
        assert_eq!((untrusted.asked(), untrusted.sent()), (1, 0));

        let trusted = scene(Some(Approval::Refused), |rules| {
            (rules.default_mode, rules.trust_annotations) = (mode, true);
        })
        .await;
        assert_eq!(trusted.call("reads").await, ApprovalDecision::Rules, "{mode:?}");
        assert_eq!(trusted.call("plain").await, ApprovalDecision::Refused, "{mode:?}");
        assert_eq!((trusted.asked(), trusted.sent()), (1, 1));
    }
}

#[tokio::test]
async fn what_is_shown_is_what_will_be_sent_and_a_refusal_sends_nothing() {
    let scene = scene(Some(Approval::Refused), |rules| {
        rules.tool_modes.insert("plain".to_owned(), ApprovalMode::Prompt);
        rules.default_mode = Some(ApprovalMode::Approve);
    })
    .await;
    assert_eq!(scene.call("plain").await, ApprovalDecision::Refused);
    assert_eq!(scene.call("reads").await, ApprovalDecision::Rules, "the tool's own mode wins");
    assert_eq!(*scene.judge.shown.lock().unwrap(), [r#"web.plain prompt {"a":1}"#]);
    assert_eq!(scene.sent(), 1);
}

#[tokio::test]
async fn without_an_approver_what_needs_one_is_refused() {
    let scene = scene(None, |rules| rules.approver = None).await;
    assert_eq!(scene.call("plain").await, ApprovalDecision::NobodyToAsk);
    let error = call(&scene.connection, "plain", "{}").await.unwrap_err();
    insta::assert_snapshot!(
        error,
        @"call tool `plain` of server `web`: the call needs approval, and nobody is there to give it"
    );
    assert!(error.hint().unwrap().contains("approval_mode"));
    assert_eq!(scene.sent(), 0);
}

#[tokio::test]
async fn an_approval_for_the_session_covers_that_tool_alone() {
    let scene = scene(Some(Approval::Session), |_| {}).await;
    assert_eq!(scene.call("plain").await, ApprovalDecision::Approver);
    assert_eq!(scene.call("plain").await, ApprovalDecision::Earlier);
    assert_eq!(scene.call("reads").await, ApprovalDecision::Approver);
    assert_eq!((scene.asked(), scene.sent()), (2, 3));
}

#[tokio::test]
async fn a_persons_own_call_needs_no_approval_unless_an_administrator_says_so() {
    for (binding, mode, wanted) in [
        (false, Some(ApprovalMode::Prompt), ApprovalDecision::Person),
        (true, Some(ApprovalMode::Prompt), ApprovalDecision::Approver),
        (true, None, ApprovalDecision::Person),
        (true, Some(ApprovalMode::Approve), ApprovalDecision::Rules),
    ] {
        let scene = scene(Some(Approval::Once), |rules| {
            (rules.binding, rules.default_mode) = (binding, mode);
        })
        .await;
        let mut typed = request(&scene.connection, "plain", "{}").await;
        typed.asked_by_person = true;
        scene.connection.call(typed).await.unwrap();
        let decisions = scene.decisions.0.lock().unwrap().clone();
        assert_eq!(decisions, [("plain".to_owned(), wanted)], "{binding} {mode:?}");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_the_question() {
    let scene = scene(None, |_| {}).await;
    let canceller = Canceller::new();
    let mut asks = request(&scene.connection, "plain", "{}").await;
    asks.cancel = Some(canceller.cancellation());
    let (ended, ()) = tokio::join!(scene.connection.call(asks), async {
        until(|| scene.asked() == 1).await;
        canceller.cancel("enough");
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!((scene.judge.dropped.load(Ordering::SeqCst), scene.sent()), (1, 0));
}

/// Every listing of this server says that the list changed meanwhile.
#[tokio::test]
async fn a_tool_that_changed_while_it_was_approved_is_not_called() {
    let listed = AtomicUsize::new(0);
    let mut web = Web::legacy(move |seen| {
        let number = match seen.method().as_deref() {
            Some("tools/list") => listed.fetch_add(1, Ordering::SeqCst),
            _ => return None,
        };
        let tools = format!(
            r#"{{"tools":[{{"name":"hi","description":"{number}","inputSchema":{{"type":"object"}}}}]}}"#
        );
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        Some(Answer::chunked(&format!("{}{}", event(changed), event(&seen.result(&tools)))))
    })
    .await;
    let judge = Arc::new(Judge { answer: Some(Approval::Once), ..Judge::default() });
    let mut rules = Approvals::default();
    rules.approver = Some(Arc::clone(&judge) as _);
    web.options.approvals = Some(rules);
    let connection = web.connect().await.unwrap();
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert!(matches!(error.fault(), Fault::ToolChanged), "{error}");
    assert_eq!(judge.shown.lock().unwrap().len(), 1);
    assert_eq!(web.count("tools/call"), 0);
}
