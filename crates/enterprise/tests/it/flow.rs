//! The flow when everybody does what they should, and its modes.

use std::sync::Arc;
use std::time::Duration;

use plenipo_enterprise::{BearerClient, EnterpriseError, Source};
use plenipo_oauth::jose::SigningKey;
use plenipo_oauth::{ClientCredential, TokenType};
use plenipo_redact::Secret;
use serde_json::json;

use crate::parties::{Company, DISCOVERY, Instead, MCP, RAS};

fn after_discovery(log: &[String]) -> Vec<&str> {
    assert_eq!(log[..4], DISCOVERY, "the resource's side comes first");
    log[4..].iter().map(String::as_str).collect()
}

#[tokio::test]
async fn ema_the_whole_flow() {
    let company = Company::signed_in();
    let client = company.open().unwrap();
    assert!(company.parties.log().is_empty(), "nothing is sent to choose an identity");
    let bearer = client.token(MCP).await.unwrap();
    assert!(bearer.value.expose().starts_with("at-s3cr3t"));
    assert_eq!(bearer.token_type, TokenType::Bearer);
    assert_eq!(after_discovery(&company.parties.log()), ["exchange", "redeem"]);

    let forms = company.parties.forms.lock().unwrap().clone();
    let (_, exchange, _) = &forms[4];
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("audience", RAS),
        ("resource", MCP),
        ("scope", "crm.read crm.write"),
        ("subject_token", "rt-s3cr3t-0"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:refresh_token"),
        ("client_id", "plenipo"),
    ] {
        assert_eq!(exchange.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(exchange.len(), 8);
    let (_, redeem, _) = &forms[5];
    assert_eq!(redeem["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(redeem["client_id"], "plenipo-crm");
    assert_eq!(redeem.len(), 3);
}

#[tokio::test]
async fn ema_a_token_is_used_for_five_minutes_less_the_skew_and_no_longer() {
    let company = Company::signed_in();
    let client = company.open().unwrap();
    // The authorization server says an hour.
    let first = client.token(MCP).await.unwrap();
    company.parties.pass(Duration::from_secs(269));
    assert_eq!(client.token(MCP).await.unwrap().number, first.number);
    company.parties.pass(Duration::from_secs(2));
    assert_ne!(client.token(MCP).await.unwrap().number, first.number);

    // Forty seconds: half of it is the skew at most.
    company.parties.tell(|told| told.redeemed = json!({"expires_in": 40}));
    company.parties.pass(Duration::from_secs(300));
    let short = client.token(MCP).await.unwrap();
    company.parties.pass(Duration::from_secs(19));
    assert_eq!(client.token(MCP).await.unwrap().number, short.number);
    company.parties.pass(Duration::from_secs(2));
    assert_ne!(client.token(MCP).await.unwrap().number, short.number);

    // The configuration may say less.
    let mut options = company.options();
    options.server.max_lifetime = Duration::from_secs(10);
    let client = BearerClient::open(options, None).unwrap();
    let short = client.token(MCP).await.unwrap();
    company.parties.pass(Duration::from_secs(6));
    assert_ne!(client.token(MCP).await.unwrap().number, short.number);
}

#[tokio::test]
async fn ema_a_token_goes_to_the_servers_own_url_only() {
    let company = Company::signed_in();
    let client = company.open().unwrap();
    for url in [
        "https://mcp.example/mcp/",
        "https://mcp.example/",
        "https://mcp.example/mcp?x=1",
        "http://mcp.example/mcp",
        "https://mcp.example:8443/mcp",
        "https://evil.example/mcp",
        "",
    ] {
        let error = client.token(url).await.unwrap_err();
        assert!(matches!(error, EnterpriseError::Outside), "{url}");
    }
    assert!(company.parties.log().is_empty());
    client.token("https://MCP.example:443/mcp").await.unwrap();
}

#[tokio::test]
async fn ema_a_refused_token_is_dropped_and_a_newer_one_is_not() {
    let company = Company::signed_in();
    let client = company.open().unwrap();
    let first = client.token(MCP).await.unwrap();
    assert!(matches!(client.refused(first.number), EnterpriseError::BearerRefused));
    assert!(client.fresh().is_none());
    let second = client.token(MCP).await.unwrap();
    assert_ne!(first.number, second.number);
    client.refused(first.number);
    assert_eq!(client.fresh().unwrap().number, second.number);
}

#[tokio::test]
async fn ema_the_renewal_ladder() {
    let company = Company::signed_in();
    let parties = &company.parties;
    // The provider does not take refresh tokens: the ID token that came with the sign-in.
    parties.instead("exchange", Instead::Error(400, "invalid_request"));
    let client = company.open().unwrap();
    client.token(MCP).await.unwrap();
    assert_eq!(after_discovery(&parties.log()), ["exchange", "exchange", "redeem"]);
    // It has ended: another one is got with the refresh token, which is rotated.
    parties.pass(Duration::from_secs(600));
    parties.tell(|told| told.rotates = true);
    parties.forget();
    client.token(MCP).await.unwrap();
    assert_eq!(parties.log(), ["refresh", "keys", "exchange", "redeem"]);
    // Another connection has what was rotated.
    parties.pass(Duration::from_secs(600));
    parties.instead("exchange", Instead::Error(400, "invalid_request"));
    parties.forms.lock().unwrap().clear();
    company.token().await.unwrap();
    let forms = parties.forms.lock().unwrap();
    let refresh = forms.iter().find(|(what, ..)| what == "refresh").unwrap();
    assert_ne!(refresh.1["refresh_token"], "rt-s3cr3t-0", "what was rotated is kept");
}

#[tokio::test]
async fn ema_private_key_jwt_on_both_sides() {
    let company = Company::signed_in();
    let mut options = company.options();
    let key = SigningKey::generate().unwrap().0;
    options.provider.client.credential = ClientCredential::Key(key.clone());
    options.server.client.credential = ClientCredential::Key(key);
    BearerClient::open(options, None).unwrap().token(MCP).await.unwrap();
    let forms = company.parties.forms.lock().unwrap();
    for (what, form, _) in forms.iter().filter(|(what, ..)| what == "exchange" || what == "redeem")
    {
        assert!(form["client_assertion_type"].ends_with("jwt-bearer"), "{what}");
        assert!(form["client_assertion"].split('.').count() == 3, "{what}");
    }
}

#[tokio::test]
async fn ema_secrets_by_basic_and_post() {
    let company = Company::signed_in();
    company.parties.tell(|told| {
        told.provider = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
    });
    let mut options = company.options();
    let secret = || ClientCredential::Secret(Secret::new("client-s3cr3t".to_owned()));
    options.provider.client.credential = secret();
    options.server.client.credential = secret();
    BearerClient::open(options, None).unwrap().token(MCP).await.unwrap();
    let forms = company.parties.forms.lock().unwrap();
    let (_, exchange, _) = forms.iter().find(|(what, ..)| what == "exchange").unwrap();
    assert_eq!(exchange["client_secret"], "client-s3cr3t");
    let (_, redeem, headers) = forms.iter().find(|(what, ..)| what == "redeem").unwrap();
    assert!(headers["authorization"].to_str().unwrap().starts_with("Basic "));
    assert!(!redeem.contains_key("client_secret"));
}

#[tokio::test]
async fn ema_dpop_when_the_server_wants_it() {
    let company = Company::signed_in();
    company.parties.tell(|told| told.resource = json!({"dpop_bound_access_tokens_required": true}));
    let client = company.open().unwrap();
    let bearer = client.token(MCP).await.unwrap();
    assert_eq!(bearer.token_type, TokenType::Dpop);
    assert!(bearer.dpop.is_some());
    let forms = company.parties.forms.lock().unwrap();
    let (_, redeem, headers) = forms.iter().find(|(what, ..)| what == "redeem").unwrap();
    assert_eq!(redeem["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-dpop");
    assert!(headers.contains_key("dpop"));
}

#[tokio::test]
async fn ema_an_encrypted_assertion_is_a_mode_of_its_own() {
    let company = Company::signed_in();
    company.parties.tell(|told| told.assertion = Some("a.b.c.d.e".to_owned()));
    let error = company.token().await.unwrap_err();
    assert!(error.to_string().contains("is encrypted"), "{error}");
    assert!(!company.parties.log().contains(&"redeem".to_owned()));

    let mut options = company.options();
    options.server.encrypted = true;
    BearerClient::open(options.clone(), None).unwrap().token(MCP).await.unwrap();
    // In this mode a plain one is wrong.
    company.parties.tell(|told| told.assertion = None);
    let error = BearerClient::open(options, None).unwrap().token(MCP).await.unwrap_err();
    assert!(error.to_string().contains("is not encrypted"), "{error}");
}

#[tokio::test]
async fn ema_a_saml_assertion_becomes_a_refresh_token() {
    let company = Company::new();
    let options = company.options();
    let saml = Secret::new("<saml-s3cr3t/>".to_owned());
    let network = options.to_provider.clone();
    let provider = options.provider.clone();
    let signed_in = provider.sign_in_with_saml(&network, saml, Source::Enterprise).await.unwrap();
    let (subject, grant) = signed_in;
    let sent = company.parties.forms.lock().unwrap()[1].1["subject_token"].clone();
    assert_eq!(sent, "PHNhbWwtczNjcjN0Lz4", "base64url, as RFC 8693 wants it");
    assert_eq!(subject.subject, "ada");
    assert_eq!(company.parties.log(), ["provider", "exchange", "refresh", "keys"]);
    assert_eq!(grant.refresh_token.as_ref().unwrap().expose(), "rt-s3cr3t-saml");
    company.sign_in(Source::Enterprise, grant);
    company.token().await.unwrap();
}

#[tokio::test]
async fn ema_a_refresh_token_for_the_server_is_thrown_away() {
    let company = Company::signed_in();
    company.parties.tell(|told| {
        told.redeemed = json!({"refresh_token": "rt-of-the-resource"});
        told.exchanged = json!({"refresh_token": "rt-of-an-exchange"});
    });
    company.token().await.unwrap();
    for entry in walk(company.directory.path()) {
        let text = std::fs::read_to_string(entry).unwrap_or_default();
        assert!(!text.contains("rt-of"), "{text}");
    }
}

#[tokio::test]
async fn ema_sixty_four_first_calls_to_twenty_servers_are_twenty_exchanges() {
    let company = Company::signed_in();
    let clients: Vec<_> = (0..20).map(|_| company.open().unwrap()).collect();
    let calls: Vec<_> = clients
        .iter()
        .flat_map(|client| {
            (0..64).map(|_| {
                let client: BearerClient = client.clone();
                tokio::spawn(async move { client.token(MCP).await.map(|bearer| bearer.number) })
            })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), 1);
    }
    let log = company.parties.log();
    let count = |what: &str| log.iter().filter(|entry| *entry == what).count();
    assert_eq!((count("exchange"), count("redeem"), count("probe")), (20, 20, 20));
}

#[tokio::test]
async fn ema_a_failure_is_shared_by_all_who_waited() {
    let company = Company::signed_in();
    company.parties.instead("exchange", Instead::Error(400, "access_denied"));
    let client = company.open().unwrap();
    let calls: Vec<_> = (0..16)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.token(MCP).await.is_err() })
        })
        .collect();
    for call in calls {
        assert!(call.await.unwrap());
    }
    let exchanges = company.parties.log().iter().filter(|entry| *entry == "exchange").count();
    assert_eq!(exchanges, 1);
}

