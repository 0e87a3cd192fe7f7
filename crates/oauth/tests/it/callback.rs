//! Where the browser was sent back to.

use plenipo_oauth::error::CallbackFault;
use plenipo_oauth::{ErrorKind, OAuthError, run_blocking};
use serde_json::json;

use crate::fake::{Fake, ISSUER, METADATA, REDIRECT, metadata_with, query};

fn answered(promised: bool, answer: impl Fn(&str) -> String) -> Result<(), CallbackFault> {
    let document =
        metadata_with(json!({"authorization_response_iss_parameter_supported": promised}));
    let network = Fake::sound().publish(METADATA, document);
    let sign_in = network.begin().unwrap();
    let answer = answer(&query(&sign_in)["state"]);
    let result = run_blocking(sign_in.finish(&network.http(), &answer)).unwrap();
    let tokens = network.urls().iter().filter(|url| url.ends_with("/token")).count();
    assert_eq!(tokens, usize::from(result.is_ok()), "a code is sent only when all is well");
    match result {
        Ok(_) => Ok(()),
        Err(OAuthError::Callback { fault }) => Err(fault),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn iss_table() {
    let with =
        |iss: &'static str| move |state: &str| format!("{REDIRECT}?code=c&state={state}{iss}");
    let right = "&iss=https%3A%2F%2Fas.example";
    let wrong = CallbackFault::Issuer { expected: ISSUER.to_owned() };
    let missing = CallbackFault::IssuerMissing { expected: ISSUER.to_owned() };
    assert_eq!(answered(true, with(right)), Ok(()));
    assert_eq!(answered(false, with(right)), Ok(()));
    assert_eq!(answered(false, with("")), Ok(()));
    assert_eq!(answered(true, with("")), Err(missing));
    for other in [
        "&iss=https%3A%2F%2Fas.example%2F",
        "&iss=https%3A%2F%2FAS.example",
        "&iss=https%3A%2F%2Fas.example%3A443",
        "&iss=https%3A%2F%2Fevil.example",
        "&iss=",
    ] {
        for promised in [true, false] {
            assert_eq!(answered(promised, with(other)), Err(wrong.clone()), "{other}");
        }
    }
    // An error of another issuer is not shown as this one's.
    let foreign = |state: &str| {
        format!(
            "{REDIRECT}?error=access_denied&error_description=evil&state={state}&iss=https://x.example"
        )
    };
    assert_eq!(answered(true, foreign), Err(wrong));
}

#[test]
fn state_is_checked_before_anything_else() {
    for answer in [
        format!("{REDIRECT}?code=c"),
        format!("{REDIRECT}?code=c&state="),
        format!("{REDIRECT}?code=c&state=other"),
        format!("{REDIRECT}?error=access_denied&state=other"),
    ] {
        let fault = answered(false, |_| answer.clone()).unwrap_err();
        assert_eq!(fault, CallbackFault::State, "{answer}");
    }
}

#[test]
fn answers_of_all_kinds() {
    assert_eq!(answered(false, |state| format!("code=c&state={state}")), Ok(()), "a query alone");
    assert_eq!(answered(false, |state| format!("  ?code=c&state={state}\n")), Ok(()));
    assert_eq!(answered(false, |state| format!("state={state}")), Err(CallbackFault::Empty));
    assert_eq!(answered(false, |state| format!("code=&state={state}")), Err(CallbackFault::Empty));
    assert_eq!(answered(false, |_| "hello".to_owned()), Err(CallbackFault::NotCallback));
    assert_eq!(
        answered(false, |_| format!("a={}", "x".repeat(20_000))),
        Err(CallbackFault::NotCallback)
    );
    assert_eq!(
        answered(false, |state| format!("code=c&state={state}&code=d")),
        Err(CallbackFault::Duplicate { name: "code" })
    );
    let refused =
        |state: &str| format!("error=invalid_scope&error_description=no%1b[31m+such&state={state}");
    let fault = answered(false, refused).unwrap_err();
    assert_eq!(fault.to_string(), "is the error `invalid_scope`: \"no\u{fffd}[31m such\"");
    assert_eq!(OAuthError::from(fault).kind(), ErrorKind::Denied);
}

#[test]
fn an_answer_is_at_the_address_it_was_to_be_sent_to() {
    let elsewhere = |state: &str| format!("https://evil.example/callback?code=c&state={state}");
    let fault = answered(false, elsewhere).unwrap_err();
    assert_eq!(fault.to_string(), format!("does not begin with `{REDIRECT}?`"));

    let network = Fake::sound();
    let sign_in = network.begin().unwrap();
    let state = query(&sign_in)["state"].clone();
    let check = |text: &str| sign_in.pending.check(text);
    let bare = REDIRECT.strip_prefix("http://").unwrap();
    for right in [
        REDIRECT,
        &REDIRECT.to_uppercase().replace("/CALLBACK", "/callback"),
        bare,
        "/callback",
        "",
    ] {
        assert_eq!(check(&format!(" {right}?code=c&state={state}\n")), Ok(()), "{right}");
    }
    assert_eq!(check(&format!("code=c&state={state}")), Ok(()));
    assert_eq!(check(sign_in.url.expose()), Err(CallbackFault::Page));
    for wrong in [
        "https://127.0.0.1:1/callback",
        "http://user@127.0.0.1/callback",
        "evil.example/callback",
        "/other",
    ] {
        let fault = check(&format!("{wrong}?code=c&state={state}"));
        assert!(matches!(fault, Err(CallbackFault::Elsewhere { .. })), "{wrong}: {fault:?}");
    }
    assert_eq!(check(&format!("{REDIRECT}?state={state}")), Err(CallbackFault::Empty));
    assert_eq!(check(&format!("{REDIRECT}?code=c&state=x")), Err(CallbackFault::State));
}

#[test]
fn a_listener_knows_its_own_answer() {
    let network = Fake::sound();
    let sign_in = network.begin().unwrap();
    let state = query(&sign_in)["state"].clone();
    assert!(sign_in.pending.is_answered_by(&format!("/callback?state={state}&error=x")));
    assert!(!sign_in.pending.is_answered_by("/callback?state=other&code=x"));
    assert!(!sign_in.pending.is_answered_by("/favicon.ico"));
}
