//! Enterprise-managed authorization over the seam for credentials: server, authorization server and
//! identity provider on one loopback port, with real requests.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plenipo_connect::enterprise::{EnterpriseAuthorizer, networks};
use plenipo_connect::{ConnectError, Connection, ErrorKind, HttpClient, HttpEndpoint};
use plenipo_credentials::FileStore;
use plenipo_enterprise::{
    BearerClient, BearerOptions, EnterpriseError, Identities, IdentityGrant, IdentityProvider,
    ManagedServer, Source,
};
use plenipo_oauth::{ClientCredential, ClientRegistration, EndpointUrl, Issuer};
use plenipo_redact::Secret;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{call, said, until};
use crate::web::{Answer, Seen, Web, modern};

/// What the company's server does otherwise.
type Habit = fn(&Seen) -> Option<Answer>;

struct Company {
    web: Web,
    identities: Identities,
    habit: Arc<Mutex<Option<Habit>>>,
    _store: TempDir,
}

/// An assertion that nobody verifies: the authorization server is part of the test.
fn assertion(origin: &str, seen: &Seen) -> String {
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let header = json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"});
    let claims = json!({"iss": format!("{origin}/idp"), "aud": format!("{origin}/ras"),
        "sub": "ada", "client_id": "at-ras", "jti": seen.body.len().to_string(),
        "resource": format!("{origin}/mcp"), "iat": now, "exp": now + 300});
    format!("{}.{}.c2ln", part(header), part(claims))
}

