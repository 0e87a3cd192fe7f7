//! Entries of the skills extension (`io.modelcontextprotocol/skills`, SEP-2640).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::wrong;
use crate::error::ViewError;
use crate::object::{integer, items, member, select, text, type_name};

/// One skill of `skills/list` or `skills/get`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SkillView<'a> {
    /// Of its `SKILL.md`. Names the skill within its server, and only there.
    pub uri: Cow<'a, str>,
    /// A label: neither unique nor to be trusted.
    pub name: Cow<'a, str>,
    /// Untrusted text.
    pub description: Cow<'a, str>,
    /// What the `SKILL.md` has to begin with, as a JSON object, raw.
    pub frontmatter: &'a RawValue,
    /// Its files; `None` for a skill made as it is read, which nothing vouches for.
    pub files: Option<Vec<SkillFile<'a>>>,
    /// The whole entry, unknown members included.
    pub raw: &'a RawValue,
}

/// A file of a skill, and what its bytes have to be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile<'a> {
    /// What `resources/read` takes.
    pub uri: Cow<'a, str>,
    /// SHA-256 of the bytes.
    pub sha256: [u8; 32],
    /// How many bytes.
    pub size: u64,
}

impl<'a> SkillView<'a> {
    /// Reads one entry.
    ///
    /// # Errors
    /// [`ViewError`] when a member the extension requires is missing or of another shape: such a
    /// skill must not be loaded.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "skill";
        let [uri, frontmatter, resources] = select(raw, ["uri", "frontmatter", "resources"])
            .ok_or_else(|| wrong(what, "skill", "an object", Some(raw)))?;
        let uri = uri.and_then(text).ok_or_else(|| wrong(what, "uri", "a string", uri))?;
        let frontmatter = frontmatter
            .filter(|found| type_name(found) == "object")
            .ok_or_else(|| wrong(what, "frontmatter", "an object", frontmatter))?;
        let field = |name, path| {
            let found = member(frontmatter, name);
            found.and_then(text).ok_or_else(|| wrong(what, path, "a string", found))
        };
        Ok(Self {
            name: field("name", "frontmatter.name")?,
            description: field("description", "frontmatter.description")?,
            files: files(resources)?,
            uri,
            frontmatter,
            raw,
        })
    }
}

fn files(resources: Option<&RawValue>) -> Result<Option<Vec<SkillFile<'_>>>, ViewError> {
    let fault = || wrong("skill", "resources", "an array or \"dynamic\"", resources);
    let resources = resources.ok_or_else(fault)?;
    if text(resources).is_some_and(|word| word == "dynamic") {
        return Ok(None);
    }
    let files = items(resources).ok_or_else(fault)?;
    files.into_iter().map(SkillFile::read).collect::<Result<_, _>>().map(Some)
}

impl<'a> SkillFile<'a> {
    fn read(raw: &'a RawValue) -> Result<Self, ViewError> {
        let what = "file of a skill";
        let [uri, digest, size] = select(raw, ["uri", "digest", "size"])
            .ok_or_else(|| wrong(what, "resources[]", "an object", Some(raw)))?;
        let sha256 = digest.and_then(text).as_deref().and_then(sha256);
        let count = size.and_then(integer).and_then(|size| u64::try_from(size).ok());
        Ok(Self {
            uri: uri.and_then(text).ok_or_else(|| wrong(what, "uri", "a string", uri))?,
            sha256: sha256.ok_or_else(|| wrong(what, "digest", "sha256: and 64 digits", digest))?,
            size: count.ok_or_else(|| wrong(what, "size", "a number of bytes", size))?,
        })
    }
}

/// `sha256:` and 64 lower-case hexadecimal digits.
fn sha256(digest: &str) -> Option<[u8; 32]> {
    let digits = digest.strip_prefix("sha256:")?.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != 32 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fragment;

    fn entry(resources: &str) -> Fragment {
        let text = format!(
            r#"{{"uri":"skill://a/SKILL.md","frontmatter":{{"name":"a","description":"d"}},"resources":{resources}}}"#
        );
        Fragment::parse(&text).unwrap()
    }

    #[test]
    fn an_entry_has_files_or_is_dynamic_and_nothing_else() {
        let digest = format!("sha256:{}", "0f".repeat(32));
        let listed = entry(&format!(r#"[{{"uri":"u:","digest":"{digest}","size":3}}]"#));
        let view = SkillView::from_raw(listed.as_raw()).unwrap();
        assert_eq!(
            view.files.unwrap(),
            [SkillFile { uri: "u:".into(), sha256: [15; 32], size: 3 }]
        );
        assert!(SkillView::from_raw(entry("\"dynamic\"").as_raw()).unwrap().files.is_none());
        let upper = digest.to_uppercase();
        for bad in [
            "null".to_owned(),
            "\"static\"".to_owned(),
            r#"[{"uri":"u:","size":3}]"#.to_owned(),
            format!(r#"[{{"uri":"u:","digest":"{upper}","size":3}}]"#),
            format!(r#"[{{"uri":"u:","digest":"{digest}0","size":3}}]"#),
            format!(r#"[{{"uri":"u:","digest":"{digest}","size":-3}}]"#),
            format!(r#"[{{"digest":"{digest}","size":3}}]"#),
        ] {
            assert!(SkillView::from_raw(entry(&bad).as_raw()).is_err(), "{bad}");
        }
    }
}
