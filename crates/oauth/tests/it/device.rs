//! A sign-in on another device.

use std::sync::Mutex;
use std::time::Duration;

use plenipo_oauth::{
    DeviceAuthorization, EndpointUrl, OAuthError, Polled, Prepared, SignInOptions, run_blocking,
};
use serde_json::{Value, json};

use crate::fake::{Fake, METADATA, REDIRECT, SERVER, json_response, metadata_with};

const ENDPOINT: &str = "https://as.example/device";

fn network(answer: Value, polls: Vec<Value>) -> Fake {
    let polls = Mutex::new(polls.into_iter());
    Fake::sound()
        .publish(METADATA, metadata_with(json!({"device_authorization_endpoint": ENDPOINT})))
        .on(ENDPOINT, move |_| json_response(200, &answer))
        .on("https://as.example/token", move |_| {
            let next = polls.lock().unwrap().next().unwrap();
            let status = if next.get("error").is_some() { 400 } else { 200 };
            json_response(status, &next)
        })
}

fn prepared(network: &Fake) -> Prepared {
    let server = EndpointUrl::parse(SERVER).unwrap();
    let options = SignInOptions::new(&server, REDIRECT);
    run_blocking(Prepared::new(&network.http(), &options)).unwrap().unwrap()
}

fn begun(network: &Fake) -> (Prepared, Result<DeviceAuthorization, OAuthError>) {
    let prepared = prepared(network);
    let device = run_blocking(prepared.authorize_device(&network.http())).unwrap();
    (prepared, device)
}

fn answer() -> Value {
    json!({"device_code": "dc-s3cr3t", "user_code": "WDJB-MJHT",
        "verification_uri": "https://as.example/activate", "expires_in": 600, "interval": 2})
}

#[test]
fn polls_until_the_person_is_done() {
    let pending = json!({"error": "authorization_pending"});
    let slow = json!({"error": "slow_down"});
    let token = json!({"access_token": "at-s3cr3t", "token_type": "Bearer"});
    let network = network(answer(), vec![pending, slow, token]);
    let (prepared, device) = begun(&network);
    let mut device = device.unwrap();
    assert_eq!(device.user_code.expose(), "WDJB-MJHT");
    assert!(!format!("{device:?}").contains("s3cr3t"));
    let mut poll = || {
        let polled = run_blocking(device.poll(&network.http(), &prepared.endpoint));
        (polled.unwrap().unwrap(), device.interval.as_secs())
    };
    assert!(matches!(poll(), (Polled::Pending, 2)));
    assert!(matches!(poll(), (Polled::Pending, 7)), "five seconds more");
    assert!(matches!(poll(), (Polled::Done(_), 7)));
    let posts = network.posts();
    assert_eq!(posts[1].form()["resource"], SERVER);
    assert_eq!(posts[1].form()["client_id"], "dcr-1");
    assert_eq!(posts[2].form()["grant_type"], "urn:ietf:params:oauth:grant-type:device_code");
    assert_eq!(posts[2].form()["device_code"], "dc-s3cr3t");
}

#[test]
fn ends_in_time() {
    let expired = network(answer(), vec![json!({"error": "expired_token"})]);
    let (prepared, device) = begun(&expired);
    let poll = run_blocking(device.unwrap().poll(&expired.http(), &prepared.endpoint)).unwrap();
    assert!(matches!(poll, Err(OAuthError::DeviceCodeExpired)));

    let silent = network(answer(), vec![]);
    let (prepared, device) = begun(&silent);
    silent.pass(Duration::from_secs(600));
    let poll = run_blocking(device.unwrap().poll(&silent.http(), &prepared.endpoint)).unwrap();
    assert!(matches!(poll, Err(OAuthError::DeviceCodeExpired)), "without asking");

    let denied = network(answer(), vec![json!({"error": "access_denied"})]);
    let (prepared, device) = begun(&denied);
    let poll = run_blocking(device.unwrap().poll(&denied.http(), &prepared.endpoint)).unwrap();
    assert_eq!(poll.unwrap_err().code(), Some("access_denied"));
}

#[test]
fn what_a_person_is_shown_is_checked() {
    for (name, value) in [
        ("verification_uri", json!("javascript:alert(1)")),
        ("verification_uri", json!("http://as.example/activate")),
        ("verification_uri", json!(null)),
        ("verification_uri_complete", json!("file:///x")),
        ("user_code", json!("\u{1b}[2J")),
        ("user_code", json!("x".repeat(100))),
        ("device_code", json!(1)),
    ] {
        let mut document = answer();
        document[name] = value;
        let shown = begun(&network(document, vec![])).1.unwrap_err().to_string();
        assert!(shown.contains(name) && shown.contains("device authorization"), "{shown}");
    }
    let no_endpoint = Fake::sound();
    let error = begun(&no_endpoint).1.unwrap_err();
    assert!(error.to_string().contains("device_authorization_endpoint"), "{error}");
}
