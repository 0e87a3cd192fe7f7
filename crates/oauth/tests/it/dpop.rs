//! Tokens bound to a key.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use http::Method;
use plenipo_oauth::jose::decode;
use plenipo_oauth::{DpopKey, EndpointUrl, ErrorKind};
use plenipo_redact::Secret;
use serde_json::json;

use crate::fake::{Fake, METADATA, json_response, metadata_with, raw};

fn bound(nonces: bool) -> Fake {
    let count = AtomicUsize::new(0);
    Fake::sound().on("https://as.example/token", move |_| {
        if nonces && count.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut refusal = json_response(400, &json!({"error": "use_dpop_nonce"}));
            refusal.headers_mut().insert("dpop-nonce", "n-1".parse().unwrap());
            return refusal;
        }
        json_response(200, &json!({"access_token": "at", "token_type": "DPoP"}))
    })
}

#[test]
fn a_proof_goes_to_the_token_endpoint() {
    let network = bound(false);
    let key = DpopKey::generate().unwrap();
    let sign_in = network.begin_with(|options| options.dpop = Some(key.clone())).unwrap();
    network.finish(sign_in).unwrap();
    let proof = decode(&network.posts()[1].header("dpop")).unwrap();
    assert_eq!(proof.header["typ"], "dpop+jwt");
    assert_eq!(proof.header["alg"], "ES256");
    assert_eq!(proof.header["jwk"]["kty"], "EC");
    assert!(proof.header["jwk"].get("d").is_none(), "the private part stays");
    assert_eq!(proof.claims["htm"], "POST");
    assert_eq!(proof.claims["htu"], "https://as.example/token");
    assert_eq!(proof.claims["iat"], 1_800_000_000_u64);
    assert!(!proof.claims.contains_key("ath") && !proof.claims.contains_key("nonce"));
    let stored = DpopKey::from_stored(key.stored().clone()).unwrap();
    assert_eq!(stored.thumbprint(), key.thumbprint());
    assert_eq!(key.thumbprint().len(), 43);
}

#[test]
fn a_nonce_is_taken_up_once() {
    let network = bound(true);
    let key = DpopKey::generate().unwrap();
    let sign_in = network.begin_with(|options| options.dpop = Some(key)).unwrap();
    network.finish(sign_in).unwrap();
    let posts = network.posts();
    assert_eq!(posts.len(), 3);
    let proofs: Vec<_> =
        posts[1..].iter().map(|post| decode(&post.header("dpop")).unwrap()).collect();
    assert!(!proofs[0].claims.contains_key("nonce"));
    assert_eq!(proofs[1].claims["nonce"], "n-1");
    assert_ne!(proofs[0].claims["jti"], proofs[1].claims["jti"]);

    // A server that always wants another one is asked twice, not without end.
    let count = AtomicUsize::new(0);
    let network = Fake::sound().on("https://as.example/token", move |_| {
        let mut refusal = json_response(400, &json!({"error": "use_dpop_nonce"}));
        let nonce = format!("n-{}", count.fetch_add(1, Ordering::Relaxed));
        refusal.headers_mut().insert("dpop-nonce", nonce.parse().unwrap());
        refusal
    });
    let key = DpopKey::generate().unwrap();
    let sign_in = network.begin_with(|options| options.dpop = Some(key)).unwrap();
    assert_eq!(network.finish(sign_in).unwrap_err().code(), Some("use_dpop_nonce"));
    assert_eq!(network.posts().len(), 3);
}

#[test]
fn a_token_that_is_not_bound_is_refused() {
    let network = Fake::sound();
    let key = DpopKey::generate().unwrap();
    let sign_in = network.begin_with(|options| options.dpop = Some(key)).unwrap();
    let error = network.finish(sign_in).unwrap_err();
    assert!(error.to_string().contains("`token_type`"), "{error}");
    assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);

    let metadata = metadata_with(json!({"dpop_signing_alg_values_supported": ["PS256"]}));
    let network = bound(false).publish(METADATA, metadata);
    let key = DpopKey::generate().unwrap();
    let sign_in = network.begin_with(|options| options.dpop = Some(key)).unwrap();
    assert!(network.finish(sign_in).unwrap_err().to_string().contains("PS256"));
}

#[test]
fn a_proof_for_the_resource_names_the_token_and_the_body() {
    let key = DpopKey::generate().unwrap();
    let url = EndpointUrl::parse("https://mcp.example/mcp?key=1").unwrap();
    let token = Secret::new("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU".to_owned());
    let body: &[u8] = b"{\"hello\": \"world\"}";
    let now = SystemTime::now();
    let (name, value) =
        key.header_with_body(&Method::POST, &url, (Some(&token), Some(body)), now).unwrap();
    assert_eq!(name, "dpop");
    assert!(value.is_sensitive());
    let claims = decode(value.to_str().unwrap()).unwrap().claims;
    assert_eq!(claims["htu"], "https://mcp.example/mcp");
    // The example of RFC 9449 section 7.1.
    assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
    // The example of RFC 9530 appendix B.1.
    assert_eq!(claims["content_digest"], "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:");
    assert!(key.remember_nonce(&url, "n"));
    assert!(!key.remember_nonce(&url, "n"), "the same nonce brings nothing new");
    let (_, value) = key.header(&Method::GET, &url, Some(&token), now).unwrap();
    let claims = decode(value.to_str().unwrap()).unwrap().claims;
    assert_eq!((&claims["nonce"], &claims["htm"]), (&json!("n"), &json!("GET")));
    let other = EndpointUrl::parse("https://other.example/").unwrap();
    let (_, value) = key.header(&Method::GET, &other, None, now).unwrap();
    assert!(!decode(value.to_str().unwrap()).unwrap().claims.contains_key("nonce"));
}

#[test]
fn a_resource_that_wants_bound_tokens_gets_them() {
    let prm = json!({"resource": crate::fake::SERVER, "authorization_servers": [crate::fake::ISSUER],
        "dpop_bound_access_tokens_required": true});
    let network = bound(false).publish(crate::fake::PRM, prm);
    let signed_in = network.finish(network.begin().unwrap()).unwrap();
    assert!(signed_in.endpoint.dpop.is_some());
    // Not JSON at all from an endpoint that was sent a proof.
    let network = Fake::sound().on("https://as.example/token", |_| raw(500, "text/plain", "oops"));
    let key = DpopKey::generate().unwrap();
    let sign_in = network.begin_with(|options| options.dpop = Some(key)).unwrap();
    assert_eq!(network.finish(sign_in).unwrap_err().kind(), ErrorKind::Transient);
}
