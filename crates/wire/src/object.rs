//! Picking members out of a raw JSON object without decoding the rest.

mod scan;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The raw values of the members `names` of the object `raw`, in the order of `names`.
///
/// Names are compared after unescaping; of a duplicated member the last one counts, as in
/// JavaScript and Python. `None` when `raw` is not an object.
#[must_use]
pub fn select<'a, const N: usize>(
    raw: &'a RawValue,
    names: [&str; N],
) -> Option<[Option<&'a RawValue>; N]> {
    if !raw.get().starts_with('{') {
        return None;
    }
    let Some(found) = select_spelled(raw, names) else {
        return select_text(raw.get(), names).ok();
    };
    let mut values = [None; N];
    for (value, text) in values.iter_mut().zip(found) {
        *value = match text {
            None => None,
            Some(text) => Some(serde_json::from_str(text).ok()?),
        };
    }
    Some(values)
}

/// As [`select`], as text; `None` when somebody has to look more closely.
pub(crate) fn select_spelled<'a, const N: usize>(
    raw: &'a RawValue,
    names: [&str; N],
) -> Option<[Option<&'a str>; N]> {
    let mut found = [None; N];
    scan::members(raw.get(), |name, value| {
        if let Some(place) = names.iter().position(|wanted| *wanted == name)
            && let Some(slot) = found.get_mut(place)
        {
            *slot = Some(value);
        }
    })?;
    Some(found)
}

/// Hands out name and value of each member of an object in order, duplicates included, without reading what is inside
/// of them. `json` has to be JSON: of other text anything may be handed out. `None` when it is not an object, and when a
/// name is spelled with escapes: then not all were handed out.
pub fn members<'a>(json: &'a str, take: impl FnMut(&'a str, &'a str)) -> Option<()> {
    scan::members(json, take)
}

/// One member of an object; `None` when it is absent or `raw` is not an object.
#[must_use]
pub fn member<'a>(raw: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    select(raw, [name]).and_then(|[value]| value)
}

/// The items of an array; `None` when `raw` is not an array.
#[must_use]
pub fn items(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// The members of an object in order, duplicates included; `None` when `raw` is not an object.
#[must_use]
pub fn entries(raw: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    deserializer.deserialize_map(Entries).ok()
}

/// The first member that is written twice in one object, at any depth, by its place: `a.b[2].c`. Readers differ in which of
/// them they take.
#[must_use]
pub fn written_twice(raw: &RawValue) -> Option<String> {
    if let Some(members) = raw.get().starts_with('{').then(|| entries(raw)).flatten() {
        let mut names = HashSet::new();
        return members.iter().find_map(|(name, value)| match names.insert(name.clone()) {
            false => Some(name.clone().into_owned()),
            true => written_twice(value).map(|place| match place.starts_with('[') {
                true => format!("{name}{place}"),
                false => format!("{name}.{place}"),
            }),
        });
    }
    let items = raw.get().starts_with('[').then(|| items(raw)).flatten()?;
    items.into_iter().enumerate().find_map(|(index, item)| {
        let place = written_twice(item)?;
        let dot = if place.starts_with('[') { "" } else { "." };
        Some(format!("[{index}]{dot}{place}"))
    })
}

/// A JSON string decoded, borrowed when it has no escapes; `None` when `raw` is not a string.
///
/// Half of a surrogate pair (`"\ud83d"`), which JSON can spell and UTF-8 cannot, is replaced by
/// U+FFFD (one for each of its three bytes).
#[must_use]
pub fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    deserializer.deserialize_bytes(Lossy).ok().map(Cow::Owned)
}

/// [`text`] piece by piece, for strings that are too long to decode into memory; stops at the first
/// error of `take` and returns it. `None` when `raw` is not a string.
///
/// A piece is at most 64 KiB long and never ends inside of a character.
pub fn text_in_pieces<E>(
    raw: &RawValue,
    mut take: impl FnMut(&str) -> Result<(), E>,
) -> Option<Result<(), E>> {
    let text = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    Some(pieces(text, &mut take))
}

