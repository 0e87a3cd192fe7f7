//! Signing in over the seam for credentials: one fake that is MCP server and authorization server.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plenipo_connect::oauth::{
    GrantError, Granting, Grantor, OAuthAuthorizer, OAuthNetwork, OAuthSettings, PersonGrantor,
    SignInPrompt,
};
use plenipo_connect::transport::http::Authorizer;
use plenipo_connect::{ConnectError, Connection, ErrorKind, HttpClient, HttpEndpoint};
use plenipo_credentials::{FileStore, Vault};
use plenipo_oauth::{EndpointUrl, SignIn};
use plenipo_redact::Secret;
use tempfile::TempDir;

use crate::support::{call, said};
use crate::web::{Answer, Seen, Web, modern};

/// What a test may change about the fake.
#[derive(Default)]
struct Habits {
    expires_in: Option<u64>,
    no_refresh: bool,
    /// Answers of a token endpoint that repeats what it was sent.
    parrot: bool,
}

/// The fake's memory.
#[derive(Default)]
struct State {
    habits: Mutex<Habits>,
    /// Good access tokens, with their scopes.
    good: Mutex<Vec<(String, String)>>,
    count: AtomicUsize,
}

impl State {
    fn grant(&self, scope: &str) -> Answer {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let token = format!("at-s3cr3t-{number}");
        self.good.lock().unwrap().push((token.clone(), scope.to_owned()));
        let habits = self.habits.lock().unwrap();
        let life =
            habits.expires_in.map_or(String::new(), |life| format!(",\"expires_in\":{life}"));
        let refresh = match habits.no_refresh {
            true => String::new(),
            false => format!(",\"refresh_token\":\"rt-s3cr3t-{number}\""),
        };
        Answer::json(&format!(
            r#"{{"access_token":"{token}","token_type":"Bearer","scope":"{scope}"{life}{refresh}}}"#
        ))
    }

    /// Everything that was issued is worth nothing from now on.
    fn revoke(&self) {
        self.good.lock().unwrap().clear();
    }

    fn answer(&self, seen: &Seen, base: &str) -> Answer {
        let path = seen.path.split('?').next().unwrap();
        match path {
            "/.well-known/oauth-protected-resource/mcp" => Answer::json(&format!(
                r#"{{"resource":"{base}/mcp","authorization_servers":["{base}/as"],"scopes_supported":["read","write"]}}"#
            )),
            "/.well-known/oauth-authorization-server/as" => Answer::json(&format!(
                r#"{{"issuer":"{base}/as","authorization_endpoint":"{base}/as/authorize","token_endpoint":"{base}/as/token",
                "registration_endpoint":"{base}/as/register","code_challenge_methods_supported":["S256"],
                "token_endpoint_auth_methods_supported":["none"]}}"#
            )),
            "/as/register" => {
                Answer::new(201, "Content-Type: application/json\r\n", r#"{"client_id":"dcr-1"}"#)
            }
            "/as/token" => self.token(&form(&seen.body)),
            "/mcp" => self.guarded(seen, base),
            _ => Answer::empty(404),
        }
    }

    fn token(&self, form: &[(String, String)]) -> Answer {
        let get =
            |name: &str| form.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        if self.habits.lock().unwrap().parrot {
            let all: Vec<_> = form.iter().map(|(_, value)| value.as_str()).collect();
            let body =
                format!(r#"{{"error":"invalid_request","error_description":"{}"}}"#, all.join(" "));
            return Answer::new(400, "Content-Type: application/json\r\n", &body);
        }
        match get("grant_type") {
            Some("authorization_code") => self.grant(
                &get("code").unwrap().strip_prefix("code-s3cr3t.").unwrap().replace('+', " "),
            ),
            _ => self.grant("read"),
        }
    }

    fn guarded(&self, seen: &Seen, base: &str) -> Answer {
        let token = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let good = self.good.lock().unwrap();
        let scopes =
            good.iter().find(|(own, _)| Some(own.as_str()) == token).map(|(_, scopes)| scopes);
        let metadata =
            format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
        let Some(scopes) = scopes else {
            let head = format!("WWW-Authenticate: Bearer scope=\"read\", {metadata}\r\n");
            return Answer::new(401, &head, "");
        };
        let needed =
            match seen.body.split("\"name\":\"").nth(1).and_then(|rest| rest.split('"').next()) {
                Some("write") => "write",
                Some("never") => "admin",
                _ => "read",
            };
        if !scopes.split(' ').any(|scope| scope == needed) {
            let head = format!(
                "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"{needed}\", {metadata}\r\n"
            );
            return Answer::new(403, &head, "");
        }
        match seen.method().as_deref() {
            Some("tools/list") => Answer::json(&seen.result(
                r#"{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"write","inputSchema":{"type":"object"}},{"name":"never","inputSchema":{"type":"object"}}]}"#,
            )),
            _ => modern(seen),
        }
    }
}

