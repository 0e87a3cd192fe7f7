//! Every cell of the table of whose identity is used.

use plenipo_enterprise::{Condition, Kept, Pin, Source, Unselected, Wanted, select};
use plenipo_oauth::Issuer;

use crate::support::{IDP, pin, table};

/// What is kept of a source that is in this condition.
fn kept(source: Source, condition: &str) -> Option<Kept> {
    let at = |issuer, client, subject, condition| {
        Some(Kept::new(pin(source, issuer, client, subject), condition))
    };
    match condition {
        "none" => None,
        "valid" | "rotated" => at(IDP, "plenipo", "ada", Condition::Live),
        "expired" => at(IDP, "plenipo", "ada", Condition::Expired),
        "rejected" => at(IDP, "plenipo", "ada", Condition::Rejected),
        "other issuer" => at("https://else.example", "plenipo", "ada", Condition::Live),
        "slash issuer" => at("https://idp.example/", "plenipo", "ada", Condition::Live),
        "other client" => at(IDP, "other", "ada", Condition::Live),
        "other subject" => at(IDP, "plenipo", "bob", Condition::Live),
        "signed out" => at(IDP, "plenipo", "ada", Condition::SignedOut),
        other => panic!("{other}"),
    }
}

fn word(selected: Result<&Pin, Unselected>) -> String {
    let text = match selected {
        Ok(pin) => {
            let person = if pin.identity.subject == "ada" { "" } else { " bob" };
            return format!("{}{person}", pin.identity.source);
        }
        Err(Unselected::Nobody { source: Source::Enterprise }) => "sign in",
        Err(Unselected::Nobody { .. }) => "sign in to account",
        Err(Unselected::Unusable { source, condition }) => match (source, condition) {
            (Source::Enterprise, Condition::Expired) => "expired",
            (Source::Enterprise, _) => "rejected",
            (_, Condition::Expired) => "account expired",
            _ => "account rejected",
        },
        Err(Unselected::Slash { configured, kept, .. }) => {
            assert_eq!((configured.as_str(), kept.as_str()), (IDP, "https://idp.example/"));
            "slash"
        }
        Err(Unselected::Several { .. }) => "which person",
        Err(other) => panic!("{other:?}"),
    };
    text.to_owned()
}

#[test]
fn ema_every_cell_of_the_selection_table() {
    let table = table("selection");
    let (head, rows) = table.split_first().unwrap();
    let issuer = Issuer::parse(IDP).unwrap();
    let mut cells = 0;
    for row in rows {
        for (column, expected) in head.iter().zip(row).skip(1) {
            let (stored, account) =
                (kept(Source::Enterprise, &row[0]), kept(Source::Account, column));
            let mut all: Vec<_> = stored.into_iter().chain(account).collect();
            for _ in 0..2 {
                let found = word(select(Wanted::new(&issuer, "plenipo"), &all));
                assert_eq!(found, *expected, "enterprise {}, account {column}", row[0]);
                // The order of what a store lists means nothing.
                all.reverse();
            }
            cells += 1;
        }
    }
    assert_eq!(cells, 100);
}

#[test]
fn ema_as_names_the_person() {
    let issuer = Issuer::parse(IDP).unwrap();
    let live = |source, subject| Kept::new(pin(source, IDP, "plenipo", subject), Condition::Live);
    let mut ada = live(Source::Enterprise, "ada");
    ada.name = Some("ada@example.com".to_owned());
    let mut bob = live(Source::Enterprise, "bob");
    bob.name = Some("bob@example.com".to_owned());
    let eve = live(Source::Account, "eve");
    let mut kept = vec![ada, bob];
    let wanted = |person| Wanted::new(&issuer, "plenipo").of_person(person);
    let subject = |kept: &[Kept], person| {
        select(wanted(person), kept).map(|pin| pin.identity.subject.clone())
    };
    let several = Unselected::Several {
        people: vec!["ada@example.com".to_owned(), "bob@example.com".to_owned()],
    };
    assert_eq!(subject(&kept, None), Err(several));
    assert_eq!(subject(&kept, Some("ada")).unwrap(), "ada");
    assert_eq!(subject(&kept, Some("bob@example.com")).unwrap(), "bob");
    let not_there = Unselected::NotThere { person: "eve".to_owned() };
    assert_eq!(subject(&kept, Some("eve")), Err(not_there));
    kept.push(eve);
    // The account says who it is, and `--as` says otherwise.
    assert_eq!(subject(&kept, None).unwrap(), "eve");
    assert_eq!(subject(&kept, Some("ada")).unwrap(), "ada");
    kept[1].name = Some("ada@example.com".to_owned());
    assert!(matches!(subject(&kept, Some("ada@example.com")), Err(Unselected::Several { .. })));
}
