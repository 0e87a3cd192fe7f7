//! Whether an entry keeps the extension's rules, and whether bytes are what it says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plenipo_wire::RawValue;
use plenipo_wire::views::{ReadResult, SkillFile, SkillView};
use sha2::{Digest as _, Sha256};

use super::Skill;
use crate::error::SkillFault;
use crate::text::shown;

const FILES: usize = 512;
const BYTES: u64 = 16 * 1024 * 1024;
const MANIFEST: &str = "/SKILL.md";

/// What the entry says about one file.
#[derive(Debug)]
pub(super) struct ListedFile {
    sha256: [u8; 32],
    size: u64,
}

/// Everything that can be said without reading a file.
pub(super) fn entry(skill: &Skill) -> Result<(), SkillFault> {
    let invalid = |reason| SkillFault::Entry { reason };
    let view = skill.view().map_err(|_| invalid("it cannot be read"))?;
    let files = view.files.as_ref().ok_or(SkillFault::Dynamic)?;
    if files.len() > FILES {
        return Err(SkillFault::TooManyFiles { count: files.len(), limit: FILES });
    }
    let bytes = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    if bytes > BYTES {
        return Err(SkillFault::TooLarge { bytes, limit: BYTES });
    }
    let root = root(&view.uri).ok_or(invalid("its URI does not end in /SKILL.md"))?;
    if root.rsplit('/').next() != Some(&*view.name) {
        return Err(invalid("its name is not the last segment of its path"));
    }
    let within = |file: &SkillFile<'_>| {
        file.uri.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
    };
    if !files.iter().all(within) {
        return Err(invalid("it lists a file outside of its directory"));
    }
    let mut uris: Vec<_> = files.iter().map(|file| &file.uri).collect();
    uris.sort_unstable();
    if uris.array_windows_equal() {
        return Err(invalid("it lists a file twice"));
    }
    match uris.binary_search(&&view.uri) {
        Ok(_) => Ok(()),
        Err(_) => Err(invalid("it does not list its own SKILL.md")),
    }
}

/// Whether two neighbours are equal.
trait Neighbours {
    fn array_windows_equal(&self) -> bool;
}

impl<T: PartialEq> Neighbours for [T] {
    fn array_windows_equal(&self) -> bool {
        self.iter().zip(self.iter().skip(1)).any(|(one, next)| one == next)
    }
}

/// What the entry says about the file at `uri`.
pub(super) fn listed(skill: &Skill, uri: &str) -> Result<ListedFile, SkillFault> {
    let unlisted = || SkillFault::Unlisted { uri: shown(uri) };
    let view = skill.view().map_err(|_| unlisted())?;
    let SkillView { files, .. } = view;
    let files = files.ok_or(SkillFault::Dynamic)?;
    let file = files.into_iter().find(|file| file.uri == uri).ok_or_else(unlisted)?;
    Ok(ListedFile { sha256: file.sha256, size: file.size })
}

/// The bytes of a result, if they are what is listed.
pub(super) fn bytes(
    result: &RawValue,
    uri: &str,
    listed: &ListedFile,
) -> Result<Vec<u8>, SkillFault> {
    let none = || SkillFault::NoContents { uri: shown(uri) };
    let view = ReadResult::from_raw(result).map_err(|_| none())?;
    let mut entries = view.contents.iter();
    let entry = match (entries.next(), entries.next()) {
        (Some(only), None) => only,
        _ => view.contents.iter().find(|entry| entry.uri == uri).ok_or_else(none)?,
    };
    let bytes = match (&entry.text, &entry.blob) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(blob)) => STANDARD.decode(blob.as_bytes()).map_err(|_| none())?,
        _ => return Err(none()),
    };
    let found = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if found != listed.size {
        return Err(SkillFault::Size { uri: shown(uri), listed: listed.size, found });
    }
    if Sha256::digest(&bytes)[..] != listed.sha256 {
        return Err(SkillFault::Digest { uri: shown(uri) });
    }
    Ok(bytes)
}

/// A path of a skill's own text as a URI, when it stays inside of the skill.
pub(super) fn resolve(skill: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains("://") || path.contains('\\') {
        return None;
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            segment => segments.push(segment),
        }
    }
    Some(format!("{}/{}", root(skill)?, segments.join("/")))
}

