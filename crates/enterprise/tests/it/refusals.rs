//! Everything that can be wrong: one row of each of the profile's tables of what has to be checked.
//! Each ends in its class, with nothing sent afterwards.

use std::time::Duration;

use plenipo_enterprise::{
    BearerClient, BearerOptions, Condition, EnterpriseError, ErrorClass, Source, Unselected,
};
use plenipo_oauth::{ClientCredential, ClientRegistration, Issuer, ResourceId};
use plenipo_redact::Secret;
use serde_json::{Value, json};

use crate::parties::{Company, Instead, MCP, NOW, RAS, Told};
use crate::support::IDP;

type Tell = fn(&mut Told);

/// Asks for a token with parties that are told something: the class of the error, and what was asked.
async fn refused(tell: impl FnOnce(&mut Told)) -> (ErrorClass, String, Vec<String>) {
    refused_with(tell, |_| {}).await
}

async fn refused_with(
    tell: impl FnOnce(&mut Told),
    change: impl FnOnce(&mut BearerOptions),
) -> (ErrorClass, String, Vec<String>) {
    let company = Company::signed_in();
    company.parties.tell(tell);
    let mut options = company.options();
    change(&mut options);
    let client = BearerClient::open(options, None).unwrap();
    let error = client.token(MCP).await.unwrap_err();
    let shown = format!("{error} {} {error:?}", error.hint());
    assert!(!shown.contains("s3cr3t"), "{shown}");
    assert!(client.fresh().is_none());
    (error.class(), error.to_string(), company.parties.log())
}

/// Rows of 2.3: what the assertion says, and how it is answered.
#[tokio::test]
async fn ema_claims_of_the_assertion() {
    let rows: &[(&str, Tell, &str)] = &[
        ("typ", |told| told.header = json!({"typ": "JWT"}), "another type"),
        ("no typ", |told| told.header = json!({"typ": null}), "another type"),
        ("alg none", |told| told.header = json!({"alg": "none"}), "accepted algorithm"),
        ("alg symmetric", |told| told.header = json!({"alg": "HS256"}), "accepted algorithm"),
        ("iss", |told| told.claims = json!({"iss": RAS}), "another `iss`"),
        ("iss slash", |told| told.claims = json!({"iss": "https://idp.example/"}), "another `iss`"),
        ("aud", |told| told.claims = json!({"aud": IDP}), "another `aud`"),
        ("aud of two", |told| told.claims = json!({"aud": [RAS, IDP]}), "another `aud`"),
        ("no aud", |told| told.claims = json!({"aud": null}), "another `aud`"),
        ("client_id", |told| told.claims = json!({"client_id": "plenipo"}), "another `client_id`"),
        ("no client_id", |told| told.claims = json!({"client_id": null}), "`client_id`"),
        (
            "resource",
            |told| told.claims = json!({"resource": "https://mcp.example/other"}),
            "another `resource`",
        ),
        ("resource of two", |told| told.claims = json!({"resource": [MCP, RAS]}), "`resource`"),
        ("scope", |told| told.claims = json!({"scope": "crm.read crm.admin"}), "another `scope`"),
        ("scope beside", |told| told.exchanged = json!({"scope": "crm.write"}), "another `scope`"),
        ("exp", |told| told.claims = json!({"exp": NOW - 61}), "has expired"),
        ("no exp", |told| told.claims = json!({"exp": null}), "`exp`"),
        ("iat", |told| told.claims = json!({"iat": NOW + 120}), "not valid yet: the clocks differ"),
        ("no iat", |told| told.claims = json!({"iat": null}), "`iat`"),
        ("jti", |told| told.claims = json!({"jti": ""}), "`jti`"),
        ("no jti", |told| told.claims = json!({"jti": null}), "`jti`"),
        ("no sub", |told| told.claims = json!({"sub": null}), "`sub`"),
        ("bound to a key", |told| told.claims = json!({"cnf": {"jkt": "x"}}), "`cnf.jkt`"),
        ("encrypted", |told| told.assertion = Some("a.b.c.d.e".to_owned()), "is encrypted"),
        ("no JWT", |told| told.assertion = Some("abc".to_owned()), "not a signed JWT"),
        (
            "issued_token_type",
            |told| told.exchanged = json!({"issued_token_type": "urn:x"}),
            "`issued_token_type`",
        ),
        ("token_type", |told| told.exchanged = json!({"token_type": "Bearer"}), "`token_type`"),
    ];
    for (row, tell, expected) in rows {
        let (class, text, log) = refused(tell).await;
        assert_eq!(class, ErrorClass::AssertionUnusable, "{row}: {text}");
        assert!(text.contains(expected), "{row}: {text}");
        assert_eq!(log.last().unwrap(), "exchange", "{row}: nothing is redeemed");
        assert_eq!(log.len(), 5, "{row}");
    }
    // The controls: what may be there, and what may be missing.
    let good: &[Tell] = &[
        |told| told.claims = json!({"aud": [RAS]}),
        |told| told.claims = json!({"resource": [MCP]}),
        |told| told.claims = json!({"resource": null}),
        |told| told.claims = json!({"scope": "crm.read"}),
        |told| told.claims = json!({"iat": NOW + 30}),
        |told| told.exchanged = json!({"token_type": "n_a"}),
    ];
    for tell in good {
        let company = Company::signed_in();
        company.parties.tell(tell);
        company.token().await.unwrap();
    }
}

