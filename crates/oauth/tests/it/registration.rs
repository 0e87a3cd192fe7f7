//! How an authorization server comes to know us.

use plenipo_oauth::{
    AuthenticationMethod, ClientCredential, ClientRegistration, ErrorKind, OAuthError,
    RegistrationSource,
};
use plenipo_redact::Secret;
use serde_json::{Value, json};

use crate::fake::{Fake, METADATA, REDIRECT, json_response, metadata_with, query};

const DOCUMENT: &str = "https://plenipo.example/client.json";

#[test]
fn registration_order() {
    let all = metadata_with(json!({"client_id_metadata_document_supported": true}));
    let no_documents = metadata_with(json!({"client_id_metadata_document_supported": false}));
    let nothing = metadata_with(json!({"registration_endpoint": null}));
    let configured = ClientRegistration::configured("pre-1", ClientCredential::None);

    let network = Fake::sound().publish(METADATA, all.clone());
    let page = query(
        &network
            .begin_with(|options| {
                options.configured = Some(&configured);
                options.metadata_document = Some(DOCUMENT);
            })
            .unwrap(),
    );
    assert_eq!(page["client_id"], "pre-1");
    assert!(network.posts().is_empty(), "a configured id never registers");

    let network = Fake::sound().publish(METADATA, all);
    let sign_in = network.begin_with(|options| options.metadata_document = Some(DOCUMENT)).unwrap();
    assert_eq!(query(&sign_in)["client_id"], DOCUMENT);
    assert_eq!(sign_in.prepared.endpoint.client.source, RegistrationSource::MetadataDocument);
    assert!(network.posts().is_empty());

    let network = Fake::sound().publish(METADATA, no_documents);
    let page =
        query(&network.begin_with(|options| options.metadata_document = Some(DOCUMENT)).unwrap());
    assert_eq!(page["client_id"], "dcr-1");

    let network = Fake::sound().publish(METADATA, nothing);
    let error =
        network.begin_with(|options| options.metadata_document = Some(DOCUMENT)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.hint().unwrap().contains("oauth.client_id"));
    assert!(network.posts().is_empty());
}

fn registered(metadata: Value, response: Value) -> (Value, Result<ClientRegistration, OAuthError>) {
    let network = Fake::sound()
        .publish(METADATA, metadata)
        .on("https://as.example/register", move |_| json_response(201, &response));
    let client = network.begin().map(|sign_in| sign_in.prepared.endpoint.client);
    let posts = network.posts();
    assert_eq!(posts.len(), 1);
    assert_eq!(posts[0].header("content-type"), "application/json");
    (serde_json::from_str(&posts[0].body).unwrap(), client)
}

#[test]
fn dcr_application_type() {
    let (sent, client) = registered(metadata_with(json!({})), json!({"client_id": "c"}));
    assert_eq!(
        sent,
        json!({
            "client_name": "Plenipo",
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        })
    );
    let client = client.unwrap();
    assert_eq!(client.client_id, "c");
    assert_eq!(client.redirect_uris, [REDIRECT]);
    assert_eq!(client.issuer.unwrap().as_str(), "https://as.example");
}

#[test]
fn a_registration_takes_the_method_that_the_server_has() {
    for (offered, expected) in [
        (json!(["client_secret_basic", "client_secret_post"]), "client_secret_basic"),
        (json!(["client_secret_post"]), "client_secret_post"),
        (json!(["client_secret_basic", "none"]), "none"),
        (json!(null), "none"),
    ] {
        let metadata = metadata_with(json!({"token_endpoint_auth_methods_supported": offered}));
        let response = json!({"client_id": "c", "client_secret": "x-s3cr3t", "token_endpoint_auth_method": expected});
        let (sent, client) = registered(metadata, response);
        assert_eq!(sent["token_endpoint_auth_method"], expected);
        let client = client.unwrap();
        assert_eq!(client.method, AuthenticationMethod::parse(expected));
        assert!(!format!("{client:?}").contains("s3cr3t"));
    }
}

#[test]
fn registrations_that_cannot_be_used() {
    for (response, expected) in [
        (json!({}), "lacks the member `client_id`"),
        (json!({"client_id": 7}), "`client_id` that is a number"),
        (json!({"client_id": "a\nb"}), "`client_id` that has a control character"),
        (
            json!({"client_id": "a", "token_endpoint_auth_method": "tls"}),
            "`token_endpoint_auth_method`",
        ),
        (json!({"client_id": "a", "client_secret": ["x"]}), "`client_secret`"),
        (
            json!({"client_id": "a", "client_secret_expires_at": "never"}),
            "`client_secret_expires_at`",
        ),
    ] {
        let shown = registered(metadata_with(json!({})), response).1.unwrap_err().to_string();
        assert!(shown.contains(expected) && shown.contains("registration response"), "{shown}");
    }
}

#[test]
fn a_refused_registration_says_what_to_do() {
    for (status, code, hint) in [
        (400, "invalid_redirect_uri", "oauth.callback_port"),
        (403, "access_denied", "oauth.client_id"),
    ] {
        let network = Fake::sound().on("https://as.example/register", move |_| {
            json_response(status, &json!({"error": code, "error_description": "no"}))
        });
        let error = network.begin().unwrap_err();
        assert!(error.to_string().contains(code), "{error}");
        assert!(error.hint().unwrap().contains(hint));
    }
}

#[test]
fn a_dynamic_client_is_used_again_only_where_it_fits() {
    let network = Fake::sound();
    let mut client = network.begin().unwrap().prepared.endpoint.client;
    let registered_again = |client: &ClientRegistration| {
        let network = Fake::sound();
        let registered = [client.clone()];
        network.begin_with(|options| options.registered = &registered).unwrap();
        !network.posts().is_empty()
    };
    assert!(!registered_again(&client));
    let mut other = client.clone();
    other.redirect_uris = vec!["http://127.0.0.1:1/callback".to_owned()];
    assert!(registered_again(&other), "another redirect URI");
    client.secret_expires_at = Some(std::time::SystemTime::UNIX_EPOCH);
    assert!(registered_again(&client), "an expired secret");
}

#[test]
fn an_endpoint_that_wants_what_the_client_has_not() {
    let metadata =
        metadata_with(json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}));
    let network = Fake::sound().publish(METADATA, metadata);
    let secret = ClientCredential::Secret(Secret::new("x-s3cr3t".to_owned()));
    let configured = ClientRegistration::configured("pre-1", secret);
    let sign_in = network.begin_with(|options| options.configured = Some(&configured)).unwrap();
    let error = network.finish(sign_in).unwrap_err();
    assert!(matches!(error, OAuthError::ClientAuthentication { .. }), "{error}");
    assert!(error.to_string().contains("private_key_jwt"));
}
