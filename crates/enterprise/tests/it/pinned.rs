//! Every cell of the table of what a connection finds later, in a store of files; and sign-ins that
//! others are faster than.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use plenipo_credentials::{CredentialKey, FileStore, Vault};
use plenipo_enterprise::{
    BearerClient, EnterpriseError, ErrorClass, Identities, IdentityGrant, Pin, Source, Wanted,
    select,
};
use plenipo_oauth::{
    ClientCredential, ClientRegistration, Issuer, ResourceId, TokenResponse, TokenType,
};
use plenipo_redact::Secret;

use crate::parties::{Company, Instead, MCP};
use crate::support::{IDP, grant, now, table};

fn identities() -> (tempfile::TempDir, Identities) {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::new(directory.path().join("credentials"));
    (directory, Identities::new(Arc::new(store)))
}

fn sign_in(
    identities: &Identities,
    (source, issuer, client): (Source, &str, &str),
    subject: &str,
    grant: IdentityGrant,
) -> Pin {
    let begun = identities.begin(source, &Issuer::parse(issuer).unwrap(), client).unwrap();
    identities.sign_in(begun, subject, grant).unwrap()
}

#[test]
fn ema_a_sign_in_is_found_and_forgotten() {
    let (_directory, identities) = identities();
    assert!(identities.kept(now()).unwrap().is_empty());
    let issuer = Issuer::parse(IDP).unwrap();
    let pin = sign_in(&identities, (Source::Enterprise, IDP, "c"), "ada", grant("rt-1"));
    let kept = identities.kept(now()).unwrap();
    assert_eq!(select(Wanted::new(&issuer, "c"), &kept).unwrap(), &pin);
    assert!(identities.is_current(&pin).unwrap());

    let again = sign_in(&identities, (Source::Enterprise, IDP, "c"), "ada", grant("rt-2"));
    assert_ne!(pin.generation, again.generation);
    assert!(!identities.is_current(&pin).unwrap() && identities.is_current(&again).unwrap());

    let forgotten = identities.sign_out(&again.identity).unwrap().unwrap();
    assert_eq!(forgotten.refresh_token.unwrap().expose(), "rt-2");
    assert!(!identities.is_current(&again).unwrap());
    assert!(identities.sign_out(&again.identity).unwrap().is_none());
    let kept = identities.kept(now()).unwrap();
    assert!(select(Wanted::new(&issuer, "c"), &kept).is_err());
}

#[test]
fn ema_a_sign_in_that_others_overtake_comes_to_nothing() {
    let (_directory, identities) = identities();
    let issuer = Issuer::parse(IDP).unwrap();
    for source in [Source::Enterprise, Source::Account] {
        let slow = identities.begin(source, &issuer, "c").unwrap();
        sign_in(&identities, (source, IDP, "c"), "bob", grant("bob"));
        let error = identities.sign_in(slow, "ada", grant("ada")).unwrap_err();
        assert!(matches!(error, EnterpriseError::Changed), "{error:?}");

        // A sign-out that finds nobody cancels what is under way as well.
        let slow = identities.begin(source, &issuer, "c").unwrap();
        let ada = crate::support::identity(source, IDP, "c", "ada");
        if source == Source::Enterprise {
            assert!(identities.sign_out(&ada).unwrap().is_none());
        } else {
            assert!(identities.sign_out(&ada).unwrap().is_some());
        }
        assert!(identities.sign_in(slow, "ada", grant("ada")).is_err());
        // The control: nobody came between.
        sign_in(&identities, (source, IDP, "c"), "ada", grant("ada"));
    }
}

#[test]
fn ema_credentials_of_servers_are_apart_from_identities() {
    let (directory, identities) = identities();
    sign_in(&identities, (Source::Enterprise, IDP, "c"), "ada", grant("rt"));
    sign_in(&identities, (Source::Account, IDP, "c"), "ada", grant("rt"));
    let store = FileStore::new(directory.path().join("credentials"));
    let vault = Vault::new(Arc::new(store));
    assert!(vault.records().unwrap().is_empty(), "nobody's identity is a server's credential");
}

