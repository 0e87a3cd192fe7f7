//! Which server, and for whom it answers: names for what is remembered between connections.

use http::HeaderMap;
use plenipo_http::Target;

use super::link::HttpLink;
use crate::memory::MemoryKey;

/// The server's era depends on nobody.
pub(crate) fn era_key(target: &Target) -> MemoryKey {
    MemoryKey::of(["era", &target.uri().to_string()])
}

impl HttpLink {
    /// Its lists may depend on every credential that is sent. With an authorizer that does not say
    /// for whom it speaks nothing is remembered.
    pub(crate) async fn tools_key(&self) -> Option<MemoryKey> {
        let principal = match &self.authorizer {
            Some(authorizer) => authorizer.principal()?,
            None => String::new(),
        };
        let made = match &self.helper {
            Some(helper) => helper.headers().await.ok()?.headers,
            None => HeaderMap::new(),
        };
        let url = self.configured.uri().to_string();
        let mut parts: Vec<&[u8]> = vec![b"tools", url.as_bytes(), principal.as_bytes()];
        let mut headers: Vec<_> = self.own.iter().chain(&made).collect();
        headers.retain(|(name, _)| *name != http::header::USER_AGENT);
        headers.sort_by_key(|(name, value)| (name.as_str(), value.as_bytes()));
        for (name, value) in headers {
            parts.extend([name.as_str().as_bytes(), value.as_bytes()]);
        }
        Some(MemoryKey::of_bytes(parts))
    }
}