/// Rows of 2.3 that depend on settings: tenant, algorithms, a key that is not ours.
#[tokio::test]
async fn ema_claims_that_settings_ask_for() {
    let tenant = |options: &mut BearerOptions| {
        options.provider.tenant = Some("acme".to_owned());
    };
    for told in [json!({}), json!({"tenant": "other"})] {
        let (class, text, log) = refused_with(|all| all.claims = told, tenant).await;
        assert_eq!((class, log.len()), (ErrorClass::AssertionUnusable, 5), "{text}");
        assert!(text.contains("`tenant`"), "{text}");
    }
    let company = Company::signed_in();
    company.parties.tell(|told| told.claims = json!({"tenant": "acme"}));
    let mut options = company.options();
    tenant(&mut options);
    BearerClient::open(options, None).unwrap().token(MCP).await.unwrap();

    let algorithms = |options: &mut BearerOptions| {
        options.server.algorithms = Some(vec!["RS256".to_owned()]);
    };
    let (class, text, log) = refused_with(|_| {}, algorithms).await;
    assert_eq!((class, log.len()), (ErrorClass::AssertionUnusable, 5), "{text}");

    // A proof was sent, and the assertion is bound to no key, or to another one.
    for cnf in [Value::Null, json!({"jkt": "other"}), json!({})] {
        let dpop = |options: &mut BearerOptions| options.server.dpop = true;
        let (class, text, log) = refused_with(|told| told.claims = json!({"cnf": cnf}), dpop).await;
        assert_eq!((class, log.len()), (ErrorClass::AssertionUnusable, 5), "{text}");
        assert!(text.contains("cnf.jkt"), "{text}");
    }
}

/// Rows of 2.4: refusals of the identity provider.
#[tokio::test]
async fn ema_refusals_of_the_identity_provider() {
    use ErrorClass as Class;
    let rows = [
        ("insufficient_user_authentication", Class::MoreAuthentication),
        ("invalid_grant", Class::EnterpriseGrantRejected),
        ("access_denied", Class::PolicyRefused),
        ("invalid_target", Class::PolicyRefused),
        ("invalid_scope", Class::PolicyRefused),
        ("unauthorized_client", Class::PolicyRefused),
        ("invalid_client", Class::IdentityClientRejected),
        ("unsupported_grant_type", Class::MetadataUnusable),
        ("temporarily_unavailable", Class::Unreachable),
        ("server_error", Class::Unreachable),
    ];
    for (code, expected) in rows {
        let instead = vec![Instead::Error(400, code)];
        let (class, text, log) =
            refused(|told| drop(told.instead.insert("exchange", instead))).await;
        assert_eq!(class, expected, "{code}: {text}");
        assert!(text.contains(code), "{text}");
        assert_eq!(
            (log.len(), log[4].as_str()),
            (5, "exchange"),
            "{code}: asked once, and stopped"
        );
    }
}