#[tokio::test]
async fn ema_a_sign_out_elsewhere_ends_the_connection_at_once() {
    let company = Company::signed_in();
    let mut options = company.options();
    options.watch = Duration::from_millis(5);
    let client = BearerClient::open(options, None).unwrap();
    client.token(MCP).await.unwrap();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.withdrawn().await }
    });
    let identities = company.identities.clone();
    let identity = client.pin().identity.clone();
    tokio::task::spawn_blocking(move || identities.sign_out(&identity)).await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
    assert!(client.fresh().is_none());
    let error = client.token(MCP).await.unwrap_err();
    assert!(matches!(error, EnterpriseError::Withdrawn), "{error:?}");
}

#[tokio::test]
async fn ema_a_withdrawn_connection_asks_nobody() {
    let company = Company::signed_in();
    let client = company.open().unwrap();
    client.token(MCP).await.unwrap();
    company.parties.forget();
    client.withdraw();
    client.withdrawn().await;
    assert!(matches!(client.token(MCP).await, Err(EnterpriseError::Withdrawn)));
    assert!(company.parties.log().is_empty());
}

/// All files below a directory.
pub(crate) fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push(path),
        }
    }
    files
}

/// Not a measurement: a bound that only a lock held over I/O, or a look into the store, would break.
#[tokio::test]
async fn ema_a_warm_token_costs_next_to_nothing() {
    let company = Company::signed_in();
    let client = company.open().unwrap();
    client.token(MCP).await.unwrap();
    std::fs::remove_dir_all(company.directory.path().join("credentials")).unwrap();
    let begun = std::time::Instant::now();
    for _ in 0..10_000 {
        assert!(client.fresh().is_some());
    }
    let each = begun.elapsed() / 10_000;
    println!("{} ns for a warm token, without optimization", each.as_nanos());
    assert!(each < Duration::from_millis(1));
    drop(Arc::clone(&company.parties));
}
