//! From a URL to tokens.

use http::Response;
use plenipo_oauth::{
    EndpointUrl, ErrorKind, Grant, Issuer, OAuthError, ResourceId, Scopes, TokenRequest,
    run_blocking,
};
use serde_json::json;

use crate::fake::{
    Fake, ISSUER, METADATA, PRM, REDIRECT, SERVER, json_response, metadata, metadata_with, prm,
    query,
};

#[test]
fn a_sign_in_makes_just_these_requests() {
    let network = Fake::sound();
    let signed_in = network.finish(network.begin().unwrap()).unwrap();
    assert_eq!(signed_in.token.access_token.expose(), "at-s3cr3t");
    assert_eq!(signed_in.resource.as_str(), SERVER);
    assert_eq!(
        network.urls(),
        [PRM, METADATA, "https://as.example/register", "https://as.example/token"]
    );
    let posts = network.posts();
    let form = posts[1].form();
    assert_eq!(form["grant_type"], "authorization_code");
    assert_eq!(form["code"], "code-s3cr3t");
    assert_eq!(form["redirect_uri"], REDIRECT);
    assert_eq!(form["client_id"], "dcr-1");
    assert_eq!(posts[1].header("accept"), "application/json");
}

#[test]
fn the_page_has_pkce_state_and_no_scope_unless_one_is_known() {
    let network = Fake::sound();
    let page = query(&network.begin().unwrap());
    assert_eq!(page["response_type"], "code");
    assert_eq!(page["code_challenge_method"], "S256");
    assert_eq!(page["code_challenge"].len(), 43);
    assert_eq!(page["state"].len(), 43);
    assert!(!page.contains_key("scope") && !page.contains_key("prompt"));
    let other = query(&network.begin().unwrap());
    assert_ne!(page["state"], other["state"]);
    assert_ne!(page["code_challenge"], other["code_challenge"]);

    let network = Fake::sound().publish(
        METADATA,
        metadata_with(json!({"scopes_supported": ["openid", "offline_access"]})),
    );
    let scopes = Scopes::parse("openid files:read offline_access").unwrap();
    let page = query(&network.begin_with(|options| options.scopes = Some(&scopes)).unwrap());
    assert_eq!(page["scope"], "openid files:read offline_access");
    assert_eq!(page["prompt"], "consent");
    assert_eq!(page["nonce"].len(), 43);
}

/// The verifier that is sent is the one whose hash was in the page.
#[test]
fn the_verifier_is_that_of_the_challenge() {
    use base64::Engine as _;
    let network = Fake::sound();
    let sign_in = network.begin().unwrap();
    let challenge = query(&sign_in)["code_challenge"].clone();
    network.finish(sign_in).unwrap();
    let verifier = network.posts()[1].form()["code_verifier"].clone();
    let hash = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    assert_eq!(engine.encode(hash), challenge);
}

#[test]
fn issuer_echo_exact() {
    for found in [
        "https://as.example/",
        "https://AS.example",
        "https://as.example:443",
        "https://evil.example",
        "https://as.example/tenant",
        "http://as.example",
    ] {
        let document = metadata_with(json!({"issuer": found}));
        let network = Fake::sound().publish(METADATA, document);
        let error = network.begin().unwrap_err();
        assert!(matches!(error, OAuthError::IssuerMismatch { .. }), "{found}: {error}");
        assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);
        assert!(error.to_string().contains(found) && error.to_string().contains(METADATA));
        assert_eq!(error.hint().is_some(), found == "https://as.example/", "{found}");
        assert!(network.posts().is_empty(), "nothing is registered");
        assert_eq!(network.urls().len(), 2, "no other address is tried");
    }
    Fake::sound().begin().unwrap();
}

#[test]
fn no_pkce_metadata_refused() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let document = metadata_with(json!({"code_challenge_methods_supported": methods}));
        let network = Fake::sound().publish(METADATA, document);
        let error = network.begin().unwrap_err();
        assert!(matches!(error, OAuthError::NoPkce { .. }), "{error}");
        assert!(network.posts().is_empty(), "nothing is registered");
    }
    let document = metadata_with(json!({"code_challenge_methods_supported": ["plain", "S256"]}));
    Fake::sound().publish(METADATA, document).begin().unwrap();
}