fn form(body: &str) -> Vec<(String, String)> {
    let pairs = body.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A person who consents at once, to everything but `admin`.
struct Consenting(Arc<Mutex<Vec<String>>>);

impl std::fmt::Debug for Consenting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Consenting")
    }
}

impl SignInPrompt for Consenting {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:9/callback".to_owned()
    }

    fn answer<'a>(&'a self, sign_in: &'a SignIn) -> Granting<'a, Secret<String>> {
        let page = sign_in.url.expose();
        self.0.lock().unwrap().push(page.clone());
        let parameters = form(page.split_once('?').unwrap().1);
        let get = |name: &str| {
            let found = parameters.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let (scope, state) = (get("scope"), get("state"));
        Box::pin(async move {
            let granted: Vec<_> = scope.split('+').filter(|scope| *scope != "admin").collect();
            let answer = format!("code=code-s3cr3t.{}&state={state}", granted.join("+"));
            Ok::<_, GrantError>(Secret::new(answer))
        })
    }
}

struct Setting {
    web: Web,
    state: Arc<State>,
    store: TempDir,
    pages: Arc<Mutex<Vec<String>>>,
}

impl Setting {
    async fn new() -> Self {
        let state = Arc::new(State::default());
        let web = {
            let state = Arc::clone(&state);
            Web::start(move |seen| {
                let base = format!("http://{}", seen.header("host").unwrap());
                Some(state.answer(seen, &base))
            })
            .await
        };
        Self { web, state, store: tempfile::tempdir().unwrap(), pages: Arc::default() }
    }

    fn vault(&self) -> Vault {
        Vault::new(Arc::new(FileStore::new(self.store.path().join("credentials"))))
    }

    async fn endpoint(&self, attended: bool) -> HttpEndpoint {
        let server = EndpointUrl::parse(&self.web.url()).unwrap();
        let network = OAuthNetwork::new(HttpClient::default(), server.clone());
        let settings = OAuthSettings::new(server, "plenipo login web");
        let prompt = Arc::new(Consenting(Arc::clone(&self.pages)));
        let grantor: Option<Box<dyn Grantor>> =
            if attended { Some(Box::new(PersonGrantor::new(prompt))) } else { None };
        let authorizer =
            OAuthAuthorizer::new(settings, network, self.vault(), grantor).await.unwrap();
        let mut endpoint = self.web.endpoint();
        endpoint.authorizer(Arc::new(authorizer) as Arc<dyn Authorizer>);
        endpoint
    }

    async fn connect(&self, attended: bool) -> Result<Connection, ConnectError> {
        self.web.connect_to(&self.endpoint(attended).await).await
    }

    /// The scopes each page asked for.
    fn asked(&self) -> Vec<String> {
        let pages = self.pages.lock().unwrap();
        let scope = |page: &String| {
            let parameters = form(page.split_once('?').unwrap().1);
            parameters.into_iter().find(|(name, _)| name == "scope").unwrap().1
        };
        pages.iter().map(scope).collect()
    }

    fn count(&self, path: &str) -> usize {
        self.web.requests().iter().filter(|seen| seen.path == path).count()
    }

    fn grants(&self, kind: &str) -> usize {
        let wanted = format!("grant_type={kind}");
        self.web
            .requests()
            .iter()
            .filter(|seen| seen.path == "/as/token" && seen.body.contains(&wanted))
            .count()
    }
}