#[test]
fn ema_only_an_identity_that_others_could_have_read_stops_identities() {
    let (directory, identities) = identities();
    let place = directory.path().join("credentials");
    let records = || {
        let files = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "credential"))
    };
    let open_to_others = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    };
    sign_in(&identities, (Source::Enterprise, IDP, "c"), "ada", grant("rt"));
    let of_identity: Vec<_> = records().collect();
    let issuer = Issuer::parse("https://as.example").unwrap();
    let resource = ResourceId::parse("https://mcp.example/mcp").unwrap();
    let key = CredentialKey::new(issuer, resource, "c");
    let client = ClientRegistration::configured("c", ClientCredential::None);
    let token = TokenResponse::new(Secret::new("t".to_owned()), TokenType::Bearer);
    let kept = plenipo_credentials::Grant::new(client, token, None, now());
    Vault::new(Arc::new(FileStore::new(&place))).sign_in(&key, kept).unwrap();
    let of_server = records().find(|path| !of_identity.contains(path)).unwrap();
    open_to_others(&of_server);
    assert_eq!(identities.kept(now()).unwrap().len(), 1);

    for path in &of_identity {
        open_to_others(path);
    }
    let error = identities.kept(now()).unwrap_err();
    assert!(of_identity.iter().any(|path| error.place == path.display().to_string()), "{error}");
}

/// Lets something happen between the making of a connection and its first exchange.
fn since_then(company: &Company, source: Source, event: &str) {
    let again = |source, issuer: &str, client: &str, subject: &str| {
        sign_in(&company.identities, (source, issuer, client), subject, company.grant());
    };
    let out = |source| {
        let identity = crate::support::identity(source, IDP, "plenipo", "ada");
        company.identities.sign_out(&identity).unwrap();
    };
    let other = match source {
        Source::Enterprise => Source::Account,
        _ => Source::Enterprise,
    };
    match event {
        "nothing" | "rotated" | "expired" | "rejected" => {}
        "signed out" => out(source),
        "signed in again" => again(source, IDP, "plenipo", "ada"),
        "signed out and in again" => {
            out(source);
            again(source, IDP, "plenipo", "ada");
        }
        "other client" => again(source, IDP, "other", "ada"),
        "other subject" => again(source, IDP, "plenipo", "bob"),
        "other issuer" => again(source, "https://else.example", "plenipo", "ada"),
        "the other source signed in" => again(other, IDP, "plenipo", "ada"),
        "the other source signed out" => {
            again(other, IDP, "plenipo", "ada");
            out(other);
        }
        unknown => panic!("{unknown}"),
    }
}

async fn cell(source: Source, event: &str) -> &'static str {
    let company = Company::new();
    let mut first = company.grant();
    if event == "expired" {
        first.refresh_token = None;
    }
    company.sign_in(source, first);
    let client = company.open().unwrap();
    since_then(&company, source, event);
    match event {
        "expired" => company.parties.pass(std::time::Duration::from_secs(3600)),
        "rejected" => {
            // By another connection.
            company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
            company.token().await.unwrap_err();
            company.parties.forget();
        }
        "rotated" => {
            company.parties.tell(|told| told.rotates = true);
            company.parties.instead("exchange", Instead::Error(400, "invalid_request"));
            company.parties.instead("exchange", Instead::Error(400, "invalid_grant"));
            company.token().await.unwrap();
            company.parties.forget();
        }
        _ => {}
    }
    let outcome = client.token(MCP).await;
    let asked = company.parties.log();
    let Err(error) = outcome else { return "goes on" };
    // Whatever it was, nobody's identity was shown to anybody.
    assert!(!asked.iter().any(|what| what == "exchange"), "{event}: {asked:?}");
    match error.class() {
        ErrorClass::CredentialsChanged => "changed",
        ErrorClass::EnterpriseSignIn => "sign in",
        ErrorClass::AccountSignIn => "sign in to account",
        ErrorClass::EnterpriseGrantRejected => "rejected",
        ErrorClass::AccountGrantRejected => "account rejected",
        other => panic!("{event}: {other:?}"),
    }
}

#[tokio::test]
async fn ema_every_cell_of_the_table_of_pins() {
    let table = table("pinned");
    assert_eq!(table.len(), 13);
    for row in &table[1..] {
        assert_eq!(cell(Source::Enterprise, &row[0]).await, row[1], "enterprise: {}", row[0]);
        assert_eq!(cell(Source::Account, &row[0]).await, row[2], "account: {}", row[0]);
    }
}

/// Between the exchange and the redemption somebody signs out: what was redeemed is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ema_a_sign_out_during_the_redemption_is_noticed() {
    let company = Company::signed_in();
    let client = BearerClient::open(company.options(), None).unwrap();
    let (identities, identity) = (company.identities.clone(), client.pin().identity.clone());
    company.parties.hook(move |what| {
        if what == "redeem" {
            identities.sign_out(&identity).unwrap();
        }
    });
    let error = client.token(MCP).await.unwrap_err();
    assert!(matches!(error, EnterpriseError::Changed), "{error:?}");
    assert!(client.fresh().is_none());
    assert!(matches!(client.token(MCP).await, Err(EnterpriseError::Withdrawn)));
}