#[test]
fn resource_param_everywhere() {
    // As it is published, to the letter, though a URL type would write it otherwise.
    let spelled = "https://MCP.example:443/mcp";
    let network =
        Fake::sound().publish(PRM, json!({"resource": spelled, "authorization_servers": [ISSUER]}));
    let sign_in = network.begin().unwrap();
    assert_eq!(query(&sign_in)["resource"], spelled);
    let signed_in = network.finish(sign_in).unwrap();
    let refresh = signed_in.token.refresh_token.clone().unwrap();
    let resource = Some(signed_in.resource.clone());
    for grant in [
        Grant::RefreshToken(refresh.clone()),
        Grant::ClientCredentials,
        Grant::JwtBearer(refresh.clone()),
        Grant::DeviceCode(refresh),
    ] {
        let request = TokenRequest::new(grant, resource.clone());
        run_blocking(signed_in.endpoint.request(&network.http(), &request)).unwrap().unwrap();
    }
    let posts = network.posts();
    assert_eq!(posts.len(), 6);
    for post in &posts[1..] {
        assert_eq!(post.form()["resource"], spelled);
    }
}

#[test]
fn a_configured_resource_replaces_the_published_one() {
    let network = Fake::sound();
    let resource = ResourceId::parse("https://audience.example/api").unwrap();
    let sign_in = network.begin_with(|options| options.resource = Some(&resource)).unwrap();
    assert_eq!(query(&sign_in)["resource"], "https://audience.example/api");
}

#[test]
fn a_document_about_another_resource_ends_the_sign_in() {
    let document =
        json!({"resource": "https://evil.example/mcp", "authorization_servers": [ISSUER]});
    let network = Fake::sound().publish(PRM, document);
    let error = network.begin().unwrap_err();
    assert!(matches!(error, OAuthError::ResourceMismatch { .. }));
    assert!(error.to_string().contains("https://evil.example/mcp"), "{error}");
    assert_eq!(network.urls(), [PRM], "nobody else is asked");
}

#[test]
fn only_the_configured_issuer_is_asked() {
    let issuer = Issuer::parse("https://as.example/").unwrap();
    let network = Fake::sound();
    let error = network.begin_with(|options| options.issuer = Some(&issuer)).unwrap_err();
    assert!(matches!(error, OAuthError::IssuerNotListed { .. }), "{error}");
    assert_eq!(network.urls(), [PRM]);
    let other = "https://other.example";
    let document = json!({"resource": SERVER, "authorization_servers": [other, ISSUER]});
    let network = Fake::sound().publish(PRM, document);
    let issuer = Issuer::parse(ISSUER).unwrap();
    network.begin_with(|options| options.issuer = Some(&issuer)).unwrap();
    assert!(network.urls().iter().all(|url| !url.starts_with(other)));
}

#[test]
fn the_challenge_says_where_to_look_first() {
    let elsewhere = "https://mcp.example/elsewhere.json";
    let network = Fake::sound().publish(elsewhere, prm());
    let mut asked = plenipo_oauth::Asked::default();
    asked.resource_metadata = Some(elsewhere.to_owned());
    asked.scopes = Some(Scopes::parse("files:read").unwrap());
    let sign_in = network.begin_with(|options| options.asked = Some(&asked)).unwrap();
    assert_eq!(network.urls()[0], elsewhere);
    assert_eq!(query(&sign_in)["scope"], "files:read");
    asked.resource_metadata = Some("http://169.254.169.254/latest".to_owned());
    let network = Fake::sound();
    let error = network.begin_with(|options| options.asked = Some(&asked)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server's challenge names `http://169.254.169.254/latest` as `resource_metadata`, which is not \
         encrypted: only a loopback host may have http"
    );
    assert_eq!(error.kind(), ErrorKind::PeerMisbehaved, "no setting is wrong");
    asked.resource_metadata = Some("https://169.254.169.254/latest".to_owned());
    network.begin_with(|options| options.asked = Some(&asked)).unwrap_err();
    assert!(network.urls().is_empty(), "nothing was asked");
}

