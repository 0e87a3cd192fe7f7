//! No token, code, verifier, assertion or secret in any error or `Debug`.

use std::error::Error;
use std::fmt::Write as _;

use plenipo_oauth::{ClientCredential, ClientRegistration, DpopKey, run_blocking};
use plenipo_redact::Secret;
use serde_json::json;

use crate::fake::{Fake, METADATA, json_response, metadata_with, query};

/// A server that repeats everything it was sent, in every member it may.
fn parrot() -> Fake {
    let metadata =
        metadata_with(json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
    Fake::sound().publish(METADATA, metadata).on("https://as.example/token", |seen| {
        let all = seen.form().into_values().collect::<Vec<_>>().join(" ");
        json_response(400, &json!({"error": all, "error_description": all}))
    })
}

#[test]
fn nothing_secret_is_shown_of_a_whole_sign_in() {
    let network = Fake::sound();
    let secret = Secret::new("cs-s3cr3t".to_owned());
    let client = ClientRegistration::configured("c", ClientCredential::Secret(secret));
    let sign_in = network.begin_with(|options| options.configured = Some(&client)).unwrap();
    let state = query(&sign_in)["state"].clone();
    let mut shown = format!("{sign_in:?} {client:?}");
    let signed_in = network.finish(sign_in).unwrap();
    write!(shown, "{signed_in:#?}").unwrap();
    let verifier = network.posts()[0].form()["code_verifier"].clone();
    for hidden in ["s3cr3t", &state, &verifier] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
    assert!(shown.contains("https://as.example"), "the rest is shown: {shown}");
    assert!(!format!("{:?}", DpopKey::generate().unwrap()).contains('['));
}

#[test]
fn what_a_server_repeats_is_masked() {
    let network = parrot();
    let secret = Secret::new("cs-s3cr3t".to_owned());
    let client = ClientRegistration::configured("c", ClientCredential::Secret(secret));
    let sign_in = network.begin_with(|options| options.configured = Some(&client)).unwrap();
    let state = query(&sign_in)["state"].clone();
    let answer = format!("code=code-s3cr3t&state={state}");
    let error = run_blocking(sign_in.finish(&network.http(), &answer)).unwrap().unwrap_err();
    let verifier = network.posts()[0].form()["code_verifier"].clone();
    let mut shown = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(cause) = source {
        write!(shown, "{cause} {cause:?}").unwrap();
        source = cause.source();
    }
    for hidden in ["s3cr3t", &verifier] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
    assert!(shown.contains("[redacted]"), "{shown}");
}