/// Of the account, the same refusals name the account.
#[tokio::test]
async fn ema_refusals_name_their_source() {
    let company = Company::new();
    company.sign_in(Source::Account, company.grant());
    company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
    let error = company.token().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::AccountGrantRejected);
    assert_eq!(error.hint(), "run `plenipo account login`");
    // It is not tried again, and nothing else takes its place.
    company.parties.forget();
    let error = company.token().await.unwrap_err();
    let rejected = Unselected::Unusable { source: Source::Account, condition: Condition::Rejected };
    assert!(matches!(error, EnterpriseError::Unselected(found) if found == rejected));
    assert!(company.parties.log().is_empty());
    // A sign-in mends it.
    company.sign_in(Source::Account, company.grant());
    company.token().await.unwrap();
}

/// Rows of 2.4: refusals of the resource's authorization server.
#[tokio::test]
async fn ema_refusals_of_the_authorization_server() {
    use ErrorClass as Class;
    let rows = [
        ("invalid_client", Class::Misconfigured),
        ("access_denied", Class::PolicyRefused),
        ("invalid_scope", Class::PolicyRefused),
        ("unauthorized_client", Class::PolicyRefused),
        ("invalid_target", Class::PolicyRefused),
        ("unsupported_grant_type", Class::MetadataUnusable),
        ("server_error", Class::Unreachable),
        ("invalid_request", Class::ResourceGrantRejected),
    ];
    for (code, expected) in rows {
        let instead = vec![Instead::Error(400, code)];
        let (class, text, log) = refused(|told| drop(told.instead.insert("redeem", instead))).await;
        assert_eq!(class, expected, "{code}: {text}");
        assert_eq!(log[4..], ["exchange", "redeem"], "{code}");
    }
}

/// `invalid_grant` at the authorization server: one new assertion, and no third.
#[tokio::test]
async fn ema_a_refused_assertion_is_replaced_once_and_never_replayed() {
    let company = Company::signed_in();
    // What a clock that differs by seconds does to the first one.
    company.parties.instead("redeem", Instead::Error(400, "invalid_grant"));
    company.token().await.unwrap();
    let log = company.parties.log();
    assert_eq!(log[4..], ["exchange", "redeem", "exchange", "redeem"]);
    let forms = company.parties.forms.lock().unwrap().clone();
    assert_ne!(forms[5].1["assertion"], forms[7].1["assertion"]);

    let twice = vec![Instead::Error(400, "invalid_grant"); 2];
    let (class, text, log) = refused(|told| drop(told.instead.insert("redeem", twice))).await;
    assert_eq!(class, ErrorClass::ResourceGrantRejected, "{text}");
    assert_eq!(log[4..], ["exchange", "redeem", "exchange", "redeem"]);
}

/// What is refused twice is said with the clock, where that is far off.
#[tokio::test]
async fn ema_a_clock_that_is_far_off_is_named() {
    // The parties live on 15 January 2027, 08:00.
    for (date, expected) in [
        ("Fri, 15 Jan 2027 07:58:25 GMT", Some("its clock is 95 s behind")),
        ("Fri, 15 Jan 2027 08:02:00 GMT", Some("its clock is 120 s ahead")),
        ("Fri, 15 Jan 2027 08:00:20 GMT", None),
        ("yesterday", None),
    ] {
        let twice = vec![Instead::Error(400, "invalid_grant"); 2];
        let (class, text, log) = refused(|told| {
            told.date = Some(date);
            told.instead.insert("redeem", twice);
        })
        .await;
        assert_eq!(class, ErrorClass::ResourceGrantRejected, "{text}");
        assert_eq!(log[4..], ["exchange", "redeem", "exchange", "redeem"]);
        match expected {
            Some(expected) => assert!(text.contains(expected), "{text}"),
            None => assert!(!text.contains("clock"), "{text}"),
        }
    }
}

