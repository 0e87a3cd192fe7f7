//! The token endpoint: client authentication, and the grants without a person.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use plenipo_oauth::jose::{SigningKey, decode};
use plenipo_oauth::{
    AuthenticationMethod, ClientCredential, ClientRegistration, EndpointUrl, ErrorKind, Grant,
    OAuthError, Prepared, Revoked, SignInOptions, SignedIn, TokenExchange, TokenRequest, revoke,
    run_blocking, token_type,
};
use plenipo_redact::Secret;
use serde_json::{Value, json};

use crate::fake::{Fake, METADATA, REDIRECT, SERVER, Seen, json_response, metadata_with};

const ES256: &str = include_str!("keys/es256.pem");
const RS256: &str = include_str!("keys/rs256.pem");
const EDDSA: &str = include_str!("keys/eddsa.pem");

fn secret(text: &str) -> Secret<String> {
    Secret::new(text.to_owned())
}

fn granted(
    network: &Fake,
    client: &ClientRegistration,
    grant: Grant,
) -> Result<SignedIn, OAuthError> {
    let server = EndpointUrl::parse(SERVER).unwrap();
    let mut options = SignInOptions::new(&server, REDIRECT);
    options.configured = Some(client);
    run_blocking(async {
        let http = network.http();
        Prepared::for_grant(&http, &options, &grant).await?.grant(&http, grant).await
    })
    .unwrap()
}

fn with_methods(methods: &Value) -> Fake {
    let changes = json!({"token_endpoint_auth_methods_supported": methods});
    Fake::sound().publish(METADATA, metadata_with(changes))
}

fn token_request(methods: &Value, credential: ClientCredential) -> Seen {
    let network = with_methods(methods);
    let client = ClientRegistration::configured("id 1", credential);
    granted(&network, &client, Grant::ClientCredentials).unwrap();
    network.posts().pop().unwrap()
}

#[test]
fn token_auth_methods() {
    let credential = || ClientCredential::Secret(secret("x:y+z-s3cr3t"));
    let basic = format!("Basic {}", STANDARD.encode("id+1:x%3Ay%2Bz-s3cr3t"));
    for methods in [json!(null), json!([]), json!(["client_secret_post", "client_secret_basic"])] {
        let seen = token_request(&methods, credential());
        assert_eq!(seen.header("authorization"), basic, "{methods}");
        assert!(!seen.body.contains("s3cr3t") && !seen.form().contains_key("client_id"));
    }
    let seen = token_request(&json!(["client_secret_post"]), credential());
    assert_eq!(seen.header("authorization"), "");
    assert_eq!(seen.form()["client_id"], "id 1");
    assert_eq!(seen.form()["client_secret"], "x:y+z-s3cr3t");
    let seen = token_request(&json!(["none"]), credential());
    assert_eq!(seen.form()["client_id"], "id 1");
    assert!(!seen.body.contains("s3cr3t") && seen.header("authorization").is_empty());
    for methods in [json!(null), json!(["none"]), json!(["client_secret_basic"])] {
        let seen = token_request(&methods, ClientCredential::None);
        assert_eq!(seen.form()["client_id"], "id 1", "{methods}");
    }
    // What was registered wins over what is listed.
    let network = with_methods(&json!(["client_secret_basic"]));
    let mut client = ClientRegistration::configured("id", credential());
    client.method = Some(AuthenticationMethod::SecretPost);
    granted(&network, &client, Grant::ClientCredentials).unwrap();
    assert_eq!(network.posts()[0].form()["client_secret"], "x:y+z-s3cr3t");
}

#[test]
fn private_key_jwt() {
    use ring::signature::{self, UnparsedPublicKey};
    for (pem, algorithm) in [(ES256, "ES256"), (RS256, "RS256"), (EDDSA, "EdDSA")] {
        for narrowed in [None, Some(algorithm)] {
            let key = SigningKey::from_pem(&secret(pem), narrowed, Some("k1".to_owned())).unwrap();
            assert_eq!(key.algorithm(), algorithm);
            let jwk = key.public_jwk();
            let seen = token_request(&json!(["private_key_jwt"]), ClientCredential::Key(key));
            let form = seen.form();
            assert!(!form.contains_key("client_id") && seen.header("authorization").is_empty());
            assert_eq!(
                form["client_assertion_type"],
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            );
            let jwt = &form["client_assertion"];
            let decoded = decode(jwt).unwrap();
            assert_eq!(decoded.header["alg"], algorithm);
            assert_eq!(decoded.header["kid"], "k1");
            assert_eq!(decoded.claims["iss"], "id 1");
            assert_eq!(decoded.claims["sub"], "id 1");
            assert_eq!(decoded.claims["aud"], "https://as.example");
            assert_eq!(decoded.claims["iat"], 1_800_000_000_u64);
            assert_eq!(decoded.claims["exp"], 1_800_000_300_u64);
            assert_eq!(decoded.claims["jti"].as_str().unwrap().len(), 43);

            let (message, signature) = jwt.rsplit_once('.').unwrap();
            let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
            let part = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap()).unwrap();
            let message = message.as_bytes();
            match algorithm {
                "ES256" => {
                    let point = [vec![4], part("x"), part("y")].concat();
                    UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point)
                        .verify(message, &signature)
                }
                "RS256" => signature::RsaPublicKeyComponents { n: part("n"), e: part("e") }.verify(
                    &signature::RSA_PKCS1_2048_8192_SHA256,
                    message,
                    &signature,
                ),
                _ => UnparsedPublicKey::new(&signature::ED25519, part("x"))
                    .verify(message, &signature),
            }
            .unwrap();
        }
    }
    assert!(SigningKey::from_pem(&secret(ES256), Some("RS256"), None).is_err());
    assert!(SigningKey::from_pem(&secret("hello"), None, None).is_err());
    let metadata = metadata_with(json!({
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["PS256"],
    }));
    let network = Fake::sound().publish(METADATA, metadata);
    let key = SigningKey::from_pem(&secret(ES256), None, None).unwrap();
    let client = ClientRegistration::configured("id", ClientCredential::Key(key));
    let error = granted(&network, &client, Grant::ClientCredentials).unwrap_err();
    assert!(error.to_string().contains("PS256"), "{error}");
}

