//! Documents that are not what they should be: refused by name, before anything is registered.

use http::Response;
use plenipo_oauth::{ErrorKind, MAX_BODY_BYTES, OAuthError};
use serde_json::{Value, json};

use crate::fake::{Fake, ISSUER, METADATA, PRM, SERVER, json_response, metadata_with, raw};

fn refused(network: &Fake) -> String {
    let error = network.begin().expect_err("it is refused");
    assert!(network.posts().is_empty(), "nothing is registered: {error}");
    assert_eq!(error.kind(), ErrorKind::PeerMisbehaved, "{error}");
    error.to_string()
}

#[test]
fn metadata_that_is_no_object_of_its_kind() {
    let bodies = [
        ("<!doctype html><title>Not found</title>", "text/html", "is a web page, expected JSON"),
        ("  <html>", "application/json", "is a web page, expected JSON"),
        ("", "application/json", "is not JSON"),
        ("{", "application/json", "is not JSON"),
        ("{} {}", "application/json", "is not JSON"),
        ("[]", "application/json", "is JSON, but no object"),
        ("null", "application/json", "is JSON, but no object"),
        (r#"{"issuer":"a","issuer":"b"}"#, "application/json", "has the member `issuer` twice"),
    ];
    for (body, media_type, expected) in bodies {
        let network = Fake::sound().on(METADATA, move |_| raw(200, media_type, body));
        let shown = refused(&network);
        assert_eq!(shown, format!("the authorization server metadata at {METADATA} {expected}"));
        let network = Fake::sound().on(PRM, move |_| raw(200, media_type, body));
        let shown = refused(&network);
        assert_eq!(shown, format!("the protected resource metadata at {PRM} {expected}"));
    }
}

#[test]
fn members_of_odd_types_are_named() {
    let table: &[(&str, Value, &str)] = &[
        ("issuer", json!(7), "that is a number, expected a string"),
        ("issuer", json!(""), "that is empty"),
        ("token_endpoint", json!(["x"]), "that is an array, expected a string"),
        (
            "token_endpoint",
            json!("http://as.example/t"),
            "names `http://as.example/t` as `token_endpoint`, which is not encrypted",
        ),
        ("registration_endpoint", json!({}), "that is an object, expected a string"),
        (
            "code_challenge_methods_supported",
            json!("S256"),
            "that is a string, expected an array of strings",
        ),
        ("code_challenge_methods_supported", json!(["S256", 1]), "has a number in its member"),
        (
            "authorization_response_iss_parameter_supported",
            json!("true"),
            "that is a string, expected a boolean",
        ),
        ("token_endpoint_auth_methods_supported", json!({}), "expected an array of strings"),
    ];
    for (name, value, expected) in table {
        let document = metadata_with(json!({*name: value}));
        let shown = refused(&Fake::sound().publish(METADATA, document));
        assert!(shown.contains(&format!("`{name}`")) && shown.contains(expected), "{shown}");
    }
    // `null` is the same as missing.
    let document =
        metadata_with(json!({"revocation_endpoint": null, "grant_types_supported": null}));
    Fake::sound().publish(METADATA, document).begin().unwrap();
    let without = metadata_with(json!({"token_endpoint": null}));
    let error = Fake::sound().publish(METADATA, without).begin().unwrap_err();
    assert_eq!(error.to_string(), format!("issuer `{ISSUER}` has no `token_endpoint`"));
}

#[test]
fn resources_that_say_odd_things() {
    let long: Vec<_> = (0..20).map(|number| format!("https://as{number}.example")).collect();
    let table = [
        (json!({"authorization_servers": [ISSUER]}), "lacks the member `resource`"),
        (json!({"resource": SERVER, "authorization_servers": ISSUER}), "`authorization_servers`"),
        (
            json!({"resource": SERVER, "authorization_servers": ["ftp://x"]}),
            "names `ftp://x` as `authorization_servers`, which is not an https URL",
        ),
        (
            json!({"resource": SERVER, "authorization_servers": [ISSUER, 7]}),
            "has a number in its member `authorization_servers`, expected strings only",
        ),
        (json!({"resource": SERVER, "authorization_servers": ["https://x/?y"]}), "has a query"),
        (json!({"resource": SERVER, "authorization_servers": long}), "has over 16 entries"),
        (
            json!({"resource": SERVER, "authorization_servers": [ISSUER], "bearer_methods_supported": ["query"]}),
            "`bearer_methods_supported`",
        ),
        (
            json!({"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["a b"]}),
            "hold a character that no scope may have",
        ),
    ];
    for (document, expected) in table {
        let shown = refused(&Fake::sound().publish(PRM, document));
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn documents_are_bounded() {
    let network = Fake::sound()
        .on(METADATA, |_| raw(200, "application/json", &"x".repeat(MAX_BODY_BYTES + 1)));
    let error = network.begin().unwrap_err();
    assert!(matches!(error, OAuthError::Unreachable { .. }), "{error}");
    assert!(error.to_string().ends_with(" is too long"), "{error}");
    assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let network = Fake::sound().on(METADATA, move |_| raw(200, "application/json", &deep));
    assert!(refused(&network).contains("is not JSON"));
}

#[test]
fn redirections_stay_in_their_origin() {
    let to = |location: &'static str| {
        Fake::sound().on(PRM, move |_| {
            Response::builder().status(302).header("location", location).body(vec![]).unwrap()
        })
    };
    let document = json!({"resource": SERVER, "authorization_servers": [ISSUER]});
    for good in ["/prm.json", "https://mcp.example/prm.json"] {
        to(good).publish("https://mcp.example/prm.json", document.clone()).begin().unwrap();
    }
    for bad in [
        "https://evil.example/prm.json",
        "http://mcp.example/prm.json",
        "//evil.example/prm.json",
        "https://127.0.0.1/prm.json",
        "file:///etc/passwd",
        "",
    ] {
        let network = to(bad);
        let error = network.begin().unwrap_err();
        assert!(matches!(error, OAuthError::Redirect { .. }), "{bad}: {error}");
        assert_eq!(network.urls(), [PRM], "{bad}");
    }
    // In circles.
    let network = to("https://mcp.example/.well-known/oauth-protected-resource/mcp");
    let error = network.begin().unwrap_err();
    assert!(matches!(error, OAuthError::Redirect { .. }), "{error}");
    assert_eq!(network.urls().len(), 6);
}

#[test]
fn secrets_follow_no_redirection() {
    for status in [301, 302, 303, 307, 308] {
        let network = Fake::sound().on("https://as.example/token", move |_| {
            Response::builder()
                .status(status)
                .header("location", "https://as.example/other")
                .body(vec![])
                .unwrap()
        });
        let error = network.finish(network.begin().unwrap()).unwrap_err();
        assert!(matches!(error, OAuthError::Redirect { .. }), "{error}");
        assert!(!network.urls().iter().any(|url| url.ends_with("/other")));
    }
}

#[test]
fn token_answers_with_habits() {
    let answer = |document: Value| {
        Fake::sound().on("https://as.example/token", move |_| json_response(200, &document))
    };
    let token = |network: Fake| {
        let signed_in = network.finish(network.begin().unwrap());
        signed_in.map(|signed_in| signed_in.token)
    };
    let base = |changes: Value| {
        let mut document = json!({"access_token": "t", "token_type": "Bearer"});
        for (name, value) in changes.as_object().unwrap() {
            document[name] = value.clone();
        }
        answer(document)
    };
    let seconds = |network| {
        token(network).unwrap().expires_in.map(|life: std::time::Duration| life.as_secs())
    };
    assert_eq!(seconds(base(json!({}))), None, "unknown, not an hour");
    assert_eq!(seconds(base(json!({"expires_in": null}))), None);
    assert_eq!(seconds(base(json!({"expires_in": 0}))), Some(0));
    assert_eq!(seconds(base(json!({"expires_in": -5}))), Some(0));
    assert_eq!(seconds(base(json!({"expires_in": "3600"}))), Some(3600));
    assert_eq!(seconds(base(json!({"expires_in": 3600.0}))), Some(3600));
    assert_eq!(seconds(base(json!({"expires_in": 1e30}))), Some(315_360_000));
    let odd = json!({"token_type": "user", "scope": null, "id_token": null, "refresh_token": ""});
    let odd = token(base(odd)).unwrap();
    assert_eq!(odd.token_type, plenipo_oauth::TokenType::Bearer);
    assert!(odd.refresh_token.is_none() && odd.scopes.is_none());
    assert_eq!(
        token(base(json!({"scope": ["a", "b"]}))).unwrap().scopes.unwrap().to_string(),
        "a b"
    );

    for (changes, expected) in [
        (json!({"token_type": "mac"}), "`token_type` that is `mac`, expected `Bearer` or `DPoP`"),
        (json!({"token_type": "N_A"}), "`token_type` that is `N_A`, expected `Bearer` or `DPoP`"),
        (json!({"token_type": "\u{1b}[31mPoP"}), "expected `Bearer` or `DPoP`"),
        (json!({"expires_in": "soon"}), "`expires_in`"),
        (json!({"expires_in": {}}), "`expires_in` that is an object, expected a number of seconds"),
        (json!({"access_token": null}), "lacks the member `access_token`"),
        (json!({"access_token": 7}), "`access_token` that is a number"),
        (json!({"access_token": "a\nb"}), "characters that no header may have"),
        (json!({"refresh_token": []}), "`refresh_token` that is an array"),
        (json!({"scope": "a\u{7}"}), "`scope`"),
    ] {
        let shown = token(base(changes)).unwrap_err().to_string();
        assert!(shown.contains(expected) && shown.contains("token response"), "{shown}");
    }

    // An error with status 200, whose reason is what counts.
    let error = token(answer(json!({"ok": false, "error": "incorrect_client_credentials",
        "error_description": "the client secret is missing (S-77)"})));
    assert!(error.unwrap_err().to_string().contains("S-77"));

    // A form instead of JSON.
    let form = Fake::sound().on("https://as.example/token", |_| {
        let media_type = "application/x-www-form-urlencoded; charset=utf-8";
        raw(200, media_type, "access_token=a%2Bb&token_type=bearer&expires_in=60")
    });
    let read = token(form).unwrap();
    assert_eq!(read.access_token.expose(), "a+b");
    assert_eq!(read.expires_in.unwrap().as_secs(), 60);
}
