use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use plenipo_authority::CredentialPin;
use plenipo_connect::transport::http::{
    Authorization, AuthorizeError, AuthorizeRequest, Authorizer, Authorizing, Challenge, Operation,
    Verdict,
};
use plenipo_connect::{Connection, ErrorKind, Fault, HttpFault};

use crate::support::{call, request, said};
use crate::web::{Answer, Seen, Web};

/// Numbers its tokens: `token-0` at first, the next after each refusal of the current one.
#[derive(Debug, Default)]
struct Numbered {
    current: AtomicU64,
    /// It gives up instead of making another.
    gives_up: bool,
    pin: Option<&'static str>,
    more: Option<(&'static str, &'static str)>,
    asked: Mutex<Vec<String>>,
    told: Mutex<Vec<String>>,
    nonces: Mutex<Vec<String>>,
}

impl Authorizer for Numbered {
    fn authorize<'a>(&'a self, asked: &'a AuthorizeRequest<'a>) -> Authorizing<'a, Authorization> {
        let text = format!(
            "{} {} {} {:?} {}",
            asked.method,
            asked.url.path(),
            asked.operation.method,
            asked.operation.name,
            asked.attempt
        );
        self.asked.lock().unwrap().push(text);
        Box::pin(async {
            let number = self.current.load(Ordering::SeqCst);
            let mut headers = HeaderMap::new();
            let value = format!("DPoP token-{number}");
            headers.insert(header::AUTHORIZATION, HeaderValue::try_from(value).unwrap());
            let length = HeaderValue::from(asked.body.len());
            headers.insert(HeaderName::from_static("dpop"), length);
            if let Some((name, value)) = self.more {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            Ok(Authorization::new(headers, number))
        })
    }

    fn challenged<'a>(&'a self, challenge: &'a Challenge<'a>) -> Authorizing<'a, Verdict> {
        let why = challenge.headers.get(header::WWW_AUTHENTICATE);
        let why = why.map_or("-", |why| why.to_str().unwrap());
        let text = format!("{} {why} {}", challenge.status.as_u16(), challenge.attempt);
        self.told.lock().unwrap().push(text);
        Box::pin(async move {
            if self.gives_up {
                return Ok(Verdict::Fail);
            }
            let (stale, order) = (challenge.generation, Ordering::SeqCst);
            self.current.compare_exchange(stale, stale + 1, order, order).ok();
            Ok(Verdict::Retry)
        })
    }

    fn answered(&self, _: &Uri, _: Operation<'_>, _: StatusCode, headers: &HeaderMap) {
        if let Some(nonce) = headers.get("dpop-nonce") {
            self.nonces.lock().unwrap().push(nonce.to_str().unwrap().to_owned());
        }
    }

    fn pin(&self) -> Option<CredentialPin> {
        self.pin.map(CredentialPin::new)
    }
}

async fn connect(web: &Web, authorizer: &Arc<Numbered>) -> Connection {
    let mut endpoint = web.endpoint();
    endpoint.authorizer(Arc::clone(authorizer) as Arc<dyn Authorizer>);
    web.connect_to(&endpoint).await.unwrap()
}

/// 401 unless the token is at least number `least`.
fn guarded(seen: &Seen, least: u64) -> Option<Answer> {
    let number = seen.header("authorization").and_then(|value| value.strip_prefix("DPoP token-"));
    let number: Option<u64> = number.and_then(|number| number.parse().ok());
    let head = "WWW-Authenticate: Bearer error=\"invalid_token\"\r\nDPoP-Nonce: n1\r\n";
    (number < Some(least)).then(|| Answer::new(401, head, ""))
}

#[tokio::test]
async fn an_authorizer_is_asked_for_every_request_with_the_bytes_that_are_sent() {
    let web = Web::modern(|seen| {
        (seen.path == "/mcp")
            .then(|| Answer::redirect(307, "/moved"))
            .filter(|_| seen.method().as_deref() == Some("tools/call"))
    })
    .await;
    let authorizer = Arc::new(Numbered::default());
    let connection = connect(&web, &authorizer).await;
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    insta::assert_snapshot!(authorizer.asked.lock().unwrap().join("\n"), @r#"
    POST /mcp server/discover None 0
    POST /mcp tools/list None 0
    POST /mcp tools/call Some("hi") 0
    POST /moved tools/call Some("hi") 0
    "#);
    for seen in web.requests() {
        assert_eq!(seen.header("authorization"), Some("DPoP token-0"));
        assert_eq!(seen.header("dpop"), Some(&*seen.body.len().to_string()));
    }
}

#[tokio::test]
async fn a_stale_token_is_replaced_for_all_calls_that_met_it() {
    let least = Arc::new(AtomicU64::new(0));
    let web = Web::modern({
        let least = Arc::clone(&least);
        move |seen| guarded(seen, least.load(Ordering::SeqCst))
    })
    .await;
    let authorizer = Arc::new(Numbered::default());
    let connection = connect(&web, &authorizer).await;
    connection.catalog().await.unwrap();
    least.store(1, Ordering::SeqCst);
    let calls = [(); 8].map(|()| call(&connection, "hi", "{}"));
    let [a, b, c, d, e, f, g, h] = calls;
    let outcomes = tokio::join!(a, b, c, d, e, f, g, h);
    assert!(outcomes.0.is_ok() && outcomes.3.is_ok() && outcomes.7.is_ok());
    assert_eq!(authorizer.current.load(Ordering::SeqCst), 1, "one new token for all");
    let told = authorizer.told.lock().unwrap();
    assert!(!told.is_empty() && told.iter().all(|told| told.ends_with("\" 1")), "{told:?}");
    assert!(!authorizer.nonces.lock().unwrap().is_empty());
}

#[tokio::test]
async fn repetitions_are_bounded_and_a_verdict_stands() {
    let web = Web::modern(|seen| guarded(seen, 1_000)).await;
    let authorizer = Arc::new(Numbered::default());
    let mut endpoint = web.endpoint();
    endpoint.authorizer(Arc::clone(&authorizer) as Arc<dyn Authorizer>);
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Http(HttpFault::SignInNeeded { .. })), "{error}");
    assert_eq!(web.requests().len(), 5);

    let web = Web::modern(|seen| guarded(seen, 1_000)).await;
    endpoint = web.endpoint();
    endpoint.authorizer(Arc::new(Numbered { gives_up: true, ..Numbered::default() }));
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert_eq!(web.requests().len(), 1);
}

