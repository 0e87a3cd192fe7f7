//! A network that is a function.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, Response};
use plenipo_oauth::{
    AddressPolicy, Answer, EndpointUrl, Http, HttpClient, OAuthError, OutgoingRequest, SignIn,
    SignInOptions, SignedIn, run_blocking,
};
use plenipo_redact::Secret;
use serde_json::{Value, json};

pub(crate) const SERVER: &str = "https://mcp.example/mcp";
pub(crate) const ISSUER: &str = "https://as.example";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:7777/callback";
pub(crate) const PRM: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
pub(crate) const METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";

static SERVER_URL: LazyLock<EndpointUrl> = LazyLock::new(|| EndpointUrl::parse(SERVER).unwrap());

/// A request as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn form(&self) -> HashMap<String, String> {
        form_of(&self.body)
    }

    pub(crate) fn header(&self, name: &str) -> String {
        self.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }
}

pub(crate) fn form_of(text: &str) -> HashMap<String, String> {
    let mut form = HashMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        assert!(form.insert(decoded(name), decoded(value)).is_none(), "{name} twice in {text}");
    }
    form
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let hex = std::str::from_utf8(&rest[..2]).unwrap();
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
                rest = &rest[2..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).unwrap()
}

type Handler = Box<dyn Fn(&Seen) -> Response<Vec<u8>> + Send + Sync>;

/// Answers 404 wherever nothing was published.
pub(crate) struct Fake {
    routes: HashMap<String, Handler>,
    seen: Mutex<Vec<Seen>>,
    now: Mutex<SystemTime>,
}

impl Default for Fake {
    fn default() -> Self {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        Self { routes: HashMap::new(), seen: Mutex::default(), now: Mutex::new(now) }
    }
}

impl HttpClient for Fake {
    fn send(&self, request: OutgoingRequest) -> Answer<'_> {
        assert!(!format!("{request:?}").contains("s3cr3t"), "a request shows a secret");
        let (head, body) = request.message.into_parts();
        let seen = Seen {
            method: head.method,
            url: head.uri.to_string(),
            headers: head.headers,
            body: String::from_utf8(body.into_exposed()).unwrap(),
        };
        let url = seen.url.split('?').next().unwrap();
        let response = match self.routes.get(url) {
            Some(handler) => handler(&seen),
            None => Response::builder().status(404).body(Vec::new()).unwrap(),
        };
        self.seen.lock().unwrap().push(seen);
        Box::pin(async { Ok(response.map(Secret::new)) })
    }

    fn now(&self) -> SystemTime {
        *self.now.lock().unwrap()
    }
}

impl Fake {
    /// A server and an authorization server that do everything right.
    pub(crate) fn sound() -> Self {
        Self::default()
            .publish(PRM, prm())
            .publish(METADATA, metadata())
            .on("https://as.example/register", |_| {
                json_response(201, &json!({"client_id": "dcr-1", "client_secret": null}))
            })
            .on("https://as.example/token", |_| {
                json_response(
                    200,
                    &json!({"access_token": "at-s3cr3t", "token_type": "Bearer",
                    "expires_in": 3600, "refresh_token": "rt-s3cr3t"}),
                )
            })
    }

    pub(crate) fn publish(self, url: &str, document: Value) -> Self {
        self.on(url, move |_| json_response(200, &document))
    }

    pub(crate) fn on(
        mut self,
        url: &str,
        handler: impl Fn(&Seen) -> Response<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.routes.insert(url.to_owned(), Box::new(handler));
        self
    }

    pub(crate) fn http(&self) -> Http<'_> {
        Http::new(self, AddressPolicy::PUBLIC)
    }

    pub(crate) fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.url).collect()
    }

    pub(crate) fn posts(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method == Method::POST).collect()
    }

    /// Begins a sign-in to [`SERVER`] with defaults.
    pub(crate) fn begin(&self) -> Result<SignIn, OAuthError> {
        self.begin_with(|_| {})
    }

    pub(crate) fn begin_with<'a>(
        &self,
        change: impl FnOnce(&mut SignInOptions<'a>),
    ) -> Result<SignIn, OAuthError> {
        let mut options = SignInOptions::new(&SERVER_URL, REDIRECT);
        change(&mut options);
        run_blocking(SignIn::begin(&self.http(), &options)).unwrap()
    }

    /// Finishes a sign-in as a person does who consents at once.
    pub(crate) fn finish(&self, sign_in: SignIn) -> Result<SignedIn, OAuthError> {
        let state = query(&sign_in)["state"].clone();
        let answer = format!("{REDIRECT}?code=code-s3cr3t&state={state}");
        run_blocking(sign_in.finish(&self.http(), &answer)).unwrap()
    }
}

/// The parameters of the page to open.
pub(crate) fn query(sign_in: &SignIn) -> HashMap<String, String> {
    form_of(sign_in.url.expose().split_once('?').unwrap().1)
}

pub(crate) fn prm() -> Value {
    json!({"resource": SERVER, "authorization_servers": [ISSUER]})
}

pub(crate) fn metadata() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://as.example/authorize",
        "token_endpoint": "https://as.example/token",
        "registration_endpoint": "https://as.example/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": null,
    })
}

/// The sound metadata with some members changed; `null` removes one.
pub(crate) fn metadata_with(changes: Value) -> Value {
    let mut document = metadata();
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

pub(crate) fn json_response(status: u16, document: &Value) -> Response<Vec<u8>> {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(document.to_string().into_bytes())
        .unwrap()
}

pub(crate) fn raw(status: u16, media_type: &str, body: &str) -> Response<Vec<u8>> {
    Response::builder()
        .status(status)
        .header("content-type", media_type)
        .body(body.as_bytes().to_vec())
        .unwrap()
}
