//! Walking over the members of an object that is known to be JSON, without reading what is inside of them.
//!
//! Text that is not JSON is not told apart: whoever has it reads it with serde_json first.

/// Bytes that are looked at one by one.
const SHORT: usize = 16;

/// Hands out name and value of each member in order. `None` when a name has escapes, and when the text is no object.
pub(super) fn members<'a>(text: &'a str, mut take: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let bytes = text.as_bytes();
    let mut at = after_space(bytes, 0);
    if *bytes.get(at)? != b'{' {
        return None;
    }
    at = after_space(bytes, at.checked_add(1)?);
    if *bytes.get(at)? == b'}' {
        return Some(());
    }
    loop {
        let end = end_of_string(bytes, at)?;
        let name = text.get(at.checked_add(1)?..end.checked_sub(1)?)?;
        if name.contains('\\') {
            return None;
        }
        at = after_space(bytes, end);
        if *bytes.get(at)? != b':' {
            return None;
        }
        at = after_space(bytes, at.checked_add(1)?);
        let end = end_of_value(bytes, at)?;
        take(name, text.get(at..end)?);
        at = after_space(bytes, end);
        match bytes.get(at)? {
            b',' => at = after_space(bytes, at.checked_add(1)?),
            b'}' => return Some(()),
            _ => return None,
        }
    }
}

fn after_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let space = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    at.saturating_add(space.count())
}

/// The place behind the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let mut at = at.checked_add(1)?;
    // Most strings are short, for which a search that looks at much at a time is no gain.
    let short = bytes.get(at..)?.iter().take(SHORT);
    at = at.checked_add(short.take_while(|byte| !matches!(byte, b'"' | b'\\')).count())?;
    loop {
        match bytes.get(at)? {
            b'"' => return at.checked_add(1),
            b'\\' => at = at.checked_add(2)?,
            _ => at = at.checked_add(memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?)?,
        }
    }
}

/// The place behind the value that begins at `at`.
fn end_of_value(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => end_of_string(bytes, at),
        b'{' | b'[' => end_of_nest(bytes, at),
        _ => {
            let is_end =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            at.checked_add(bytes.get(at..)?.iter().position(is_end)?)
        }
    }
}

/// Brackets match in JSON, so that counting them is enough.
fn end_of_nest(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = end_of_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth = depth.checked_add(1)?,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at = at.checked_add(1)?;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::Fragment;
    use crate::object::{select, select_text};

    fn value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("-1.5e+3".to_owned()),
            Just("true".to_owned()),
            Just(" {} ".to_owned()),
            "[\\x20-\\x7eäß\u{1f600}]{0,12}".prop_map(|text| Value::String(text).to_string()),
            Just(r#""\\\"\u0041\\""#.to_owned()),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[ {}]", items.join(" ,"))),
                prop::collection::vec(("[a-c\\\\\"]{0,2}", inner), 0..4).prop_map(|members| {
                    let members = members
                        .iter()
                        .map(|(name, value)| format!("{}\t:{value} ", Value::String(name.clone())));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(",\n"))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_serde_finds(text in value()) {
            let fragment = Fragment::parse(&text).unwrap();
            let names = ["a", "", "bb"];
            let found = select(fragment.as_raw(), names).map(|all| all.map(|one| one.map(|raw| raw.get())));
            let known = fragment.is_object().then(|| select_text(fragment.as_str(), names).unwrap());
            let known = known.map(|all| all.map(|one| one.map(|raw| raw.get())));
            prop_assert_eq!(found, known);
        }

        #[test]
        fn nothing_crashes_it(text in "[\\[\\]{}\",:\\\\ a1\u{e4}]{0,30}") {
            members(&text, |_, _| {});
        }
    }

    #[test]
    fn members_come_in_order_with_their_text() {
        let mut seen = Vec::new();
        members(r#" {"a" : [1,{"x":"]}"}] ,"b":"\\\"","c":-1e3 , "a":{} }"#, |name, value| {
            seen.push((name, value));
        })
        .unwrap();
        let known = [("a", r#"[1,{"x":"]}"}]"#), ("b", r#""\\\"""#), ("c", "-1e3"), ("a", "{}")];
        assert_eq!(seen, known);
        assert!(members(r#"{"\u0061":1}"#, |_, _| {}).is_none());
        assert!(members("[]", |_, _| {}).is_none());
    }
}
