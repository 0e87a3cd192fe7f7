//! What the tests have in common.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plenipo_enterprise::{Generation, Identity, IdentityGrant, Pin, Source};
use plenipo_oauth::Issuer;
use plenipo_redact::Secret;

pub(crate) const IDP: &str = "https://idp.example";

pub(crate) fn identity(source: Source, issuer: &str, client_id: &str, subject: &str) -> Identity {
    Identity::new(source, Issuer::parse(issuer).unwrap(), client_id, subject)
}

pub(crate) fn pin(source: Source, issuer: &str, client_id: &str, subject: &str) -> Pin {
    Pin::new(identity(source, issuer, client_id, subject), Generation::random().unwrap())
}

pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

pub(crate) fn grant(refresh_token: &str) -> IdentityGrant {
    let mut grant = IdentityGrant::new(now());
    grant.refresh_token = Some(Secret::new(refresh_token.to_owned()));
    grant
}

/// The table of `docs/enterprise.md` below a mark: rows of cells, the head first.
pub(crate) fn table(mark: &str) -> Vec<Vec<String>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/enterprise.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, after) = page.split_once(&format!("<!-- {mark} -->\n")).unwrap();
    let rows = after.lines().take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    rows.filter(|line| !line.starts_with("|--")).map(cells).collect()
}