#[tokio::test]
async fn a_challenge_leads_to_a_sign_in_and_the_next_connection_to_none() {
    let setting = Setting::new().await;
    let connection = setting.connect(true).await.unwrap();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    assert_eq!(setting.asked(), ["read"]);
    drop(connection);
    let connection = setting.connect(false).await.unwrap();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    assert_eq!(setting.asked().len(), 1, "nobody is asked twice");
    assert_eq!(setting.count("/as/register"), 1);
    let records = setting.vault().records().unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].key.resource.as_str(), setting.web.url());
}

#[tokio::test]
async fn without_a_sign_in_the_error_says_how() {
    let setting = Setting::new().await;
    let error = setting.connect(false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert_eq!(error.hint().as_deref(), Some("run `plenipo login web`"));
    assert_eq!(setting.count("/as/register"), 0, "nothing is registered");
}

#[tokio::test]
async fn bearer_never_leaves_origin() {
    let elsewhere = Web::modern(|_| None).await;
    let setting = Setting::new().await;
    let connection = setting.connect(true).await.unwrap();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    // Only the server got it, in the header and nowhere else.
    let mut paths = BTreeSet::new();
    for seen in setting.web.requests() {
        if seen.header("authorization").is_some() {
            paths.insert(seen.path.clone());
        }
        assert!(!seen.path.contains("s3cr3t"), "{}", seen.path);
        let body = if seen.path == "/as/token" { "" } else { &seen.body };
        assert!(!body.contains("s3cr3t"), "{body}");
    }
    assert_eq!(paths, BTreeSet::from(["/mcp".to_owned()]));

    // A server that redirects to another origin does not take it there.
    let to = elsewhere.url();
    let redirecting = Web::start(move |_| Some(Answer::redirect(307, &to))).await;
    let server = EndpointUrl::parse(&redirecting.url()).unwrap();
    let network = OAuthNetwork::new(HttpClient::default(), server.clone());
    let mut record = setting.vault().records().unwrap().remove(0);
    record.key.resource = plenipo_oauth::ResourceId::parse(&redirecting.url()).unwrap();
    setting.vault().sign_in(&record.key, record.grant.unwrap()).unwrap();
    let settings = OAuthSettings::new(server, "plenipo login web");
    let authorizer = OAuthAuthorizer::new(settings, network, setting.vault(), None).await.unwrap();
    let mut endpoint = redirecting.endpoint();
    endpoint.authorizer(Arc::new(authorizer) as Arc<dyn Authorizer>);
    redirecting.connect_to(&endpoint).await.unwrap_err();
    let sent = redirecting.requests();
    assert!(
        sent[0].header("authorization").is_some(),
        "the control: it was sent to its own origin"
    );
    assert!(elsewhere.requests().is_empty(), "nothing went elsewhere");

    // A credential of one server is none of another's.
    let other = Web::modern(|_| None).await;
    let server = EndpointUrl::parse(&other.url()).unwrap();
    let network = OAuthNetwork::new(HttpClient::default(), server.clone());
    let settings = OAuthSettings::new(server, "plenipo login other");
    let authorizer = OAuthAuthorizer::new(settings, network, setting.vault(), None).await.unwrap();
    let mut endpoint = other.endpoint();
    endpoint.authorizer(Arc::new(authorizer) as Arc<dyn Authorizer>);
    other.connect_to(&endpoint).await.unwrap();
    assert!(other.requests().iter().all(|seen| seen.header("authorization").is_none()));
}

#[tokio::test]
async fn a_refused_token_is_refreshed_once_for_all_calls() {
    let setting = Setting::new().await;
    let connection = setting.connect(true).await.unwrap();
    connection.catalog().await.unwrap();
    setting.state.revoke();
    let calls = [(); 8].map(|()| call(&connection, "read", "{}"));
    let [a, b, c, d, e, f, g, h] = calls;
    let (a, b, c, d, e, f, g, h) = tokio::join!(a, b, c, d, e, f, g, h);
    for outcome in [a, b, c, d, e, f, g, h] {
        outcome.unwrap();
    }
    assert_eq!(setting.grants("refresh_token"), 1);
    assert_eq!(setting.asked().len(), 1, "nobody is asked");
}

#[tokio::test]
async fn without_a_refresh_token_a_refusal_asks_again() {
    let setting = Setting::new().await;
    setting.state.habits.lock().unwrap().no_refresh = true;
    let connection = setting.connect(true).await.unwrap();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    setting.state.revoke();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    assert_eq!(setting.asked(), ["read", "read"]);
    // Nobody there: at once an error that says what to do.
    let unattended = setting.connect(false).await.unwrap();
    setting.state.revoke();
    let error = call(&unattended, "read", "{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn, "{error}");
    assert_eq!(error.hint().as_deref(), Some("run `plenipo login web`"));
}

#[tokio::test]
async fn more_scopes_are_asked_for_beside_those_that_are_held() {
    let setting = Setting::new().await;
    let connection = setting.connect(true).await.unwrap();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    assert_eq!(said(&connection, "write", "{}").await, "hi");
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    assert_eq!(setting.asked(), ["read", "read+write"], "a sign-in, not a mere refresh");
    assert_eq!(setting.grants("refresh_token"), 0);
    // A scope that is never granted: not without end.
    let error = call(&connection, "never", "{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert!(error.to_string().contains("it needs the scope `admin`"), "{error}");
    assert!(setting.asked().len() <= 4, "{:?}", setting.asked());
    assert_eq!(said(&connection, "write", "{}").await, "hi");
}

/// What worked in between is no part of a loop: a host may run for long.
#[tokio::test]
async fn an_operation_that_went_through_can_ask_for_its_scopes_again() {
    let setting = Setting::new().await;
    let connection = setting.connect(true).await.unwrap();
    for _ in 0..4 {
        assert_eq!(said(&connection, "write", "{}").await, "hi");
        // A refreshed token has less than the one before.
        setting.state.revoke();
    }
    let more = setting.asked().iter().filter(|asked| *asked == "read+write").count();
    assert_eq!(more, 4, "{:?}", setting.asked());
}

#[tokio::test]
async fn without_a_person_missing_scopes_are_named_at_once() {
    let setting = Setting::new().await;
    drop(setting.connect(true).await.unwrap());
    let connection = setting.connect(false).await.unwrap();
    let error = call(&connection, "write", "{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert!(
        error.to_string().contains("it needs the scope `write`, which was not granted"),
        "{error}"
    );
    assert_eq!(error.hint().as_deref(), Some("run `plenipo login web --scopes \"read write\"`"));
    assert_eq!(setting.asked().len(), 1);
}

#[tokio::test]
async fn an_expired_token_is_refreshed_before_it_is_sent() {
    let setting = Setting::new().await;
    setting.state.habits.lock().unwrap().expires_in = Some(0);
    let connection = setting.connect(true).await.unwrap();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    assert!(setting.grants("refresh_token") >= 1);
    assert_eq!(setting.asked().len(), 1);
    let refused = setting.web.requests().iter().filter(|seen| seen.path == "/mcp").count();
    assert!(refused < 12, "no loop of refreshes within one call: {refused}");
}

#[tokio::test]
async fn no_secret_is_in_any_error_event_or_debug_text() {
    let setting = Setting::new().await;
    setting.state.habits.lock().unwrap().parrot = true;
    let endpoint = setting.endpoint(true).await;
    let error = setting.web.connect_to(&endpoint).await.unwrap_err();
    let told = plenipo_connect::text::with_sources(&error);
    let mut shown = format!("{told} {error:?} {:?} {endpoint:?}", error.hint());
    assert!(shown.contains("invalid_request") && shown.contains("[redacted]"), "{shown}");
    let verifier = setting.web.requests().iter().rev().find_map(|seen| {
        let form = form(&seen.body);
        form.into_iter().find(|(name, _)| name == "code_verifier").map(|(_, value)| value)
    });
    let page = setting.pages.lock().unwrap()[0].clone();
    let state = form(page.split_once('?').unwrap().1);
    let state = state.into_iter().find(|(name, _)| name == "state").unwrap().1;
    setting.state.habits.lock().unwrap().parrot = false;
    let connection = setting.web.connect_to(&endpoint).await.unwrap();
    assert_eq!(said(&connection, "read", "{}").await, "hi");
    write!(shown, "{endpoint:?} {connection:?}").unwrap();
    for hidden in ["s3cr3t", &verifier.unwrap(), &state] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
    // The store is the only place, and nobody else may read it.
    let store = setting.store.path().join("credentials");
    let files = std::fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<_> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(texts.iter().any(|text| text.contains("at-s3cr3t")), "the control");
}
