//! An identity provider, an authorization server and a server that are functions. They do everything
//! right until they are told otherwise, and write down what they were asked.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, Response};
use plenipo_credentials::{FileStore, Store};
use plenipo_enterprise::{
    BearerClient, BearerOptions, EnterpriseError, Identities, IdentityGrant, IdentityProvider,
    ManagedServer, Network, Pin, Source,
};
use plenipo_oauth::{
    AddressPolicy, Answer, ClientCredential, ClientRegistration, EndpointUrl, HttpClient, Issuer,
    OutgoingRequest, ResourceId, Scopes, TransportFault,
};
use plenipo_redact::Secret;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::support::IDP;

pub(crate) const RAS: &str = "https://ras.example";
pub(crate) const MCP: &str = "https://mcp.example/mcp";
pub(crate) const NOW: u64 = 1_800_000_000;

pub(crate) const DISCOVERY: [&str; 4] = ["probe", "resource", "authorization", "provider"];

/// What the parties do otherwise. Objects are changes; `null` takes a member away.
#[derive(Clone, Default)]
pub(crate) struct Told {
    pub(crate) resource: Value,
    pub(crate) authorization: Value,
    pub(crate) provider: Value,
    pub(crate) header: Value,
    pub(crate) claims: Value,
    /// Of the answer to an exchange.
    pub(crate) exchanged: Value,
    /// Of the answer to a redemption.
    pub(crate) redeemed: Value,
    /// Instead of an answer, by what is asked; the next one first.
    pub(crate) instead: HashMap<&'static str, Vec<Instead>>,
    /// The assertion itself.
    pub(crate) assertion: Option<String>,
    /// Of the ID token of a refresh.
    pub(crate) id_token: Value,
    /// `Date` of every answer.
    pub(crate) date: Option<&'static str>,
    /// Refresh tokens are rotated.
    pub(crate) rotates: bool,
}

#[derive(Clone)]
pub(crate) enum Instead {
    Error(u16, &'static str),
    Status(u16),
    Redirect,
    Timeout,
    Unreachable,
    TooLong,
}

/// What was asked, with which form and headers.
type Asked = (String, HashMap<String, String>, HeaderMap);
type Hook = Box<dyn Fn(&str) + Send + Sync>;

pub(crate) struct Parties {
    told: Mutex<Told>,
    log: Mutex<Vec<String>>,
    pub(crate) forms: Mutex<Vec<Asked>>,
    now: Mutex<SystemTime>,
    key: EcdsaKeyPair,
    redeemed: Mutex<BTreeSet<String>>,
    counter: Mutex<u64>,
    hook: Mutex<Option<Hook>>,
}

impl Parties {
    pub(crate) fn new() -> Arc<Self> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Arc::new(Self {
            told: Mutex::default(),
            log: Mutex::default(),
            forms: Mutex::default(),
            now: Mutex::new(UNIX_EPOCH + Duration::from_secs(NOW)),
            key,
            redeemed: Mutex::default(),
            counter: Mutex::default(),
            hook: Mutex::default(),
        })
    }

    pub(crate) fn tell(&self, tell: impl FnOnce(&mut Told)) {
        tell(&mut self.told.lock().unwrap());
    }

    pub(crate) fn instead(&self, what: &'static str, instead: Instead) {
        self.tell(|told| told.instead.entry(what).or_default().push(instead));
    }

    /// Called with what is asked, before it is answered.
    pub(crate) fn hook(&self, hook: impl Fn(&str) + Send + Sync + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.log.lock().unwrap().clear();
    }

    pub(crate) fn pass(&self, time: Duration) {
        *self.now.lock().unwrap() += time;
    }

    pub(crate) fn time(&self) -> SystemTime {
        *self.now.lock().unwrap()
    }

    fn number(&self) -> u64 {
        let mut counter = self.counter.lock().unwrap();
        *counter += 1;
        *counter
    }

