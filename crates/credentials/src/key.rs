//! What a credential is named by.

use std::fmt;

use plenipo_oauth::{Issuer, ResourceId};
use ring::digest::{Context, SHA256};

/// Issuer, resource, client and subject. Two credentials that differ in any of them are strangers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CredentialKey {
    /// Who issued it, as text.
    pub issuer: Issuer,
    /// What it is for (RFC 8707).
    pub resource: ResourceId,
    /// The OAuth client.
    pub client_id: String,
    /// `sub` of the person, where the issuer says it; `None` for one that does not, and for a client
    /// that acts for itself.
    pub subject: Option<String>,
}

/// The name of a record in a store: a digest, which tells nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(String);

impl CredentialKey {
    /// A key without subject.
    #[must_use]
    pub fn new(issuer: Issuer, resource: ResourceId, client_id: impl Into<String>) -> Self {
        Self { issuer, resource, client_id: client_id.into(), subject: None }
    }

    /// With a subject.
    #[must_use]
    pub fn with_subject(mut self, subject: Option<String>) -> Self {
        self.subject = subject;
        self
    }

    /// The name of its record.
    #[must_use]
    pub fn id(&self) -> RecordId {
        let parts = [
            Some(self.issuer.as_str()),
            Some(self.resource.as_str()),
            Some(self.client_id.as_str()),
            self.subject.as_deref(),
        ];
        RecordId::digest("plenipo credential 1", parts)
    }
}

impl RecordId {
    /// 64 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a record of another kind in the same store: a digest of what kind it is, and of
    /// what tells it from others of its kind.
    #[must_use]
    pub fn of(kind: &str, parts: &[&str]) -> Self {
        let parts = parts.iter().map(|part| Some(*part));
        Self::digest(kind, parts)
    }

    fn digest<'a>(kind: &str, parts: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(kind.as_bytes());
        for part in parts {
            // Lengths keep the parts apart; no part at all is not the same as an empty one.
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            context.update(&length.to_be_bytes());
            context.update(part.unwrap_or_default().as_bytes());
        }
        Self(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Takes what a store lists; `None` for anything else than an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for CredentialKey {
    /// For a person: the resource and who issues for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.resource, self.issuer)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(issuer: &str, resource: &str, client: &str, subject: Option<&str>) -> CredentialKey {
        let (issuer, resource) = (Issuer::parse(issuer), ResourceId::parse(resource));
        CredentialKey::new(issuer.unwrap(), resource.unwrap(), client)
            .with_subject(subject.map(str::to_owned))
    }

    #[test]
    fn each_of_the_four_parts_makes_another_record() {
        let (issuer, resource) = ("https://as.example", "https://mcp.example/mcp");
        let all = [
            key(issuer, resource, "c", None),
            key("https://as.example/", resource, "c", None),
            key(issuer, "https://mcp.example", "c", None),
            key(issuer, resource, "d", None),
            key(issuer, resource, "c", Some("")),
            key(issuer, resource, "c", Some("ada")),
            key(issuer, resource, "ca", Some("da")),
        ];
        let ids: std::collections::BTreeSet<_> = all.iter().map(CredentialKey::id).collect();
        assert_eq!(ids.len(), all.len());
        assert_eq!(all[0].id(), all[0].clone().id());
        let id = all[0].id();
        assert_eq!(RecordId::parse(id.as_str()), Some(id));
        for bad in ["", "../x", &"A".repeat(64), &"0".repeat(63)] {
            assert_eq!(RecordId::parse(bad), None, "{bad}");
        }
    }
}
