use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn headers(values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn read(values: &[&str]) -> Vec<(String, Vec<(String, String)>)> {
    let all = Challenge::all(&headers(values));
    all.into_iter().map(|challenge| (challenge.scheme, challenge.parameters)).collect()
}

fn challenge(scheme: &str, parameters: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    (scheme.to_owned(), parameters.iter().map(own).collect())
}

#[test]
fn the_grammar_of_challenges() {
    assert_eq!(read(&["Bearer"]), [challenge("bearer", &[])]);
    assert_eq!(
        read(&[r#"Bearer realm="a, b", scope="x y" , error=invalid_token"#]),
        [challenge("bearer", &[("realm", "a, b"), ("scope", "x y"), ("error", "invalid_token")])]
    );
    assert_eq!(
        read(&[r#"Negotiate YII=, Basic realm="q\"\\q", BEARER a = "1""#, "DPoP algs=\"ES256\""]),
        [
            challenge("negotiate", &[]),
            challenge("basic", &[("realm", "q\"\\q")]),
            challenge("bearer", &[("a", "1")]),
            challenge("dpop", &[("algs", "ES256")]),
        ]
    );
    assert_eq!(
        read(&["Negotiate, Bearer"]),
        [challenge("negotiate", &[]), challenge("bearer", &[])]
    );
    assert_eq!(
        read(&[r#"Bearer a="1" b="2""#]),
        [challenge("bearer", &[("a", "1"), ("b", "2")])],
        "a missing comma"
    );
    assert_eq!(
        read(&["Bearer resource_metadata=https://a.example/x, scope=a"]),
        [challenge("bearer", &[("resource_metadata", "https://a.example/x"), ("scope", "a")])],
        "a URL without quotes"
    );
    assert_eq!(read(&[r#"Bearer a="1", b="2"#]), [challenge("bearer", &[("a", "1")])], "unclosed");
    assert_eq!(read(&["=x", "", ",,", "a=b"]), []);
}

#[test]
fn demands() {
    let of = |status: u16, values: &[&str]| {
        Demand::of(StatusCode::from_u16(status).unwrap(), &headers(values))
    };
    let Some(Demand::Token(asked)) =
        of(401, &[r#"Bearer resource_metadata="https://a.example/prm", scope="a b""#])
    else {
        panic!("a token is asked for");
    };
    assert_eq!(asked.resource_metadata.as_deref(), Some("https://a.example/prm"));
    assert_eq!(asked.scopes.unwrap().to_string(), "a b");
    assert!(!asked.dpop);
    let refused = Asked { refused: true, ..Asked::default() };
    assert_eq!(of(401, &[]), Some(Demand::Token(refused)));
    let Some(Demand::Token(asked)) = of(401, &[r#"DPoP error="invalid_token""#]) else { panic!() };
    assert!(asked.dpop);
    let Some(Demand::Token(asked)) = of(401, &["DPoP", "Bearer"]) else { panic!() };
    assert!(!asked.dpop);
    let Some(Demand::MoreScopes(asked)) =
        of(403, &[r#"Bearer error="insufficient_scope", scope="files:write""#])
    else {
        panic!("more scopes are asked for");
    };
    assert_eq!(asked.scopes.unwrap().to_string(), "files:write");
    assert_eq!(of(403, &["Bearer"]), None);
    assert_eq!(of(403, &[]), None);
    assert_eq!(of(200, &["Bearer"]), None);

    let mut with_nonce = headers(&[r#"DPoP error="use_dpop_nonce""#]);
    let status = StatusCode::UNAUTHORIZED;
    assert!(matches!(Demand::of(status, &with_nonce), Some(Demand::Token(_))), "without the nonce");
    with_nonce.insert("dpop-nonce", HeaderValue::from_static("n-1"));
    assert_eq!(Demand::of(status, &with_nonce), Some(Demand::DpopNonce("n-1".to_owned())));
}

proptest! {
    #[test]
    fn no_header_breaks_the_reader(bytes in proptest::collection::vec(0x20_u8..=0xff, 0..200)) {
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            headers.append(header::WWW_AUTHENTICATE, value);
        }
        for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN] {
            let _demand = Demand::of(status, &headers);
        }
    }

    #[test]
    fn quoted_values_come_back(value in "[ -~]{0,40}") {
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!("Bearer a=\"{quoted}\", b=c");
        let read = read(&[&text]);
        prop_assert_eq!(read, [challenge("bearer", &[("a", &value), ("b", "c")])]);
    }
}