fn answer(seen: &Seen) -> Answer {
    let origin = format!("http://{}", seen.header("host").unwrap());
    let json = |value: serde_json::Value| Answer::json(&value.to_string());
    match seen.path.as_str() {
        "/mcp" if seen.header("authorization") == Some("Bearer at-s3cr3t") => modern(seen),
        "/mcp" => Answer::new(401, "WWW-Authenticate: Bearer\r\n", ""),
        "/.well-known/oauth-protected-resource/mcp" => json(json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [format!("{origin}/ras")]})),
        path @ ("/.well-known/oauth-authorization-server/ras"
        | "/.well-known/oauth-authorization-server/idp") => {
            let issuer = path.rsplit('/').next().unwrap();
            json(json!({"issuer": format!("{origin}/{issuer}"),
                "token_endpoint": format!("{origin}/{issuer}/token")}))
        }
        "/idp/token" => json(json!({"access_token": assertion(&origin, seen), "token_type": "N_A",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"})),
        "/ras/token" => json(json!({"access_token": "at-s3cr3t", "token_type": "Bearer"})),
        _ => Answer::empty(404),
    }
}

impl Company {
    async fn start() -> Self {
        let habit: Arc<Mutex<Option<Habit>>> = Arc::default();
        let web = Web::start({
            let habit = Arc::clone(&habit);
            move |seen| {
                let habit = *habit.lock().unwrap();
                habit.and_then(|habit| habit(seen)).or_else(|| Some(answer(seen)))
            }
        })
        .await;
        let store = tempfile::tempdir().unwrap();
        let files = FileStore::new(store.path().join("credentials"));
        Self { web, identities: Identities::new(Arc::new(files)), habit, _store: store }
    }

    fn issuer(&self) -> Issuer {
        Issuer::parse(&format!("http://127.0.0.1:{}/idp", self.web.port)).unwrap()
    }

    fn sign_in(&self) {
        let mut grant = IdentityGrant::new(SystemTime::now());
        grant.refresh_token = Some(Secret::new("rt-s3cr3t".to_owned()));
        let begun = self.identities.begin(Source::Enterprise, &self.issuer(), "at-idp").unwrap();
        self.identities.sign_in(begun, "ada", grant).unwrap();
    }

    fn client(&self) -> Result<BearerClient, EnterpriseError> {
        let client = |id: &str| ClientRegistration::configured(id, ClientCredential::None);
        let url = EndpointUrl::parse(&self.web.url()).unwrap();
        let networks = networks(&HttpClient::default(), &self.issuer(), &url);
        let provider = IdentityProvider::new(self.issuer(), client("at-idp"));
        let server = ManagedServer::new(url, client("at-ras"));
        let mut options = BearerOptions::new(provider, server, self.identities.clone(), networks);
        options.watch = Duration::from_millis(20);
        BearerClient::open(options, None)
    }

    fn endpoint(&self, client: &BearerClient) -> HttpEndpoint {
        let mut endpoint = self.web.endpoint();
        endpoint.authorizer(Arc::new(EnterpriseAuthorizer::new(client.clone())));
        endpoint
    }

    async fn connect(&self) -> Result<(Connection, BearerClient), ConnectError> {
        self.sign_in();
        let client = self.client().unwrap();
        Ok((self.web.connect_to(&self.endpoint(&client)).await?, client))
    }

    fn behaves(&self, habit: Habit) {
        *self.habit.lock().unwrap() = Some(habit);
    }

    /// Calls of tools that arrived.
    fn calls(&self) -> usize {
        self.web.count("tools/call")
    }

    fn paths(&self) -> Vec<String> {
        self.web.requests().into_iter().map(|seen| seen.path).collect()
    }
}

fn text(error: &ConnectError) -> String {
    let text = plenipo_connect::text::with_sources(error);
    assert!(!text.contains("s3cr3t"), "{text}");
    text
}

#[tokio::test]
async fn ema_a_call_with_a_token_of_the_company() {
    let company = Company::start().await;
    let (connection, client) = company.connect().await.unwrap();
    assert_eq!(said(&connection, "hi", "{}").await, "hi");
    let pin = connection.capture(None).await;
    assert!(format!("{pin:?}").contains("enterprise http://127.0.0.1"), "{pin:?}");
    assert!(!format!("{pin:?} {client:?}").contains("s3cr3t"));
    let paths = company.paths();
    let expected = [
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server/ras",
        "/.well-known/oauth-authorization-server/idp",
        "/idp/token",
        "/ras/token",
        "/mcp",
    ];
    assert_eq!(paths[..7], expected);
    assert!(paths[7..].iter().all(|path| path == "/mcp"), "one exchange: {paths:?}");
    // Every request of the connection says so; the probe, which has no token yet, does not.
    for seen in company.web.requests().iter().filter(|seen| seen.path == "/mcp").skip(1) {
        let declared = "\"io.modelcontextprotocol/enterprise-managed-authorization\":{}";
        assert!(seen.body.contains(declared), "{}", seen.body);
    }
}

#[tokio::test]
async fn ema_a_call_is_never_replayed_after_a_401() {
    let company = Company::start().await;
    let (connection, client) = company.connect().await.unwrap();
    let before = company.web.requests().len();
    company.behaves(|seen| {
        let called = seen.method().as_deref() == Some("tools/call");
        called.then(|| Answer::new(401, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n", ""))
    });
    let error = call(&connection, "hi", "{}").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(text(&error).contains("token refused: the server refused"), "{}", text(&error));
    assert_eq!(company.calls(), 1);
    assert!(client.fresh().is_none(), "the refused token is dropped");
    let after: Vec<_> = company.paths().split_off(before);
    assert!(after.iter().all(|path| path == "/mcp"), "nobody else is asked: {after:?}");
}

#[tokio::test]
async fn ema_a_redirection_of_the_server_is_refused() {
    for to in ["/other", "/mcp?x=1", "http://localhost:1/mcp"] {
        let company = Company::start().await;
        let (connection, _client) = company.connect().await.unwrap();
        company.behaves(match to {
            "/other" => |seen| is_call(seen).then(|| Answer::redirect(307, "/other")),
            "/mcp?x=1" => |seen| is_call(seen).then(|| Answer::redirect(308, "/mcp?x=1")),
            _ => |seen| is_call(seen).then(|| Answer::redirect(307, "http://localhost:1/mcp")),
        });
        let error = call(&connection, "hi", "{}").await.unwrap_err();
        let text = text(&error);
        assert!(text.contains("outside the endpoint") || text.contains("another origin"), "{text}");
        assert_eq!(company.calls(), 1);
        assert_eq!(company.paths().last().unwrap(), "/mcp");
    }
}

fn is_call(seen: &Seen) -> bool {
    seen.method().as_deref() == Some("tools/call")
}

#[tokio::test]
async fn ema_a_sign_out_cancels_a_call_and_its_stream() {
    let company = Company::start().await;
    let (connection, client) = company.connect().await.unwrap();
    company.behaves(|seen| is_call(seen).then(|| Answer::stream(": wait\n\n").hold()));
    let calling = tokio::spawn(async move { call(&connection, "hi", "{}").await });
    until(|| company.calls() == 1).await;
    // Another process would do the same.
    let (identities, identity) = (company.identities.clone(), client.pin().identity.clone());
    tokio::task::spawn_blocking(move || identities.sign_out(&identity)).await.unwrap().unwrap();
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(text(&error).contains("authorization withdrawn"), "{}", text(&error));
    until(|| company.web.requests().iter().any(|seen| seen.verb == "CLOSED")).await;
}

#[tokio::test]
async fn ema_a_host_withdraws_a_connection() {
    let company = Company::start().await;
    let (connection, client) = company.connect().await.unwrap();
    company.behaves(|seen| is_call(seen).then(|| Answer::stream(": wait\n\n").hold()));
    let before = company.web.requests().len();
    let calling = tokio::spawn(async move {
        let first = call(&connection, "hi", "{}").await;
        (first, call(&connection, "hi", "{}").await)
    });
    until(|| company.calls() == 1).await;
    client.withdraw();
    let (first, second) = calling.await.unwrap();
    assert!(text(&first.unwrap_err()).contains("authorization withdrawn"));
    assert!(text(&second.unwrap_err()).contains("authorization withdrawn"));
    assert_eq!(company.calls(), 1, "nothing goes out any more");
    let after = company.paths().split_off(before);
    assert!(after.iter().all(|path| path == "/mcp"), "{after:?}");
}

#[tokio::test]
async fn ema_no_fall_back_to_a_sign_in_at_the_server() {
    let company = Company::start().await;
    assert!(company.client().is_err(), "nobody is signed in");
    assert!(company.web.requests().is_empty());
    company.behaves(|seen| {
        (seen.path == "/idp/token").then(|| {
            let head = "Content-Type: application/json\r\n";
            Answer::new(400, head, r#"{"error":"access_denied","error_description":"s3cr3t"}"#)
        })
    });
    company.sign_in();
    let client = company.client().unwrap();
    let error = company.web.connect_to(&company.endpoint(&client)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(text(&error).contains("policy refused"), "{}", text(&error));
    assert_eq!(error.hint().as_deref(), Some("ask the administrator for access"));
    assert_eq!(company.paths().last().unwrap(), "/idp/token");
}