#[test]
fn a_server_from_before_resource_metadata() {
    let root = "https://mcp.example/.well-known/oauth-authorization-server";
    let mut document = metadata();
    document["issuer"] = json!("https://mcp.example");
    let network = Fake::sound().publish(PRM, json!(null)).publish(root, document);
    let network = network.on(PRM, |_| Response::builder().status(404).body(vec![]).unwrap());
    let sign_in = network.begin().unwrap();
    assert!(sign_in.url.expose().starts_with("https://as.example/authorize?"));
    assert_eq!(query(&sign_in)["resource"], SERVER);

    // Nothing published at all: the addresses of that revision, where the server asks for a token and
    // names no document. Nothing is sent to guessed addresses otherwise.
    let old = || {
        let register = |_: &_| json_response(201, &json!({"client_id": "old"}));
        Fake::default().on("https://mcp.example/register", register)
    };
    let mut asked = plenipo_oauth::Asked::default();
    for (refused, named, is_assumed) in
        [(true, None, true), (false, None, false), (true, Some(PRM.to_owned()), false)]
    {
        (asked.refused, asked.resource_metadata) = (refused, named);
        let network = old();
        let begun = network.begin_with(|options| options.asked = Some(&asked));
        assert_eq!(network.urls().iter().any(|url| url.ends_with("/register")), is_assumed);
        match begun {
            Ok(sign_in) => {
                assert!(sign_in.url.expose().starts_with("https://mcp.example/authorize?"));
            }
            Err(error) => assert!(matches!(error, OAuthError::Missing { .. }), "{error:?}"),
        }
    }
    // What is published and broken is no reason to assume anything.
    for broken in [json!({"resource": SERVER}), json!([]), json!({"resource": 1})] {
        let network = Fake::default().publish(PRM, broken.clone());
        assert!(network.begin().is_err(), "{broken}");
        assert_eq!(network.urls(), [PRM]);
    }
    let network =
        Fake::default().on(PRM, |_| Response::builder().status(503).body(vec![]).unwrap());
    assert_eq!(network.begin().unwrap_err().kind(), ErrorKind::Transient);
}

#[test]
fn as_migration() {
    let network = Fake::sound();
    let first = network.finish(network.begin().unwrap()).unwrap();
    let registered = [first.endpoint.client.clone()];
    // The same issuer: the client is used again.
    let again = network.begin_with(|options| options.registered = &registered).unwrap();
    assert_eq!(query(&again)["client_id"], "dcr-1");
    assert_eq!(network.posts().len(), 2, "registered once");

    // Another issuer: a new client, and never the old one's id.
    let moved = "https://new.example";
    let document = json!({
        "issuer": moved,
        "authorization_endpoint": "https://new.example/authorize",
        "token_endpoint": "https://new.example/token",
        "registration_endpoint": "https://new.example/register",
        "code_challenge_methods_supported": ["S256"],
    });
    let network = Fake::sound()
        .publish(PRM, json!({"resource": SERVER, "authorization_servers": [moved]}))
        .publish("https://new.example/.well-known/oauth-authorization-server", document)
        .on("https://new.example/register", |_| json_response(201, &json!({"client_id": "dcr-2"})));
    let sign_in = network.begin_with(|options| options.registered = &registered).unwrap();
    assert_eq!(query(&sign_in)["client_id"], "dcr-2");
    for seen in network.seen() {
        assert!(!seen.body.contains("dcr-1") && !seen.url.contains("dcr-1"), "{seen:?}");
    }
    // A client configured for another issuer is an error, not a reason to register.
    let mut configured = registered[0].clone();
    configured.source = plenipo_oauth::RegistrationSource::Configured;
    let error = network.begin_with(|options| options.configured = Some(&configured)).unwrap_err();
    assert!(matches!(error, OAuthError::IssuerNotListed { .. }), "{error}");
    // The endpoint refuses one as well.
    let mut elsewhere = metadata_of(&sign_in);
    elsewhere.token_endpoint = Some(EndpointUrl::parse("https://new.example/token").unwrap());
    let endpoint = plenipo_oauth::TokenEndpoint::new(elsewhere.into(), registered[0].clone());
    assert!(endpoint.is_err());
}

fn metadata_of(sign_in: &plenipo_oauth::SignIn) -> plenipo_oauth::ServerMetadata {
    sign_in.prepared.discovered.metadata.clone()
}

#[test]
fn auth_url_scheme() {
    for bad in [
        "javascript:alert(1)",
        "javascript://as.example/%0aalert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "http://as.example/authorize",
        "ftp://as.example/authorize",
        "https://user:pw@as.example/authorize",
        "/authorize",
        "-u",
        "https://as.example/authorize#x",
        "https://as.example/ authorize",
    ] {
        let document = metadata_with(json!({"authorization_endpoint": bad}));
        let network = Fake::sound().publish(METADATA, document);
        let error = network.begin().unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("authorization_endpoint") && shown.contains(METADATA), "{shown}");
        assert!(network.posts().is_empty(), "nothing is registered");
    }
}
