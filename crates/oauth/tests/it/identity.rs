//! ID tokens and identity assertions: each claim that has to be right.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use plenipo_oauth::{
    ExpectedAssertion, IdentityAssertion, Issuer, OAuthError, ResourceId, Scopes, TokenResponse,
    TokenType, check_id_token, token_type,
};
use plenipo_redact::Secret;
use serde_json::{Value, json};

const IDP: &str = "https://idp.example";
const RAS: &str = "https://ras.example";
const NOW: u64 = 1_800_000_000;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

fn jwt(header: &Value, claims: &Value) -> Secret<String> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    Secret::new(format!("{}.{}.c2ln", part(header), part(claims)))
}

fn changed(mut base: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(base.as_object_mut().unwrap().remove(name)),
            value => base[name] = value.clone(),
        }
    }
    base
}

fn id_token(changes: Value) -> Result<plenipo_oauth::Subject, OAuthError> {
    let base = json!({"iss": IDP, "sub": "u1", "aud": "c1", "exp": NOW + 60, "iat": NOW,
        "nonce": "n1", "email": "ada@example.com"});
    let token = jwt(&json!({"alg": "RS256"}), &changed(base, changes));
    let issuer = Issuer::parse(IDP).unwrap();
    check_id_token(&token, &issuer, "c1", Some(&Secret::new("n1".to_owned())), now())
}

#[test]
fn an_id_token_says_who_signed_in() {
    let subject = id_token(json!({})).unwrap();
    assert_eq!(
        (subject.subject.as_str(), subject.name.as_deref()),
        ("u1", Some("ada@example.com"))
    );
    id_token(json!({"aud": ["c1"]})).unwrap();
    id_token(json!({"aud": ["c1", "c2"], "azp": "c1"})).unwrap();
    for (changes, expected) in [
        (json!({"iss": "https://idp.example/"}), "another `iss`"),
        (json!({"aud": "c2"}), "another `aud`"),
        (json!({"aud": ["c1", "c2"]}), "another `azp`"),
        (json!({"azp": "c2"}), "another `azp`"),
        (json!({"exp": NOW - 61}), "has expired"),
        (json!({"exp": null}), "lacks the claim `exp`"),
        (json!({"iat": NOW + 120}), "not valid yet"),
        (json!({"nonce": "n2"}), "another `nonce`"),
        (json!({"nonce": null}), "another `nonce`"),
        (json!({"sub": null}), "lacks the claim `sub`"),
        (json!({"sub": ""}), "lacks the claim `sub`"),
    ] {
        let shown = id_token(changes.clone()).unwrap_err().to_string();
        assert!(
            shown.starts_with("the ID token ") && shown.contains(expected),
            "{changes}: {shown}"
        );
    }
}

fn assertion(header: Value, changes: Value) -> Result<IdentityAssertion, OAuthError> {
    answered(header, changes, |_| {})
}

fn answered(
    header: Value,
    changes: Value,
    change: impl FnOnce(&mut TokenResponse),
) -> Result<IdentityAssertion, OAuthError> {
    let base = json!({"iss": IDP, "sub": "u1", "aud": RAS, "client_id": "c2", "jti": "j1",
        "exp": NOW + 300, "iat": NOW, "resource": "https://mcp.example/mcp", "scope": "a"});
    let header = changed(json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"}), header);
    let token = jwt(&header, &changed(base, changes));
    let mut response = TokenResponse::new(token, TokenType::NotApplicable);
    response.issued_token_type = Some(token_type::ID_JAG.to_owned());
    change(&mut response);
    let (idp, ras) = (Issuer::parse(IDP).unwrap(), Issuer::parse(RAS).unwrap());
    let resource = ResourceId::parse("https://mcp.example/mcp").unwrap();
    let scopes = Scopes::parse("a b").unwrap();
    let mut expected = ExpectedAssertion::new(&idp, &ras, "c2", &resource);
    expected.scopes = Some(&scopes);
    IdentityAssertion::of(response, expected, now())
}

#[test]
fn an_identity_assertion_is_checked_claim_by_claim() {
    let checked = assertion(json!({}), json!({})).unwrap();
    assert_eq!(checked.scopes.unwrap().to_string(), "a");
    for good in [
        json!({"aud": [RAS]}),
        json!({"resource": ["https://mcp.example/mcp"]}),
        json!({"resource": null}),
        json!({"scope": null}),
        json!({"iat": NOW + 30}),
    ] {
        assertion(json!({}), good).unwrap();
    }
    for (changes, expected) in [
        (json!({"iss": RAS}), "another `iss`"),
        (json!({"aud": IDP}), "another `aud`"),
        (json!({"aud": [RAS, IDP]}), "another `aud`"),
        (json!({"aud": "https://ras.example/"}), "another `aud`"),
        (json!({"client_id": "c1"}), "another `client_id`"),
        (json!({"client_id": null}), "lacks the claim `client_id`"),
        (json!({"resource": "https://mcp.example/"}), "another `resource`"),
        (json!({"resource": 7}), "another `resource`"),
        (json!({"scope": "a c"}), "another `scope`"),
        (json!({"scope": ["a"]}), "another `scope`"),
        (json!({"sub": null}), "lacks the claim `sub`"),
        (json!({"jti": ""}), "lacks the claim `jti`"),
        (json!({"iat": null}), "lacks the claim `iat`"),
        (json!({"exp": NOW - 100}), "has expired"),
        (json!({"iat": NOW + 100}), "not valid yet"),
    ] {
        let shown = assertion(json!({}), changes.clone()).unwrap_err().to_string();
        assert!(shown.contains(expected), "{changes}: {shown}");
    }
    for header in [json!({"typ": "JWT"}), json!({"typ": null})] {
        let shown = assertion(header, json!({})).unwrap_err().to_string();
        assert!(shown.contains("another type than `oauth-id-jag+jwt`"), "{shown}");
    }
    for algorithm in ["none", "None", "HS256"] {
        let shown = assertion(json!({"alg": algorithm}), json!({})).unwrap_err().to_string();
        assert!(shown.contains("accepted algorithm"), "{shown}");
    }
}

#[test]
fn the_answer_beside_the_assertion_has_to_agree() {
    let with = |change: fn(&mut TokenResponse)| answered(json!({}), json!({}), change);
    with(|_| {}).unwrap();
    with(|response| response.refresh_token = Some(Secret::new("ignored".to_owned()))).unwrap();
    with(|response| response.issued_token_type = None).unwrap_err();
    with(|response| response.issued_token_type = Some(token_type::ACCESS_TOKEN.to_owned()))
        .unwrap_err();
    with(|response| response.token_type = TokenType::Bearer).unwrap_err();
    with(|response| response.scopes = Some(Scopes::parse("b").unwrap())).unwrap_err();
    for (token, expected) in
        [("a.b.c.d.e", "is encrypted"), ("a.b", "not a signed JWT"), ("", "not a signed JWT")]
    {
        let error = answered(json!({}), json!({}), |response| {
            response.access_token = Secret::new(token.to_owned());
        });
        assert!(error.unwrap_err().to_string().contains(expected));
    }
}
