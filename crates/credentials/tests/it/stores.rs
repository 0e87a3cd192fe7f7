//! What a directory of records keeps, and what it refuses.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plenipo_credentials::{
    ErrorKind, FileStore, Owner, SealingKey, Store as _, StoreError, StoreFault, Vault,
};
use plenipo_oauth::{ClientCredential, DpopKey, Scopes};
use plenipo_redact::Secret;

use crate::support::{grant, key, sign_in, vault};

const ISSUER: &str = "https://as.example";

fn record_path(directory: &Path) -> PathBuf {
    directory.join(format!("{}.credential", key(ISSUER).id()))
}

fn fault(result: Result<Option<plenipo_credentials::Record>, StoreError>) -> StoreFault {
    result.unwrap_err().fault
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_record_comes_back_whole() {
    let directory = tempfile::tempdir().unwrap();
    let vault = vault(&directory.path().join("a/b"));
    let mut kept = grant(Some(Duration::from_secs(60)));
    kept.client.credential = ClientCredential::Secret(Secret::new("client-secret".to_owned()));
    kept.client.redirect_uris = vec!["http://127.0.0.1/callback".to_owned()];
    kept.scopes = Some(Scopes::parse("a b").unwrap());
    kept.dpop = Some(DpopKey::generate().unwrap());
    kept.id_token = Some(Secret::new("id-token".to_owned()));
    kept.account = Some("ada@example.com".to_owned());
    sign_in(&vault, ISSUER, kept.clone());

    let record = vault.record(&key(ISSUER)).unwrap().unwrap();
    let found = record.grant.unwrap();
    assert_eq!((record.generation, record.key), (1, key(ISSUER)));
    assert_eq!(found.refresh_token.unwrap().expose(), "refresh-0");
    assert_eq!(found.id_token.unwrap().expose(), "id-token");
    assert_eq!(found.dpop.unwrap().thumbprint(), kept.dpop.unwrap().thumbprint());
    assert_eq!((found.scopes, found.account), (kept.scopes, kept.account));
    assert_eq!(found.client.redirect_uris, kept.client.redirect_uris);
    assert!(matches!(found.client.credential, ClientCredential::Secret(secret)
        if secret.expose() == "client-secret"));
    let second = Duration::from_secs(1);
    assert!(kept.expires_at.unwrap().duration_since(found.expires_at.unwrap()).unwrap() < second);
}

#[test]
fn a_configured_secret_is_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let vault = vault(directory.path().join("c").as_path());
    let mut kept = grant(None);
    kept.client.source = plenipo_oauth::RegistrationSource::Configured;
    kept.client.credential = ClientCredential::Secret(Secret::new("client-secret".to_owned()));
    sign_in(&vault, ISSUER, kept);
    let text = fs::read_to_string(record_path(&directory.path().join("c"))).unwrap();
    assert!(text.contains("refresh-0") && !text.contains("client-secret"));
}

#[test]
fn files_are_their_owners_alone_whatever_the_umask() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    sign_in(&vault(&place), ISSUER, grant(None));
    assert_eq!(mode(&place), 0o700);
    for entry in fs::read_dir(&place).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn what_others_could_have_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    sign_in(&vault, ISSUER, grant(None));
    let path = record_path(&place);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = vault.record(&key(ISSUER)).unwrap_err();
    assert!(matches!(error.fault, StoreFault::NotPrivate { mode: 0o640 }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.hint().unwrap().contains(path.to_str().unwrap()));

    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let found = fault(vault.record(&key(ISSUER)));
    assert!(matches!(found, StoreFault::NotPrivate { mode: 0o755 }), "{found:?}");
    assert!(vault.records().is_err());
}

#[test]
fn whose_a_record_is_that_others_could_have_read_can_be_told() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    sign_in(&vault, ISSUER, grant(None));
    let path = record_path(&place);
    let owner = || {
        let survey = vault.survey().unwrap();
        assert!(survey.records.is_empty());
        survey.unread.into_iter().map(|unread| unread.owner).collect::<Vec<_>>()
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(owner(), [Owner::Server(Box::new(key(ISSUER)))]);
    // In the place of another record it says nothing.
    let other = path.with_file_name(format!("{}.credential", "0".repeat(64)));
    fs::rename(&path, &other).unwrap();
    assert_eq!(owner(), [Owner::Unknown]);
    fs::write(&other, "{").unwrap();
    assert_eq!(owner(), [Owner::Unknown]);
    fs::write(&other, "{\"kind\": \"x\"}").unwrap();
    assert_eq!(owner(), [Owner::NoServer]);
}

#[test]
fn a_record_under_another_name_is_not_used_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    sign_in(&vault, ISSUER, grant(None));
    let path = record_path(&place);
    let other = path.with_file_name(format!("{}.credential", "a".repeat(64)));
    fs::rename(&path, &other).unwrap();
    let survey = vault.survey().unwrap();
    assert!(survey.records.is_empty());
    assert_eq!(survey.unread.len(), 1);
    let unread = &survey.unread[0];
    assert!(matches!(unread.error.fault, StoreFault::Misplaced), "{unread:?}");
    assert_eq!(unread.error.place, other.display().to_string());
    assert_eq!(unread.owner, Owner::Server(Box::new(key(ISSUER))));
    // In the place of one that is asked for by its name it is not that one.
    let another = "https://other.example";
    fs::rename(&other, place.join(format!("{}.credential", key(another).id()))).unwrap();
    assert!(matches!(fault(vault.record(&key(another))), StoreFault::Misplaced));
    assert!(matches!(vault.sign_out(&key(another)).unwrap_err().fault, StoreFault::Misplaced));
    assert!(matches!(
        vault.sign_in(&key(another), grant(None)).unwrap_err().fault,
        StoreFault::Misplaced
    ));
}