    fn seconds(&self) -> u64 {
        self.time().duration_since(UNIX_EPOCH).unwrap().as_secs()
    }

    pub(crate) fn jwt(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(header), part(claims));
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// An ID token of now, with changes.
    pub(crate) fn id_token(&self, changes: &Value) -> String {
        let now = self.seconds();
        let claims = json!({"iss": IDP, "sub": "ada", "aud": "plenipo", "iat": now,
            "exp": now + 600, "email": "ada@example.com"});
        self.jwt(&json!({"alg": "ES256", "kid": "k"}), &changed(claims, changes))
    }

    fn keys(&self) -> Value {
        let point = self.key.public_key().as_ref();
        json!({"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "kid": "k",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..])}]})
    }

    fn answer(&self, what: &str, told: &Told, seen: &Seen) -> (u16, Value) {
        let idp = |path: &str| format!("{IDP}{path}");
        let document = match what {
            "resource" => {
                changed(json!({"resource": MCP, "authorization_servers": [RAS]}), &told.resource)
            }
            "authorization" => changed(
                json!({"issuer": RAS, "token_endpoint": "https://ras.example/token",
                    "grant_types_supported": ["urn:ietf:params:oauth:grant-type:jwt-bearer",
                        "urn:ietf:params:oauth:grant-type:jwt-dpop"],
                    "authorization_grant_profiles_supported":
                        ["urn:ietf:params:oauth:grant-profile:id-jag"]}),
                &told.authorization,
            ),
            "provider" => changed(
                json!({"issuer": IDP, "token_endpoint": idp("/token"), "jwks_uri": idp("/keys"),
                    "authorization_endpoint": idp("/authorize"),
                    "revocation_endpoint": idp("/revoke"),
                    "code_challenge_methods_supported": ["S256"]}),
                &told.provider,
            ),
            "keys" => self.keys(),
            "revoke" => json!({}),
            "exchange" => return self.exchange(told, seen),
            "redeem" => return self.redeem(told, seen),
            "refresh" | "code" => {
                let number = self.number();
                let rotated = told.rotates || what == "code";
                let mut answer = json!({"access_token": format!("idp-s3cr3t-{number}"),
                    "token_type": "Bearer", "id_token": self.id_token(&told.id_token)});
                if rotated {
                    answer["refresh_token"] = json!(format!("rt-s3cr3t-{number}"));
                }
                answer
            }
            other => panic!("{other}"),
        };
        (200, document)
    }

    fn exchange(&self, told: &Told, seen: &Seen) -> (u16, Value) {
        let form = &seen.form;
        if form["requested_token_type"] == "urn:ietf:params:oauth:token-type:refresh_token" {
            assert_eq!(form["subject_token_type"], "urn:ietf:params:oauth:token-type:saml2");
            return (
                200,
                json!({"access_token": "rt-s3cr3t-saml", "token_type": "N_A",
                "issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}),
            );
        }
        assert_eq!(form["requested_token_type"], "urn:ietf:params:oauth:token-type:id-jag");
        let now = self.seconds();
        let mut claims = json!({"iss": IDP, "sub": "ada", "aud": form["audience"],
            "client_id": "plenipo-crm", "jti": format!("jti-{}", self.number()), "iat": now,
            "exp": now + 300, "resource": form["resource"]});
        if let Some(scope) = form.get("scope") {
            claims["scope"] = json!(scope);
        }
        if let Some(proof) = seen.headers.get("dpop") {
            claims["cnf"] = json!({"jkt": thumbprint(proof.to_str().unwrap())});
        }
        let header = json!({"alg": "ES256", "typ": "oauth-id-jag+jwt", "kid": "k"});
        let assertion = self.jwt(&changed(header, &told.header), &changed(claims, &told.claims));
        let answer = json!({
            "access_token": told.assertion.clone().unwrap_or(assertion), "token_type": "N_A",
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "expires_in": 300});
        (200, changed(answer, &told.exchanged))
    }

    fn redeem(&self, told: &Told, seen: &Seen) -> (u16, Value) {
        let assertion = seen.form["assertion"].clone();
        assert!(!seen.form.contains_key("scope") && !seen.form.contains_key("resource"));
        if !self.redeemed.lock().unwrap().insert(assertion) {
            panic!("an assertion is redeemed twice");
        }
        let dpop = seen.form["grant_type"].ends_with("jwt-dpop");
        assert_eq!(dpop, seen.headers.contains_key("dpop"));
        let kind = if dpop { "DPoP" } else { "Bearer" };
        let answer = json!({"access_token": format!("at-s3cr3t-{}", self.number()),
            "token_type": kind, "expires_in": 3600});
        (200, changed(answer, &told.redeemed))
    }
}

struct Seen {
    form: HashMap<String, String>,
    headers: HeaderMap,
}

impl HttpClient for Parties {
    fn send(&self, request: OutgoingRequest) -> Answer<'_> {
        assert!(!format!("{request:?}").contains("s3cr3t"), "a request shows a secret");
        let (head, body) = request.message.into_parts();
        let body = String::from_utf8(body.into_exposed()).unwrap();
        let url = head.uri.to_string();
        let form = match head.headers.get("content-type") {
            Some(kind) if kind == "application/x-www-form-urlencoded" => form_of(&body),
            _ => HashMap::new(),
        };
        let grant = form.get("grant_type").map(String::as_str).unwrap_or_default();
        let what = match (url.as_str(), grant) {
            (MCP, _) => "probe",
            ("https://mcp.example/prm", _) => "resource",
            ("https://ras.example/.well-known/oauth-authorization-server", _) => "authorization",
            ("https://idp.example/.well-known/oauth-authorization-server", _) => "provider",
            ("https://idp.example/keys", _) => "keys",
            ("https://idp.example/revoke", _) => "revoke",
            ("https://ras.example/token", _) => "redeem",
            ("https://idp.example/token", "refresh_token") => "refresh",
            ("https://idp.example/token", "authorization_code") => "code",
            ("https://idp.example/token", _) => "exchange",
            other => panic!("{other:?}"),
        };
        if let Some(hook) = &*self.hook.lock().unwrap() {
            hook(what);
        }
        self.log.lock().unwrap().push(what.to_owned());
        let seen = Seen { form: form.clone(), headers: head.headers.clone() };
        self.forms.lock().unwrap().push((what.to_owned(), form, head.headers));
        let mut told = self.told.lock().unwrap();
        let instead = told.instead.get_mut(what).filter(|next| !next.is_empty());
        let response = match instead.map(|next| next.remove(0)) {
            Some(Instead::Error(status, code)) => {
                let text = "<b>s3cr3t text of a peer</b>";
                Ok(respond(status, &json!({"error": code, "error_description": text})))
            }
            Some(Instead::Status(status)) => Ok(respond(status, &json!({}))),
            Some(Instead::Redirect) => Ok(Response::builder()
                .status(307)
                .header("location", "https://evil.example/")
                .body(Vec::new())
                .unwrap()),
            Some(Instead::Timeout) => Err(TransportFault::TimedOut),
            Some(Instead::Unreachable) => Err(TransportFault::Broken("s3cr3t".into())),
            Some(Instead::TooLong) => Err(TransportFault::TooLarge { limit: 1 }),
            None if what == "probe" => Ok(Response::builder()
                .status(401)
                .header("www-authenticate", "Bearer resource_metadata=\"https://mcp.example/prm\"")
                .body(Vec::new())
                .unwrap()),
            None => {
                let told = told.clone();
                let (status, document) = self.answer(what, &told, &seen);
                Ok(respond(status, &document))
            }
        };
        let date = told.date;
        Box::pin(async move {
            let mut response = response?;
            if let Some(date) = date {
                response.headers_mut().insert("date", date.parse().unwrap());
            }
            Ok(response.map(Secret::new))
        })
    }

    fn now(&self) -> SystemTime {
        self.time()
    }
}

fn respond(status: u16, document: &Value) -> Response<Vec<u8>> {
    let builder = Response::builder().status(status).header("content-type", "application/json");
    builder.body(document.to_string().into_bytes()).unwrap()
}

/// RFC 7638, of the key in a proof's header.
fn thumbprint(proof: &str) -> String {
    let header = URL_SAFE_NO_PAD.decode(proof.split('.').next().unwrap()).unwrap();
    let jwk = serde_json::from_slice::<Value>(&header).unwrap()["jwk"].clone();
    let digest = ring::digest::digest(&ring::digest::SHA256, jwk.to_string().as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

fn changed(mut base: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(base.as_object_mut().unwrap().remove(name)),
            value => base[name] = value.clone(),
        }
    }
    base
}

fn form_of(text: &str) -> HashMap<String, String> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first == b'%' {
                let hex = std::str::from_utf8(&rest[..2]).unwrap();
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
                rest = &rest[2..];
            } else {
                bytes.push(*first);
            }
        }
        String::from_utf8(bytes).unwrap()
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

/// A person who is signed in, and what a connection needs.
pub(crate) struct Company {
    pub(crate) parties: Arc<Parties>,
    pub(crate) identities: Identities,
    pub(crate) directory: tempfile::TempDir,
}

impl Company {
    pub(crate) fn new() -> Self {
        Self::with_store(|path| Arc::new(FileStore::new(path)))
    }

    pub(crate) fn with_store(store: impl FnOnce(std::path::PathBuf) -> Arc<dyn Store>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let identities = Identities::new(store(directory.path().join("credentials")));
        Self { parties: Parties::new(), identities, directory }
    }

    /// A sign-in with a refresh token and an ID token.
    pub(crate) fn grant(&self) -> IdentityGrant {
        let mut grant = IdentityGrant::new(self.parties.time());
        grant.refresh_token = Some(Secret::new("rt-s3cr3t-0".to_owned()));
        grant.id_token = Some(Secret::new(self.parties.id_token(&json!({}))));
        grant.id_token_expires_at = Some(self.parties.time() + Duration::from_secs(600));
        grant
    }

    pub(crate) fn sign_in(&self, source: Source, grant: IdentityGrant) -> Pin {
        let issuer = Issuer::parse(IDP).unwrap();
        let begun = self.identities.begin(source, &issuer, "plenipo").unwrap();
        self.identities.sign_in(begun, "ada", grant).unwrap()
    }

    pub(crate) fn signed_in() -> Self {
        let company = Self::new();
        company.sign_in(Source::Enterprise, company.grant());
        company
    }

    pub(crate) fn options(&self) -> BearerOptions {
        let issuer = Issuer::parse(IDP).unwrap();
        let client = |id: &str| ClientRegistration::configured(id, ClientCredential::None);
        let provider = IdentityProvider::new(issuer, client("plenipo"));
        let mut server =
            ManagedServer::new(EndpointUrl::parse(MCP).unwrap(), client("plenipo-crm"));
        server.resource = Some(ResourceId::parse(MCP).unwrap());
        server.issuer = Some(Issuer::parse(RAS).unwrap());
        server.scopes = Some(Scopes::parse("crm.read crm.write").unwrap());
        let network = Network::new(Arc::clone(&self.parties) as Arc<_>, AddressPolicy::PUBLIC);
        let networks = (network.clone(), network);
        let mut options = BearerOptions::new(provider, server, self.identities.clone(), networks);
        options.pause = Duration::ZERO;
        options
    }

    pub(crate) fn open(&self) -> Result<BearerClient, EnterpriseError> {
        BearerClient::open(self.options(), None)
    }

    pub(crate) async fn token(&self) -> Result<String, EnterpriseError> {
        let bearer = self.open()?.token(MCP).await?;
        Ok(bearer.value.expose().clone())
    }
}
