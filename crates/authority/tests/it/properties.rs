//! What holds for all JSON texts, however odd.

use plenipo_authority::{
    AuthorityGuard, CallAuthority, CallAuthorityError, LAUNCHER_KEY, STATE_ALIAS_KEY, STATE_KEY,
    SandboxOptIn, SandboxState, classify_meta_key,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::value::RawValue;

use crate::fixture::{authority, members, one_line, raw};

/// Whitespace as JSON allows it, line breaks included.
fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,3}"
}

/// Numbers that a parser into doubles would change, and some that it would not.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,40})",
        "-?(0|[1-9][0-9]{0,20})\\.[0-9]{1,40}",
        "-?(0|[1-9][0-9]{0,5})(\\.[0-9]{1,5})?[eE][+-]?[0-9]{1,6}",
        Just("-0".to_owned()),
    ]
}

/// The inside of a string: plain, escaped, lone surrogates, text that looks like frames.
fn characters() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z/ ]{1,4}",
        "\\\\u[0-9a-fA-F]{4}",
        select(vec!["\\n", "\\r", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\t"])
            .prop_map(str::to_owned),
        select(vec!["é", "\u{2028}", "\u{85}", "😀", "{", "}", ",", ":", "\u{7f}"])
            .prop_map(str::to_owned),
        Just("\\n{\\\"jsonrpc\\\":\\\"2.0\\\"}".to_owned()),
    ];
    vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

/// The text of any JSON value.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        number(),
        characters().prop_map(|inner| format!("\"{inner}\"")),
        select(vec!["true", "false", "null", "{}", "[]"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 48, 4, |inner| {
        let padded = (space(), inner, space()).prop_map(|(a, it, b)| format!("{a}{it}{b}")).boxed();
        let item = padded.clone();
        prop_oneof![
            vec(item, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            vec((space(), characters(), space(), padded), 0..4).prop_map(object_of),
            (characters(), 0usize..400).prop_map(|(key, depth)| {
                format!("{}{{\"{key}\":0}}{}", "[".repeat(depth), "]".repeat(depth))
            }),
        ]
    })
}

/// The text of any JSON object; every second one with a duplicated key.
fn object() -> impl Strategy<Value = String> {
    let member = (space(), characters(), space(), value());
    (vec(member, 0..5), any::<bool>(), space(), space()).prop_map(
        |(mut members, twice, before, after)| {
            if let (true, Some(first)) = (twice, members.first().cloned()) {
                members.push(first);
            }
            format!("{before}{}{after}", object_of(members))
        },
    )
}

fn object_of(members: Vec<(String, String, String, String)>) -> String {
    let members: Vec<String> =
        members.into_iter().map(|(a, key, b, it)| format!("{a}\"{key}\"{b}:{it}")).collect();
    format!("{{{}}}", members.join(","))
}

/// A key with some characters written as escapes.
fn spelled(key: &'static str) -> impl Strategy<Value = String> {
    vec(0u8..3, key.len()).prop_map(move |choices| {
        let spell = |(character, choice): (char, &u8)| match (choice, character) {
            (0, _) => format!("\\u{:04x}", u32::from(character)),
            (1, '/') => "\\/".to_owned(),
            _ => character.to_string(),
        };
        key.chars().zip(&choices).map(spell).collect()
    })
}

/// An entry of `_meta` as key and value text; `true` for one that the host replaces.
fn entry() -> impl Strategy<Value = (bool, String, String)> {
    let stale = prop_oneof![spelled(STATE_KEY), spelled(STATE_ALIAS_KEY), spelled(LAUNCHER_KEY)];
    prop_oneof![
        1 => (Just(true), stale, value()),
        // A prefix of its own: what is drawn cannot become a reserved key by chance.
        2 => (Just(false), characters().prop_map(|key| format!("com.example/{key}")), value()),
    ]
}

proptest! {
    #[test]
    fn any_object_reaches_the_wire_and_the_command_byte_for_byte(text in object()) {
        let expected = one_line(text.trim());
        let attached = authority(&text).attach(None, &[]).unwrap();
        prop_assert_eq!(
            attached.get(),
            format!(r#"{{"{STATE_KEY}":{expected},"{STATE_ALIAS_KEY}":{expected}}}"#)
        );
        let call = CallAuthority::from_meta(&attached).unwrap();
        prop_assert_eq!(call.state().unwrap().as_str(), expected);
    }

    #[test]
    fn unrelated_entries_survive_untouched_and_in_order(
        entries in vec((entry(), space(), space()), 0..6),
    ) {
        let all: Vec<String> = entries
            .iter()
            .map(|((_, key, value), a, b)| format!("{a}\"{key}\"{b}:{a}{value}{b}"))
            .collect();
        let kept: Vec<String> = entries
            .iter()
            .filter(|((stale, ..), ..)| !stale)
            .map(|((_, key, value), ..)| format!("\"{key}\":{}", one_line(value)))
            .collect();
        let caller = raw(&format!("{{{}}}", all.join(",")));
        let mut parts = crate::fixture::parts("{}");
        parts.opt_in = false;
        let silent = plenipo_authority::CapturedAuthority::capture(parts);
        let attached = silent.attach(Some(&caller), &[]).unwrap();
        prop_assert_eq!(attached.get(), format!("{{{}}}", kept.join(",")));
    }

    #[test]
    fn no_raw_fragment_can_make_two_frames_of_one(
        state in object(),
        entries in vec(entry(), 0..4),
        extra in value(),
    ) {
        let entries: Vec<String> =
            entries.iter().map(|(_, key, value)| format!("\n\"{key}\"\r:\r\n{value}")).collect();
        let caller = raw(&format!("{{{}\n}}", entries.join("\n,")));
        let attached =
            authority(&state).attach(Some(&caller), &[("progressToken", &raw(&extra))]).unwrap();
        prop_assert!(!attached.get().contains(['\r', '\n']));
        prop_assert!(serde_json::from_str::<&RawValue>(attached.get()).is_ok());
    }

    #[test]
    fn a_stale_key_never_survives_however_it_is_spelled(
        key in prop_oneof![spelled(STATE_KEY), spelled(STATE_ALIAS_KEY), spelled(LAUNCHER_KEY)],
        count in 1usize..4,
    ) {
        let entries = vec![format!("\"{key}\":{{\"stale\":1}}"); count].join(",");
        let attached = authority("{}").attach(Some(&raw(&format!("{{{entries}}}"))), &[]).unwrap();
        prop_assert_eq!(members(attached.get()).len(), 2);
        prop_assert!(!attached.get().contains("stale"));
    }

    #[test]
    fn a_guard_allows_exactly_the_same_text(first in object(), second in object()) {
        let read = |state: &str| {
            CallAuthority::from_meta(&raw(&format!(r#"{{"{STATE_KEY}":{state}}}"#))).unwrap()
        };
        let guard = AuthorityGuard::retain(&read(&first));
        prop_assert!(guard.ensure_same(&read(&first)).is_ok());
        let same = one_line(first.trim()) == one_line(second.trim());
        prop_assert_eq!(guard.ensure_same(&read(&second)).is_ok(), same);
    }

    #[test]
    fn a_parsed_state_keeps_its_value_or_is_refused(text in object()) {
        // Some texts do not parse at all: lone surrogates, numbers beyond doubles, depth.
        let meta = format!(r#"{{"{STATE_KEY}":{text}}}"#);
        let Ok(serde_json::Value::Object(map)) = serde_json::from_str(&meta) else {
            return Ok(());
        };
        match CallAuthority::from_map(&map) {
            Ok(call) => {
                let again: serde_json::Value =
                    serde_json::from_str(call.state().unwrap().as_str()).unwrap();
                prop_assert_eq!(&again, &map[STATE_KEY]);
            }
            Err(error) => {
                let inexact = matches!(error, CallAuthorityError::InexactNumber { .. });
                prop_assert!(inexact, "{}", error);
            }
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused_once_parsed(number in "-?[1-9][0-9]{20,60}") {
        let meta = format!(r#"{{"{STATE_KEY}":{{"n":{number}}}}}"#);
        let map = serde_json::from_str(&meta).unwrap();
        let error = CallAuthority::from_map(&map).unwrap_err();
        let inexact = matches!(error, CallAuthorityError::InexactNumber { .. });
        prop_assert!(inexact, "{}", error);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,40}|[\\[{}\\]\",:a-c0-9\\\\ \n\r]{0,40}") {
        let _state = SandboxState::capture(&text).is_ok();
        let _class = classify_meta_key(&text);
        if let Ok(raw) = RawValue::from_string(text) {
            let _call = CallAuthority::from_meta(&raw).is_ok();
            let _opt_in = SandboxOptIn::from_capabilities(&raw);
            let _attached = authority("{}").attach(Some(&raw), &[]).is_ok();
        }
    }
}