#[test]
fn what_nobody_else_has_access_to_is_used_whatever_its_owner_may() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    sign_in(&vault, ISSUER, grant(None));
    let path = record_path(&place);
    for (mode, used) in
        [(0o400, true), (0o700, true), (0o600, true), (0o640, false), (0o604, false)]
    {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(vault.record(&key(ISSUER)).is_ok(), used, "{mode:o}");
    }
}

#[test]
fn links_and_other_things_are_not_records() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    sign_in(&vault, ISSUER, grant(None));
    let path = record_path(&place);
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(fault(vault.record(&key(ISSUER))), StoreFault::NotAFile));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(fault(vault.record(&key(ISSUER))), StoreFault::NotAFile));
}

#[test]
fn a_lock_that_is_no_file_is_named_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    sign_in(&vault, ISSUER, grant(None));
    let lock = record_path(&place).with_extension("lock");
    let lease = || vault.store().lease(&key(ISSUER).id(), Duration::ZERO).map(drop);
    lease().unwrap();
    let refused = || {
        let error = lease().unwrap_err();
        assert!(matches!(error.fault, StoreFault::NotAFile), "{error:?}");
        assert!(error.to_string().contains(lock.to_str().unwrap()), "{error}");
        assert_eq!(error.kind(), ErrorKind::Config, "waiting would not help");
        assert!(error.hint().unwrap().starts_with("remove "), "{error:?}");
    };
    fs::remove_file(&lock).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused();
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    refused();
}

#[test]
fn damaged_records_are_named_and_not_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    sign_in(&vault, ISSUER, grant(None));
    let path = record_path(&place);
    let good = fs::read_to_string(&path).unwrap();
    let newer = good.replace("\"format\":1", "\"format\":2,\"more\":true");
    let long = " ".repeat(300 * 1024);
    for (text, expected) in [
        (good.split_at(40).0, "its JSON cannot be read"),
        ("", "its JSON cannot be read"),
        (&good.replace("https://as.example\"", "javascript:x\""), "its issuer cannot be read"),
        (&newer, "it has format 2, and this version reads format 1"),
        (&long, "it is longer than 262144 bytes"),
    ] {
        fs::write(&path, text).unwrap();
        let error = vault.record(&key(ISSUER)).unwrap_err();
        assert_eq!(error.to_string(), format!("failed to read {}", path.display()));
        assert_eq!(error.fault.to_string(), expected);
        assert!(!format!("{error:?}").contains("refresh-0"));
    }
}

#[test]
fn sealed_stores_open_with_their_passphrase_only() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let open = |phrase: &str| {
        let store = FileStore::with_passphrase(&place, &Secret::new(phrase.to_owned()));
        Vault::new(Arc::new(store.unwrap()))
    };
    sign_in(&open("correct horse"), ISSUER, grant(None));
    let kept = fs::read(record_path(&place)).unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains("refresh-0"));
    let again = open("correct horse").record(&key(ISSUER)).unwrap().unwrap();
    assert_eq!(again.grant.unwrap().refresh_token.unwrap().expose(), "refresh-0");
    assert!(matches!(fault(open("battery").record(&key(ISSUER))), StoreFault::WrongKey));
    assert!(matches!(fault(vault(&place).record(&key(ISSUER))), StoreFault::Sealed));

    let plain = directory.path().join("plain");
    sign_in(&vault(&plain), ISSUER, grant(None));
    let key_text = Secret::new("0f".repeat(32));
    let sealed = FileStore::sealed(&plain, SealingKey::parse(&key_text).unwrap());
    let found = fault(Vault::new(Arc::new(sealed)).record(&key(ISSUER)));
    assert!(matches!(found, StoreFault::NotSealed), "{found:?}");
}

#[test]
fn sign_ins_count_and_a_sign_out_leaves_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("credentials");
    let vault = vault(&place);
    assert!(vault.record(&key(ISSUER)).unwrap().is_none());
    assert!(vault.sign_out(&key(ISSUER)).unwrap().is_none());
    assert!(!place.exists(), "looking makes nothing");
    sign_in(&vault, ISSUER, grant(None));
    sign_in(&vault, ISSUER, grant(None));
    sign_in(&vault, "https://other.example", grant(None));
    let resource = key(ISSUER).resource;
    assert_eq!(vault.signed_in(&resource, None).unwrap().len(), 1);
    let issuer = key("https://other.example").issuer;
    assert!(vault.signed_in(&resource, Some(&issuer)).unwrap().is_empty());
    assert!(vault.sign_out(&key(ISSUER)).unwrap().is_some());
    let record = vault.record(&key(ISSUER)).unwrap().unwrap();
    assert_eq!((record.generation, record.grant.is_some()), (3, false));
    assert!(!fs::read_to_string(record_path(&place)).unwrap().contains("-0"));
    assert_eq!(vault.records().unwrap().len(), 2);
    assert!(vault.signed_in(&resource, None).unwrap().is_empty());
}

#[test]
fn a_lease_that_another_has_is_waited_for_only_so_long() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileStore::new(directory.path().join("credentials"));
    let id = key(ISSUER).id();
    let held = store.lease(&id, Duration::ZERO).unwrap();
    let busy = store.lease(&id, Duration::from_millis(20)).unwrap_err();
    assert!(matches!(busy.fault, StoreFault::Busy { .. }), "{busy:?}");
    assert_eq!(busy.kind(), ErrorKind::Transient);
    drop(store.lease(&key("https://other.example").id(), Duration::ZERO).unwrap());
    drop(held);
    drop(store.lease(&id, Duration::ZERO).unwrap());
}