fn pieces<E>(mut rest: &str, take: &mut impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    const PIECE: usize = 64 * 1024;
    let mut gathered = String::new();
    while !rest.is_empty() {
        let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len()).min(PIECE);
        let plain = boundary(rest, plain);
        let piece = match plain {
            0 => escaped(&mut rest),
            _ => {
                let (piece, after) = rest.split_at(plain);
                rest = after;
                Cow::Borrowed(piece)
            }
        };
        if gathered.len().saturating_add(piece.len()) > PIECE {
            take(&gathered)?;
            gathered.clear();
        }
        gathered.push_str(&piece);
    }
    if gathered.is_empty() { Ok(()) } else { take(&gathered) }
}

/// What the escapes at the beginning of `rest` stand for; takes them off.
fn escaped<'t>(rest: &mut &'t str) -> Cow<'t, str> {
    let short = match rest.as_bytes() {
        [b'\\', b'n', ..] => "\n",
        [b'\\', b'"', ..] => "\"",
        [b'\\', b'\\', ..] => "\\",
        [b'\\', b't', ..] => "\t",
        [b'\\', b'r', ..] => "\r",
        [b'\\', b'/', ..] => "/",
        _ => "",
    };
    match rest.get(2..).filter(|_| !short.is_empty()) {
        Some(after) => {
            *rest = after;
            Cow::Borrowed(short)
        }
        None => {
            let (escapes, after) = escapes(rest);
            *rest = after;
            Cow::Owned(unescaped(escapes))
        }
    }
}

/// The escapes that `text` begins with, so many that no surrogate pair is torn.
fn escapes(text: &str) -> (&str, &str) {
    const MANY: usize = 1024;
    let mut end = 0;
    loop {
        let tail = text.as_bytes().get(end..).unwrap_or_default();
        let [b'\\', kind, ..] = tail else { break };
        let is_high = |tail: &[u8]| {
            matches!(tail, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..])
        };
        if end > MANY && !is_high(text.as_bytes().get(end.saturating_sub(6)..).unwrap_or_default())
        {
            break;
        }
        end = end.saturating_add(if *kind == b'u' { 6 } else { 2 }).min(text.len());
    }
    text.split_at(boundary(text, end.max(1)))
}

/// The last place at or before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

fn unescaped(escapes: &str) -> String {
    let quoted = format!("\"{escapes}\"");
    let mut deserializer = serde_json::Deserializer::from_str(&quoted);
    deserializer.deserialize_bytes(Lossy).unwrap_or_default()
}

/// A JSON boolean.
#[must_use]
pub fn boolean(raw: &RawValue) -> Option<bool> {
    match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// A JSON number that is an integer; `3.0` and `1e2` count, as JSON has one kind of number.
#[must_use]
pub fn integer(raw: &RawValue) -> Option<i64> {
    if let Ok(number) = raw.get().parse::<i64>() {
        return Some(number);
    }
    let number = number(raw)?;
    let limit = 9_007_199_254_740_992.0; // 2^53: beyond it a float no longer names one integer
    (number.fract() == 0.0 && number.abs() <= limit).then_some(number as i64)
}

/// A JSON number as a float.
#[must_use]
pub fn number(raw: &RawValue) -> Option<f64> {
    raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit()).then_some(())?;
    raw.get().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// The value, unless it is `null`.
#[must_use]
pub fn non_null(raw: &RawValue) -> Option<&RawValue> {
    (raw.get() != "null").then_some(raw)
}

/// The JSON type of a value, for messages.
#[must_use]
pub fn type_name(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    }
}

/// As [`select`], from text that may not be JSON.
pub(crate) fn select_text<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a RawValue>; N], serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer.deserialize_map(Select { names })?;
    deserializer.end()?;
    Ok(found)
}

struct Select<'n, const N: usize> {
    names: [&'n str; N],
}

impl<'de, const N: usize> Visitor<'de> for Select<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some(index) = map.next_key_seed(NameIndex { names: &self.names })? {
            match index.and_then(|index| found.get_mut(index)) {
                Some(slot) => *slot = Some(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

struct NameIndex<'n> {
    names: &'n [&'n str],
}

impl<'de> DeserializeSeed<'de> for NameIndex<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // As bytes, so that a name with half a surrogate pair is no error but another name.
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for NameIndex<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.names.iter().position(|wanted| wanted.as_bytes() == name))
    }
}