/// An assertion that ended while it was on its way is not redeemed.
#[tokio::test]
async fn ema_an_assertion_is_not_redeemed_after_its_end() {
    let company = Company::signed_in();
    // Within the skew when it is looked at, and over by the clock here.
    company.parties.tell(|told| told.claims = json!({"exp": NOW - 30, "iat": NOW - 330}));
    let error = company.token().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::AssertionUnusable);
    assert!(error.to_string().contains("has expired"), "{error}");
    assert_eq!(company.parties.log().last().unwrap(), "exchange");
}

/// Answers of the authorization server that cannot be used.
#[tokio::test]
async fn ema_answers_of_the_authorization_server() {
    let rows: &[(&str, Tell)] = &[
        ("no life", |told| told.redeemed = json!({"expires_in": 0})),
        ("more scopes", |told| told.redeemed = json!({"scope": "crm.read crm.admin"})),
        ("another type", |told| told.redeemed = json!({"token_type": "DPoP"})),
        ("no type to send", |told| told.redeemed = json!({"token_type": "N_A"})),
        ("no token", |told| told.redeemed = json!({"access_token": null})),
        ("empty token", |told| told.redeemed = json!({"access_token": ""})),
        ("a token with a line", |told| told.redeemed = json!({"access_token": "a\nb"})),
        ("more than the assertion", |told| {
            told.claims = json!({"scope": "crm.read"});
            told.redeemed = json!({"scope": "crm.read crm.write"});
        }),
    ];
    for (row, tell) in rows {
        let (class, text, log) = refused(tell).await;
        assert_eq!(class, ErrorClass::MetadataUnusable, "{row}: {text}");
        assert_eq!(log.last().unwrap(), "redeem", "{row}");
        assert_eq!(log.len(), 6, "{row}");
    }
    let bearer = |options: &mut BearerOptions| options.server.dpop = true;
    let told = json!({"token_type": "Bearer"});
    let (class, text, _) = refused_with(|all| all.redeemed = told, bearer).await;
    assert_eq!(class, ErrorClass::MetadataUnusable, "a downgrade: {text}");
}

/// Rows of 2.4: the ladder ends, and nothing is asked that cannot help.
#[tokio::test]
async fn ema_the_ladder_ends_in_a_sign_in() {
    // Only an ID token, and it has ended meanwhile.
    let company = Company::new();
    let mut grant = company.grant();
    grant.refresh_token = None;
    company.sign_in(Source::Enterprise, grant);
    let client = company.open().unwrap();
    company.parties.pass(Duration::from_secs(600));
    let error = client.token(MCP).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::EnterpriseSignIn);
    assert_eq!(company.parties.log().len(), 4, "nobody is asked for anything");

    // The ID token is refused, and so is the refresh.
    let company = Company::signed_in();
    company.parties.instead("exchange", Instead::Error(400, "invalid_request"));
    company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
    company.parties.instead("refresh", Instead::Error(400, "invalid_grant"));
    let error = company.token().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::EnterpriseGrantRejected);
    assert_eq!(company.parties.log()[4..], ["exchange", "exchange", "refresh"]);

    // The ID token that is refreshed is refused as well: that was the last rung.
    let company = Company::signed_in();
    company.parties.instead("exchange", Instead::Error(400, "invalid_request"));
    company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
    company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
    let error = company.token().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::EnterpriseGrantRejected);
    let log = company.parties.log();
    assert_eq!(log[4..], ["exchange", "exchange", "refresh", "keys", "exchange"]);
}

