//! Credentials that are stored, and nobody to ask for others.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use plenipo_authorizer::oauth::{OAuthAuthorizer, OAuthNetwork, OAuthSettings};
use plenipo_authorizer::{
    Authorization, AuthorizeError, AuthorizeRequest, Authorizer, Challenge, ErrorKind, Operation,
    Verdict,
};
use plenipo_credentials::{CredentialKey, FileStore, Grant, Vault};
use plenipo_http::HttpClient;
use plenipo_oauth::{
    ClientCredential, ClientRegistration, EndpointUrl, Issuer, RegistrationSource, ResourceId,
    Scopes, TokenResponse, TokenType,
};
use plenipo_redact::Secret;
use tempfile::TempDir;

const SERVER: &str = "https://mcp.example/mcp";

struct Stored {
    vault: Vault,
    _place: TempDir,
}

impl Stored {
    fn nothing() -> Self {
        let place = tempfile::tempdir().unwrap();
        let vault = Vault::new(Arc::new(FileStore::new(place.path().join("credentials"))));
        Self { vault, _place: place }
    }

    /// Signed in as these people.
    fn of(people: &[&str]) -> Self {
        let stored = Self::nothing();
        for person in people {
            let issuer = Issuer::parse("https://as.example").unwrap();
            let resource = ResourceId::parse(SERVER).unwrap();
            let key = CredentialKey::new(issuer, resource, "client-1");
            let key = key.with_subject(Some((*person).to_owned()));
            let (none, source) = (ClientCredential::None, RegistrationSource::Dynamic);
            let client = ClientRegistration::new("client-1".to_owned(), none, source);
            let token = Secret::new(format!("at-s3cr3t-{person}"));
            let scopes = Scopes::parse("read").unwrap();
            let response = TokenResponse::new(token, TokenType::Bearer);
            let mut grant = Grant::new(client, response, Some(&scopes), SystemTime::now());
            grant.endpoints_assumed = true;
            stored.vault.sign_in(&key, grant).unwrap();
        }
        stored
    }

    fn authorizer(&self, account: Option<&str>) -> OAuthAuthorizer {
        let server = EndpointUrl::parse(SERVER).unwrap();
        let network = OAuthNetwork::new(HttpClient::default(), server.clone());
        let mut settings = OAuthSettings::new(server, "plenipo login web");
        settings.account = account.map(ToOwned::to_owned);
        OAuthAuthorizer::open(settings, network, self.vault.clone(), None).unwrap()
    }
}

async fn authorize(
    authorizer: &OAuthAuthorizer,
    url: &str,
) -> Result<Authorization, AuthorizeError> {
    let (url, body): (Uri, _) = (url.parse().unwrap(), Bytes::new());
    let operation = Operation::new("tools/call", Some("write"));
    authorizer.authorize(&AuthorizeRequest::new((&Method::POST, &url), &body, operation, 0)).await
}

/// What a refusal of the first attempt leads to.
async fn refused(
    authorizer: &OAuthAuthorizer,
    (status, challenge): (StatusCode, &'static str),
) -> Result<Verdict, AuthorizeError> {
    let (url, body): (Uri, _) = (SERVER.parse().unwrap(), Bytes::new());
    let operation = Operation::new("tools/call", Some("write"));
    let request = AuthorizeRequest::new((&Method::POST, &url), &body, operation, 0);
    let sent = authorizer.authorize(&request).await?;
    let mut headers = HeaderMap::new();
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    let challenge = Challenge::of(&request, (status, &headers), sent.generation);
    assert_eq!(challenge.attempt, 1);
    authorizer.challenged(&challenge).await
}

#[tokio::test]
async fn a_token_goes_to_its_own_origin_and_is_shown_nowhere() {
    let authorizer = Stored::of(&["ada"]).authorizer(None);
    for url in [SERVER, "https://mcp.example/elsewhere?x=1"] {
        let sent = authorize(&authorizer, url).await.unwrap();
        let value = sent.headers.get(header::AUTHORIZATION).unwrap();
        assert_eq!(value, "Bearer at-s3cr3t-ada");
        assert!(value.is_sensitive());
        assert!(!format!("{sent:?} {authorizer:?}").contains("s3cr3t"));
    }
    for url in ["https://mcp.example:8443/mcp", "http://mcp.example/mcp", "https://example/mcp"] {
        let error = authorize(&authorizer, url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{url}: {error}");
    }
    let pin = authorizer.pin().unwrap();
    assert!(pin.as_str().contains("ada") && !pin.as_str().contains("s3cr3t"), "{}", pin.as_str());
}

#[tokio::test]
async fn with_nothing_stored_a_request_goes_bare_and_its_refusal_names_the_sign_in() {
    let authorizer = Stored::nothing().authorizer(None);
    assert!(authorize(&authorizer, SERVER).await.unwrap().headers.is_empty());
    assert!(authorizer.pin().is_none());
    let error = refused(&authorizer, (StatusCode::UNAUTHORIZED, "Bearer")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SignIn);
    assert_eq!(error.hint().as_deref(), Some("run `plenipo login web`"));
    let verdict = refused(&authorizer, (StatusCode::FORBIDDEN, "Negotiate")).await.unwrap();
    assert_eq!(verdict, Verdict::Fail, "a 403 that says nothing of tokens stands");
}

#[tokio::test]
async fn missing_scopes_are_named_beside_those_that_are_held() {
    let authorizer = Stored::of(&["ada"]).authorizer(None);
    let challenge = r#"Bearer error="insufficient_scope", scope="write""#;
    let error = refused(&authorizer, (StatusCode::FORBIDDEN, challenge)).await.unwrap_err();
    assert_eq!(error.scopes().unwrap().to_string(), "read write");
    assert_eq!(error.to_string(), "it needs the scope `write`, which was not granted");
    assert_eq!(error.hint().unwrap(), "run `plenipo login web --scopes \"read write\"`");
}

#[tokio::test]
async fn of_several_people_none_is_chosen_unless_one_is_named() {
    let stored = Stored::of(&["ada", "bob"]);
    let authorizer = stored.authorizer(None);
    assert!(authorize(&authorizer, SERVER).await.unwrap().headers.is_empty());
    let error = refused(&authorizer, (StatusCode::UNAUTHORIZED, "Bearer")).await.unwrap_err();
    assert!(error.to_string().starts_with("several people are signed in"), "{error}");
    let authorizer = stored.authorizer(Some("bob"));
    let sent = authorize(&authorizer, SERVER).await.unwrap();
    assert_eq!(sent.headers.get(header::AUTHORIZATION).unwrap(), "Bearer at-s3cr3t-bob");
}