struct Lossy;

impl Visitor<'_> for Lossy {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, text: &[u8]) -> Result<Self::Value, E> {
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

struct LossyName;

impl<'de> DeserializeSeed<'de> for LossyName {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(Lossy)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key_seed(LossyName)? {
            entries.push((Cow::Owned(name), map.next_value()?));
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::Fragment;

    #[test]
    fn selects_after_unescaping_and_lets_the_last_duplicate_win() {
        let raw = Fragment::parse(r#"{"a":1,"\u0061":2,"b":{"a":3},"c":[]}"#).unwrap();
        let [a, b, d] = select(raw.as_raw(), ["a", "b", "d"]).unwrap();
        assert_eq!(a.unwrap().get(), "2");
        assert_eq!(b.unwrap().get(), r#"{"a":3}"#);
        assert!(d.is_none());
        assert_eq!(entries(raw.as_raw()).unwrap().len(), 4);
    }

    #[test]
    fn half_a_surrogate_pair_spoils_neither_text_nor_message() {
        let raw = Fragment::parse(r#"{"\ud800":1,"a":"x\ud83dy\n","b":"\ud83d\ude00"}"#).unwrap();
        let [a, b] = select(raw.as_raw(), ["a", "b"]).unwrap();
        assert!(text(a.unwrap()).unwrap().starts_with("x\u{fffd}"));
        assert!(text(a.unwrap()).unwrap().ends_with("y\n"));
        assert_eq!(text(b.unwrap()).unwrap(), "\u{1f600}");
        assert_eq!(entries(raw.as_raw()).unwrap().len(), 3);
    }

    #[test]
    fn a_string_in_pieces_is_the_same_string() {
        let pair = "\\ud83d\\ude00";
        let texts = [
            r#""""#.to_owned(),
            r#""plain é""#.to_owned(),
            format!(r#""\\\"\/\b\n{pair}x\u00e9{}""#, "\\n".repeat(5000)),
            format!("\"{}\"", pair.repeat(5000)),
            format!("\"{}\"", "é".repeat(100_000)),
            format!(r#""a{}\ud83dz""#, "y".repeat(65_535)),
        ];
        for source in texts {
            let raw = Fragment::parse(&source).unwrap();
            let mut whole = String::new();
            let taken = text_in_pieces(raw.as_raw(), |piece| {
                assert!(piece.len() <= 64 * 1024 + 8);
                whole.push_str(piece);
                Ok::<(), ()>(())
            });
            assert_eq!(taken, Some(Ok(())));
            assert_eq!(whole, text(raw.as_raw()).unwrap());
        }
        let raw = Fragment::parse("[1]").unwrap();
        assert_eq!(text_in_pieces(raw.as_raw(), |_| Ok::<(), ()>(())), None);
        let raw = Fragment::parse(r#""a\nb""#).unwrap();
        assert_eq!(text_in_pieces(raw.as_raw(), |_| Err(7)), Some(Err(7)));
    }

    #[test]
    fn what_is_written_twice_is_found_by_its_place() {
        let place = |text: &str| written_twice(Fragment::parse(text).unwrap().as_raw());
        assert_eq!(place(r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}"#), None);
        assert_eq!(place(r#"{"a":1,"\u0061":2}"#).unwrap(), "a");
        assert_eq!(place(r#"{"a":[1,[{"b":{"c":1,"c":1}}]]}"#).unwrap(), "a[1][0].b.c");
        assert_eq!(place(r#"[[{"x":1,"x":1}]]"#).unwrap(), "[0][0].x");
    }

    #[test]
    fn reads_numbers_as_json_has_them() {
        let raw = |text: &str| Fragment::parse(text).unwrap();
        assert_eq!(integer(raw("1000.0").as_raw()), Some(1000));
        assert_eq!(integer(raw("1e2").as_raw()), Some(100));
        assert_eq!(integer(raw("1.5").as_raw()), None);
        assert_eq!(integer(raw("1e400").as_raw()), None);
        assert_eq!(integer(raw("\"1\"").as_raw()), None);
    }
}