#[test]
fn workload_identity_is_one_request_and_no_other() {
    let network = with_methods(&json!(["none"])).on("https://as.example/token", |_| {
        json_response(
            400,
            &json!({"error": "invalid_grant", "error_description": "jwt-s3cr3t is old"}),
        )
    });
    let client = ClientRegistration::configured("wl", ClientCredential::None);
    let error = granted(&network, &client, Grant::JwtBearer(secret("jwt-s3cr3t"))).unwrap_err();
    assert_eq!(error.code(), Some("invalid_grant"));
    assert!(!error.to_string().contains("s3cr3t"), "{error}");
    let posts = network.posts();
    assert_eq!(posts.len(), 1, "neither repeated nor replaced by another grant");
    let form = posts[0].form();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(form["assertion"], "jwt-s3cr3t");
    assert_eq!(form["resource"], SERVER);
}

#[test]
fn a_grant_that_is_not_offered_is_not_tried() {
    let changes = json!({"grant_types_supported": ["authorization_code"]});
    let network = Fake::sound().publish(METADATA, metadata_with(changes));
    let client = ClientRegistration::configured("c", ClientCredential::None);
    let error = granted(&network, &client, Grant::ClientCredentials).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(network.posts().is_empty());
}

#[test]
fn a_token_exchange_sends_what_it_holds() {
    let network = Fake::sound();
    let client = ClientRegistration::configured("c", ClientCredential::None);
    let mut exchange = TokenExchange::new(secret("id-s3cr3t"), token_type::ID_TOKEN);
    exchange.requested_token_type = Some(token_type::ID_JAG.to_owned());
    exchange.audience = Some("https://ras.example".to_owned());
    granted(&network, &client, Grant::TokenExchange(exchange)).unwrap();
    let form = network.posts()[0].form();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:token-exchange");
    assert_eq!(form["subject_token"], "id-s3cr3t");
    assert_eq!(form["subject_token_type"], "urn:ietf:params:oauth:token-type:id_token");
    assert_eq!(form["requested_token_type"], "urn:ietf:params:oauth:token-type:id-jag");
    assert_eq!(form["audience"], "https://ras.example");
    assert_eq!(form["resource"], SERVER);
}

#[test]
fn kinds_of_refusals() {
    let network = Fake::sound();
    let signed_in = network.finish(network.begin().unwrap()).unwrap();
    for (status, body, kind) in [
        (400, json!({"error": "invalid_grant"}), ErrorKind::SignIn),
        (401, json!({"error": "invalid_client"}), ErrorKind::Config),
        (400, json!({"error": "access_denied"}), ErrorKind::Denied),
        (400, json!({"error": "invalid_target"}), ErrorKind::Denied),
        (503, json!({"error": "temporarily_unavailable"}), ErrorKind::Transient),
        (500, json!({}), ErrorKind::Transient),
        (429, json!({}), ErrorKind::Transient),
        (400, json!({}), ErrorKind::PeerMisbehaved),
    ] {
        let network =
            Fake::sound().on("https://as.example/token", move |_| json_response(status, &body));
        let grant = Grant::RefreshToken(secret("rt-s3cr3t"));
        let request = TokenRequest::new(grant, None);
        let error = run_blocking(signed_in.endpoint.request(&network.http(), &request)).unwrap();
        assert_eq!(error.unwrap_err().kind(), kind, "{status}");
    }
}

#[test]
fn tokens_are_given_back() {
    let metadata = metadata_with(json!({"revocation_endpoint": "https://as.example/revoke"}));
    let network = Fake::sound()
        .publish(METADATA, metadata)
        .on("https://as.example/revoke", |_| json_response(200, &json!({})));
    let signed_in = network.finish(network.begin().unwrap()).unwrap();
    let token = secret("rt-s3cr3t");
    let which = Revoked::RefreshToken;
    let done = run_blocking(revoke(&network.http(), &signed_in.endpoint, &token, which)).unwrap();
    assert!(done.unwrap());
    let form = network.posts().pop().unwrap().form();
    assert_eq!(form["token"], "rt-s3cr3t");
    assert_eq!(form["token_type_hint"], "refresh_token");
    assert_eq!(form["client_id"], "dcr-1");

    let network = Fake::sound();
    let signed_in = network.finish(network.begin().unwrap()).unwrap();
    let before = network.seen().len();
    let done = run_blocking(revoke(&network.http(), &signed_in.endpoint, &token, which)).unwrap();
    assert!(!done.unwrap());
    assert_eq!(network.seen().len(), before);
}
