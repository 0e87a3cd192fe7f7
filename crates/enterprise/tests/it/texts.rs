//! What people read.

use std::collections::BTreeSet;
use std::sync::Arc;

use plenipo_credentials::{StoreError, StoreFault};
use plenipo_enterprise::{
    Condition, EnterpriseError, ErrorClass, KnownCode, Party, Source, Unselected,
};
use plenipo_oauth::error::AssertionFault;

use crate::support::{IDP, table};

#[test]
fn ema_the_page_has_every_class_with_cause_and_remedy() {
    let classes: Vec<_> = ErrorClass::ALL
        .iter()
        .map(|class| [class.as_str(), class.cause(), class.remedy()].map(str::to_owned).to_vec())
        .collect();
    let expected: Vec<_> = classes.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
    assert_eq!(table("errors")[1..], classes, "the table has to be:\n{}", expected.join("\n"));
}

/// One of each, as far as they read differently.
fn all() -> Vec<EnterpriseError> {
    use EnterpriseError as Error;
    let unselected = [
        Unselected::Nobody { source: Source::Enterprise },
        Unselected::Nobody { source: Source::Account },
        Unselected::Unusable { source: Source::Enterprise, condition: Condition::Expired },
        Unselected::Unusable { source: Source::Account, condition: Condition::Rejected },
        Unselected::Slash {
            configured: IDP.to_owned(),
            kept: "https://idp.example/".to_owned(),
            source: Source::Account,
        },
        Unselected::Several { people: vec!["ada".to_owned(), "bob".to_owned()] },
        Unselected::NotThere { person: "eve".to_owned() },
    ];
    let refused = [
        (Party::IdentityProvider, Source::Enterprise, KnownCode::InvalidGrant),
        (Party::IdentityProvider, Source::Account, KnownCode::InvalidGrant),
        (Party::IdentityProvider, Source::Enterprise, KnownCode::InvalidClient),
        (Party::IdentityProvider, Source::Enterprise, KnownCode::InsufficientUserAuthentication),
        (Party::IdentityProvider, Source::Enterprise, KnownCode::AccessDenied),
        (Party::IdentityProvider, Source::Enterprise, KnownCode::ServerError),
        (Party::ResourceAuthorization, Source::Enterprise, KnownCode::InvalidGrant),
        (Party::ResourceAuthorization, Source::Enterprise, KnownCode::InvalidClient),
        (Party::ResourceAuthorization, Source::Enterprise, KnownCode::Other),
    ];
    let mut all: Vec<_> = unselected.into_iter().map(Error::Unselected).collect();
    all.extend(refused.map(|(party, whose, code)| Error::Refused { party, whose, code }));
    let (configured, party) = (IDP.to_owned(), Party::IdentityProvider);
    all.extend([-95, 40].map(|ahead| Error::Clock {
        party: Party::ResourceAuthorization,
        whose: Source::Enterprise,
        code: KnownCode::InvalidGrant,
        ahead,
    }));
    all.extend([
        Error::Issuer { party, configured: configured.clone(), slash: true },
        Error::Issuer { party: Party::ResourceAuthorization, configured, slash: false },
        Error::Metadata { party, fault: "a document is malformed".into() },
        Error::Answer { party, fault: "it is too long" },
        Error::Assertion {
            what: "identity assertion",
            fault: AssertionFault::Claim { name: "aud" },
        },
        Error::Policy("the server is not for enterprise-managed authorization"),
        Error::Changed,
        Error::Withdrawn,
        Error::BearerRefused,
        Error::Outside,
        Error::Unreachable { party },
        Error::TimedOut { party },
        Error::Store(Arc::new(StoreError::new("read", "/store", StoreFault::Random))),
        Error::Config("a signing key cannot be used"),
    ]);
    all
}

#[test]
fn ema_messages() {
    let mut lines = Vec::new();
    for error in all() {
        lines.push(format!("{}\n  {error}\n  hint: {}", error.class().as_str(), error.hint()));
    }
    insta::assert_snapshot!(lines.join("\n"));
    let found: BTreeSet<_> = all().iter().map(EnterpriseError::class).collect();
    assert_eq!(found.len(), ErrorClass::ALL.len(), "no class without an error");
}

#[test]
fn ema_codes_that_are_not_known_are_not_repeated() {
    assert_eq!(KnownCode::of("invalid_grant"), KnownCode::InvalidGrant);
    for text in ["", "Invalid_Grant", "<script>", "invalid_grant "] {
        assert_eq!(KnownCode::of(text), KnownCode::Other, "{text}");
    }
    let error = EnterpriseError::Refused {
        party: Party::IdentityProvider,
        whose: Source::Account,
        code: KnownCode::of("\u{1b}[31mboo"),
    };
    assert!(!error.to_string().contains("boo"));
}