fn root(uri: &str) -> Option<&str> {
    uri.strip_suffix(MANIFEST).filter(|root| root.contains("://"))
}

#[cfg(test)]
mod tests {
    use plenipo_wire::Fragment;

    use super::*;
    use crate::paging::Entry as _;

    fn digest(text: &str) -> String {
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn skill(uri: &str, name: &str, files: &[(&str, u64)]) -> Skill {
        let files: Vec<_> = files
            .iter()
            .map(|(uri, size)| {
                format!(r#"{{"uri":"{uri}","digest":"sha256:{}","size":{size}}}"#, digest("abc"))
            })
            .collect();
        let text = format!(
            r#"{{"uri":"{uri}","frontmatter":{{"name":"{name}","description":"d"}},"resources":[{}]}}"#,
            files.join(",")
        );
        Skill::read(Fragment::parse(&text).unwrap().as_raw()).unwrap()
    }

    #[test]
    fn an_entry_keeps_the_rules_or_is_not_loaded() {
        let (uri, other) = ("skill://x/a/SKILL.md", "skill://x/a/b.md");
        let checked = |uri, name, files: &[(&str, u64)]| {
            entry(&skill(uri, name, files)).map_err(|fault| fault.to_string()).err()
        };
        assert_eq!(checked(uri, "a", &[(other, 1), (uri, 3)]), None);
        let many: Vec<_> = (0..513).map(|_| (other, 1)).collect();
        let table = [
            checked("skill://x/a/skill.md", "a", &[]),
            checked(uri, "b", &[(uri, 3)]),
            checked(uri, "a", &[(other, 1)]),
            checked(uri, "a", &[(uri, 1), ("skill://x/ab/c", 1)]),
            checked(uri, "a", &[(uri, 1), (uri, 1)]),
            checked(uri, "a", &[(uri, BYTES), (other, 1)]),
            checked(uri, "a", &many),
        ];
        insta::assert_snapshot!(table.map(Option::unwrap).join("\n"), @r"
        its entry is not valid: its URI does not end in /SKILL.md
        its entry is not valid: its name is not the last segment of its path
        its entry is not valid: it does not list its own SKILL.md
        its entry is not valid: it lists a file outside of its directory
        its entry is not valid: it lists a file twice
        it has 16777217 bytes, over the limit of 16777216
        it has 513 files, over the limit of 512
        ");
    }

    #[test]
    fn bytes_are_what_is_listed_or_not_given_out() {
        let uri = "skill://a/SKILL.md";
        let file = listed(&skill(uri, "a", &[(uri, 3)]), uri).unwrap();
        let read = |contents: &str| {
            let result = Fragment::parse(&format!(r#"{{"contents":[{contents}]}}"#)).unwrap();
            bytes(result.as_raw(), uri, &file)
        };
        assert_eq!(read(r#"{"uri":"skill://a/SKILL.md","text":"abc"}"#).unwrap(), b"abc");
        assert_eq!(read(r#"{"blob":"YWJj"}"#).unwrap(), b"abc");
        assert!(matches!(read(r#"{"text":"abd"}"#), Err(SkillFault::Digest { .. })));
        assert!(matches!(read(r#"{"text":"abcd"}"#), Err(SkillFault::Size { found: 4, .. })));
        for nothing in ["", "{}", r#"{"blob":"?"}"#, r#"{"text":"abc","blob":"YWJj"}"#] {
            assert!(matches!(read(nothing), Err(SkillFault::NoContents { .. })), "{nothing}");
        }
        let unlisted = listed(&skill(uri, "a", &[(uri, 3)]), "skill://a/b");
        assert!(matches!(unlisted, Err(SkillFault::Unlisted { .. })));
    }

    #[test]
    fn a_path_stays_inside_of_the_skill() {
        let at = |path| resolve("skill://x/a/SKILL.md", path);
        assert_eq!(at("b/./c.md").as_deref(), Some("skill://x/a/b/c.md"));
        assert_eq!(at("b/../c.md").as_deref(), Some("skill://x/a/c.md"));
        for out in ["..", "../b", "b/../../c", "/etc/passwd", "skill://b/SKILL.md", "b\\..\\c"] {
            assert_eq!(at(out), None, "{out}");
        }
    }
}