/// ID tokens that a refresh brings: about this person, by this issuer, for this client.
#[tokio::test]
async fn ema_refreshed_id_tokens_are_verified() {
    let rows = [
        json!({"sub": "bob"}),
        json!({"iss": RAS}),
        json!({"aud": "other"}),
        json!({"aud": ["plenipo", "other"]}),
        json!({"exp": NOW - 100}),
    ];
    for row in rows {
        let company = Company::signed_in();
        company.parties.instead("exchange", Instead::Error(400, "invalid_request"));
        company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
        company.parties.tell(|told| told.id_token = row.clone());
        let error = company.token().await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::AssertionUnusable, "{row}: {error}");
        assert_eq!(company.parties.log().last().unwrap(), "keys", "{row}");
    }
}

/// What is published, the class it ends in, and the last thing that is asked for.
const PUBLISHED: &[(&str, Tell, ErrorClass, &str)] = &[
    (
        "another authorization server",
        |told| told.resource = json!({"authorization_servers": ["https://evil.example"]}),
        ErrorClass::IssuerMismatch,
        "resource",
    ),
    (
        "a slash more",
        |told| told.resource = json!({"authorization_servers": ["https://ras.example/"]}),
        ErrorClass::IssuerMismatch,
        "resource",
    ),
    (
        "another resource",
        |told| told.resource = json!({"resource": "https://mcp.example/"}),
        ErrorClass::MetadataUnusable,
        "resource",
    ),
    (
        "a resource elsewhere",
        |told| told.resource = json!({"resource": "https://evil.example/mcp"}),
        ErrorClass::MetadataUnusable,
        "resource",
    ),
    (
        "metadata of another issuer",
        |told| told.authorization = json!({"issuer": "https://evil.example"}),
        ErrorClass::IssuerMismatch,
        "authorization",
    ),
    (
        "a token endpoint elsewhere",
        |told| told.authorization = json!({"token_endpoint": "https://evil.example/token"}),
        ErrorClass::MetadataUnusable,
        "authorization",
    ),
    (
        "no profile",
        |told| told.authorization = json!({"authorization_grant_profiles_supported": []}),
        ErrorClass::MetadataUnusable,
        "authorization",
    ),
    (
        "no grant",
        |told| told.authorization = json!({"grant_types_supported": ["authorization_code"]}),
        ErrorClass::MetadataUnusable,
        "authorization",
    ),
    (
        "a profile without its grant",
        |told| told.authorization = json!({"grant_types_supported": null}),
        ErrorClass::MetadataUnusable,
        "authorization",
    ),
    (
        "the provider of another issuer",
        |told| told.provider = json!({"issuer": "https://idp.example/"}),
        ErrorClass::IssuerMismatch,
        "provider",
    ),
    (
        "a provider without assertions",
        |told| {
            told.provider = json!({"identity_chaining_requested_token_types_supported": ["urn:x"]});
        },
        ErrorClass::MetadataUnusable,
        "provider",
    ),
    (
        "a provider without exchanges",
        |told| told.provider = json!({"grant_types_supported": ["authorization_code"]}),
        ErrorClass::MetadataUnusable,
        "provider",
    ),
];

/// Rows of 2.5: what the resource's side publishes, held against what is pinned.
#[tokio::test]
async fn ema_pins_of_the_resources_side() {
    for (row, tell, expected, last) in PUBLISHED {
        let (class, text, log) = refused(tell).await;
        assert_eq!(class, *expected, "{row}: {text}");
        assert_eq!(log.last().unwrap(), last, "{row}: nothing is asked after that");
        assert!(!text.contains("evil"), "{row}: {text}");
    }
    let slash = |told: &mut Told| {
        told.resource = json!({"authorization_servers": ["https://ras.example/"]});
    };
    let (_, text, _) = refused(slash).await;
    assert!(text.contains("a slash at the end differs"), "{text}");
    // An absent list proves nothing.
    let company = Company::signed_in();
    company.parties.tell(|told| {
        told.authorization = json!({"authorization_grant_profiles_supported": null,
            "grant_types_supported": null});
    });
    company.token().await.unwrap();
}