#[tokio::test]
async fn what_an_authorizer_gives_is_taken_out_of_echoes_and_may_not_be_a_reserved_header() {
    let web = Web::modern(|seen| {
        let said = seen.error(r#"{"code":-32000,"message":"bad credential DPoP token-0"}"#);
        (seen.method()? == "tools/call").then(|| Answer::json(&said))
    })
    .await;
    let connection = connect(&web, &Arc::new(Numbered::default())).await;
    let error = call(&connection, "hi", "{}").await.unwrap_err().to_string();
    assert!(error.contains("bad credential [redacted]"), "{error}");

    for (name, value) in
        [("host", "evil.example"), ("mcp-session-id", "x"), ("content-length", "0")]
    {
        let mut endpoint = web.endpoint();
        let more = Some((name, value));
        endpoint.authorizer(Arc::new(Numbered { more, ..Numbered::default() }));
        let before = web.requests().len();
        let error = web.connect_to(&endpoint).await.unwrap_err();
        assert!(matches!(error.fault(), Fault::Http(HttpFault::Header { .. })), "{error}");
        assert_eq!(web.requests().len(), before);
    }
}

#[derive(Debug)]
struct Unable;

impl Authorizer for Unable {
    fn authorize<'a>(&'a self, _: &'a AuthorizeRequest<'a>) -> Authorizing<'a, Authorization> {
        Box::pin(async {
            let error = AuthorizeError::new(ErrorKind::SignIn, "nobody is signed in");
            Err(error.with_hint("run `plenipo login web`"))
        })
    }

    fn challenged<'a>(&'a self, _: &'a Challenge<'a>) -> Authorizing<'a, Verdict> {
        Box::pin(async { Ok(Verdict::Fail) })
    }
}

#[tokio::test]
async fn without_credentials_nothing_is_sent_and_the_hint_is_the_authorizers() {
    let web = Web::modern(|_| None).await;
    let mut endpoint = web.endpoint();
    endpoint.authorizer(Arc::new(Unable));
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert_eq!(error.to_string(), "start server `web`: nobody is signed in");
    assert_eq!(error.hint().unwrap(), "run `plenipo login web`");
    assert!(web.requests().is_empty());
}

#[tokio::test]
async fn a_call_is_bound_to_the_credential_its_authority_was_captured_with() {
    let web = Web::modern(|_| None).await;
    let pinned = |pin| Arc::new(Numbered { pin: Some(pin), ..Numbered::default() });
    let mine = connect(&web, &pinned("issuer-a client-1")).await;
    let other = connect(&web, &pinned("issuer-b client-1")).await;
    let asked = request(&mine, "hi", "{}").await;
    assert_eq!(asked.authority.credential().unwrap().as_str(), "issuer-a client-1");
    let error = other.call(asked.clone()).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::AuthorityChanged { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(web.count("tools/call"), 0);
    mine.call(asked).await.unwrap();
}

#[tokio::test]
async fn an_authorizer_is_never_asked_for_another_origin() {
    let other = Web::modern(|_| None).await;
    let to = other.url();
    let web = Web::start(move |_| Some(Answer::redirect(307, &to))).await;
    let authorizer = Arc::new(Numbered::default());
    let mut endpoint = web.endpoint();
    endpoint.authorizer(Arc::clone(&authorizer) as Arc<dyn Authorizer>);
    let error = web.connect_to(&endpoint).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Http(HttpFault::Redirect { .. })), "{error}");
    assert!(other.requests().is_empty());
    assert_eq!(*authorizer.asked.lock().unwrap(), ["POST /mcp server/discover None 0"]);
}

#[tokio::test]
async fn an_authorizer_is_asked_for_a_sessions_stream_and_its_end_too() {
    let web = Web::legacy(|seen| {
        let result = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{}}"#;
        let head = "Content-Type: application/json\r\nMcp-Session-Id: s\r\n";
        match (seen.verb.as_str(), seen.method().as_deref()) {
            ("GET", _) => Some(Answer::stream(": here\n\n").hold()),
            (_, Some("initialize")) => Some(Answer::new(200, head, &seen.result(result))),
            _ => None,
        }
    })
    .await;
    let authorizer = Arc::new(Numbered::default());
    let connection = connect(&web, &authorizer).await;
    crate::support::until(|| web.count("GET") == 1).await;
    connection.shut_down().await;
    for verb in ["GET", "DELETE"] {
        let seen = web.of(verb);
        assert_eq!(seen.len(), 1, "{verb}");
        assert_eq!(seen[0].header("authorization"), Some("DPoP token-0"));
        assert_eq!(seen[0].header("dpop"), Some("0"), "over an empty body");
    }
    let asked = authorizer.asked.lock().unwrap();
    assert!(asked.iter().any(|asked| asked == "GET /mcp  None 0"), "{asked:?}");
}