/// Rows of 2.5: settings.
#[tokio::test]
async fn ema_pins_of_the_configuration() {
    let several = |told: &mut Told| {
        told.resource = json!({"authorization_servers": [RAS, "https://other.example"]});
    };
    let unpinned = |options: &mut BearerOptions| options.server.issuer = None;
    let (class, text, log) = refused_with(several, unpinned).await;
    assert_eq!((class, log.len()), (ErrorClass::Misconfigured, 2), "{text}");

    // A client that is registered elsewhere.
    let foreign = |options: &mut BearerOptions| {
        let mut client = ClientRegistration::configured("plenipo-crm", ClientCredential::None);
        client.issuer = Some(Issuer::parse("https://other.example").unwrap());
        options.server.client = client;
    };
    let (class, text, log) = refused_with(|_| {}, foreign).await;
    assert_eq!((class, log.len()), (ErrorClass::IssuerMismatch, 3), "{text}");

    // The identity provider itself as the resource's authorization server.
    let same = |told: &mut Told| told.resource = json!({"authorization_servers": [IDP]});
    let pinned = |options: &mut BearerOptions| {
        options.server.issuer = Some(Issuer::parse(IDP).unwrap());
    };
    let (class, text, log) = refused_with(same, pinned).await;
    assert_eq!((class, log.len()), (ErrorClass::MetadataUnusable, 2), "{text}");

    // A way to authenticate that the client has nothing for.
    let key_only = |told: &mut Told| {
        told.authorization = json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]});
    };
    let secret = |options: &mut BearerOptions| {
        let secret = Secret::new("client-s3cr3t".to_owned());
        options.server.client.credential = ClientCredential::Secret(secret);
    };
    let (class, text, log) = refused_with(key_only, secret).await;
    assert_eq!(class, ErrorClass::Misconfigured, "{text}");
    assert_eq!(log.last().unwrap(), "exchange", "nothing is sent to the authorization server");

    let resource = |options: &mut BearerOptions| {
        options.server.resource = Some(ResourceId::parse("https://mcp.example/").unwrap());
    };
    let (class, text, log) = refused_with(|_| {}, resource).await;
    assert_eq!((class, log.len()), (ErrorClass::MetadataUnusable, 2), "{text}");
}

/// No redirection is followed, nothing is waited for without end, no body is read without end.
#[tokio::test]
async fn ema_token_endpoints_that_misbehave() {
    use ErrorClass as Class;
    for what in ["exchange", "redeem"] {
        let rows = [
            (Instead::Redirect, Class::MetadataUnusable),
            (Instead::Timeout, Class::Timeout),
            (Instead::Unreachable, Class::Unreachable),
            (Instead::TooLong, Class::MetadataUnusable),
            (Instead::Status(503), Class::Unreachable),
            (Instead::Status(404), Class::MetadataUnusable),
            (Instead::Status(200), Class::MetadataUnusable),
        ];
        for (instead, expected) in rows {
            let (class, text, log) =
                refused(|told| drop(told.instead.insert(what, vec![instead]))).await;
            assert_eq!(class, expected, "{what}: {text}");
            assert_eq!(log.last().unwrap(), what, "{text}");
        }
    }
}

/// Nobody is signed in: nothing is sent, and the error says what to run.
#[tokio::test]
async fn ema_without_a_sign_in_nothing_is_sent() {
    let company = Company::new();
    let error = company.token().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::EnterpriseSignIn);
    assert_eq!(error.hint(), "run `plenipo enterprise login`");
    assert!(company.parties.log().is_empty());
}

/// The configured issuer and the account's differ by a slash: a sentence of its own, with both.
#[tokio::test]
async fn ema_a_slash_at_the_end_has_its_own_sentence() {
    let company = Company::new();
    company.sign_in(Source::Account, company.grant());
    let mut options = company.options();
    options.provider.issuer = Issuer::parse("https://idp.example/").unwrap();
    let error = BearerClient::open(options, None).unwrap_err();
    assert_eq!(error.class(), ErrorClass::IssuerMismatch);
    let text = error.to_string();
    assert!(text.contains("`https://idp.example/`") && text.contains("`https://idp.example`"));
    assert!(company.parties.log().is_empty());
}
