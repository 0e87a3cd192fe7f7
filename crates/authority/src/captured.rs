//! The authority of one call on the host's side: captured once, attached to every send of it.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{
    AttachError, Attachment, AuthorityChanged, AuthorityDigest, AuthorityPart, JsonKind,
    MetaKeyClass, SandboxState, VerifiedLauncher, classify_meta_key,
    digest::FieldDigest,
    meta::{self, Member},
    meta_key,
};

/// Names the execution environment a server runs in. Fixed for a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvironmentId(Arc<str>);

impl EnvironmentId {
    const LOCAL: &str = "local";

    /// The environment named `id` in trusted configuration.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into().into())
    }

    /// The host's own machine.
    pub fn local() -> Self {
        Self::new(Self::LOCAL)
    }

    /// Whether it is [`local`](Self::local).
    pub fn is_local(&self) -> bool {
        &*self.0 == Self::LOCAL
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvironmentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Names where a connection's credential comes from (its source and OAuth client): an identifier,
/// never token bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CredentialPin(String);

impl CredentialPin {
    /// The credential that `identifier` names.
    pub fn new(identifier: impl Into<String>) -> Self {
        Self(identifier.into())
    }

    /// The identifier.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a server certainly shares a file system with the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerReach {
    /// A child process on this machine, spoken to over its stdin and stdout.
    LocalStdio,
    /// Everything else: HTTP (loopback included) and remote environments. Never gets a launcher.
    Remote,
}

/// What is captured, before it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorityParts {
    /// The sandbox state; absent when the server's environment is not the one selected.
    pub state: Option<SandboxState>,
    /// Where the server runs.
    pub environment: EnvironmentId,
    /// How the server is reached.
    pub reach: ServerReach,
    /// The launcher, when one is known. Dropped unless `reach` is [`ServerReach::LocalStdio`].
    pub launcher: Option<VerifiedLauncher>,
    /// The server advertised a sandbox capability
    /// ([`SandboxOptIn::advertised`](crate::SandboxOptIn::advertised)).
    pub opt_in: bool,
    /// The pinned credential of the connection, when it has one.
    pub credential: Option<CredentialPin>,
}

impl AuthorityParts {
    /// No state, launcher, opt-in or credential: fill in what there is.
    pub fn new(environment: EnvironmentId, reach: ServerReach) -> Self {
        Self { state: None, environment, reach, launcher: None, opt_in: false, credential: None }
    }
}

/// The authority of one call. Capture it as the first step of accepting the call; nothing changes
/// it afterwards.
///
/// Compared and digested are five things: state text, environment, launcher (path and file
/// identity), opt-in, credential pin.
#[derive(Clone, Debug)]
pub struct CapturedAuthority {
    parts: AuthorityParts,
}

impl CapturedAuthority {
    /// Captures `parts` by value.
    pub fn capture(mut parts: AuthorityParts) -> Self {
        if parts.reach != ServerReach::LocalStdio {
            parts.launcher = None;
        }
        Self { parts }
    }

    /// The captured state.
    pub fn state(&self) -> Option<&SandboxState> {
        self.parts.state.as_ref()
    }

    /// The captured environment.
    pub fn environment(&self) -> &EnvironmentId {
        &self.parts.environment
    }

    /// The captured launcher.
    pub fn launcher(&self) -> Option<&VerifiedLauncher> {
        self.parts.launcher.as_ref()
    }

    /// True when the server opted in.
    pub fn opt_in(&self) -> bool {
        self.parts.opt_in
    }

    /// The captured credential pin.
    pub fn credential(&self) -> Option<&CredentialPin> {
        self.parts.credential.as_ref()
    }

    /// Compares with the authority that a retry would have.
    ///
    /// # Errors
    ///
    /// [`AuthorityChanged`] naming each of the five that differs.
    pub fn ensure_same(&self, other: &Self) -> Result<(), AuthorityChanged> {
        let (own, other) = (&self.parts, &other.parts);
        AuthorityChanged::unless_same([
            (AuthorityPart::State, own.state == other.state),
            (AuthorityPart::Environment, own.environment == other.environment),
            (AuthorityPart::Launcher, own.launcher == other.launcher),
            (AuthorityPart::OptIn, own.opt_in == other.opt_in),
            (AuthorityPart::Credential, own.credential == other.credential),
        ])
    }

    /// SHA-256 over the five, for an audit event.
    pub fn digest(&self) -> AuthorityDigest {
        let mut digest = FieldDigest::new("plenipo authority 1");
        digest.field(self.state().map(|state| state.as_str().as_bytes()));
        digest.field(Some(self.environment().as_str().as_bytes()));
        digest.field(self.launcher().map(VerifiedLauncher::identity_bytes).as_deref());
        digest.field(Some(&[u8::from(self.opt_in())]));
        digest.field(self.credential().map(|pin| pin.as_str().as_bytes()));
        digest.finish()
    }

    /// Builds `params._meta` of a `tools/call` as one value: [`attachment`](Self::attachment),
    /// written out. The result is one line.
    ///
    /// # Errors
    ///
    /// [`AttachError`], for the reasons of [`attachment`](Self::attachment).
    pub fn attach(
        &self,
        caller_meta: Option<&RawValue>,
        extra: &[(&str, &RawValue)],
    ) -> Result<Box<RawValue>, AttachError> {
        self.attachment(caller_meta, extra)?.to_raw()
    }

    /// The entries of `params._meta` of a `tools/call` (of no other request): what the caller wants
    /// to send, then the host's own `extra` entries, then, for an opted-in server with a state, the
    /// state under both names and the launcher. Nothing is copied, and the state is not read.
    ///
    /// The caller's values for the three sandbox keys, and for any key in `extra`, are dropped,
    /// duplicates and escaped spellings included. Every other entry stays as written and in order.
    ///
    /// # Errors
    ///
    /// [`AttachError`] when the caller's `_meta` is not an object or holds a key that is not the
    /// caller's to set ([`classify_meta_key`]), when `extra` names a sandbox key or a key twice, or
    /// when the file at the launcher's path is no longer the one captured.
    pub fn attachment<'a>(
        &'a self,
        caller_meta: Option<&'a RawValue>,
        extra: &'a [(&'a str, &'a RawValue)],
    ) -> Result<Attachment<'a>, AttachError> {
        check_extra(extra)?;
        let mut carried = Vec::new();
        let members = caller_meta.map(|meta| caller_members(meta.get())).transpose()?;
        for member in members.into_iter().flatten() {
            if is_carried(&member, extra)? {
                carried.push((member.raw_key, member.value));
            }
        }
        let state = self.state().filter(|_| self.opt_in());
        let launcher = match self.launcher().filter(|_| state.is_some()) {
            Some(verified) => Some(launcher_entry(verified)?),
            None => None,
        };
        Ok(Attachment { carried, extra, state, launcher })
    }
}

fn launcher_entry(verified: &VerifiedLauncher) -> Result<Box<RawValue>, AttachError> {
    verified.still_same().map_err(|source| AttachError::Launcher { source })?;
    let json = verified.launcher().to_json();
    json.map_err(|source| AttachError::CallerNotJson { source })
}

fn check_extra(extra: &[(&str, &RawValue)]) -> Result<(), AttachError> {
    for (index, (key, value)) in extra.iter().enumerate() {
        let key = || (*key).to_owned();
        if classify_meta_key(&key()) == MetaKeyClass::Sandbox {
            return Err(AttachError::ExtraSandboxKey { key: key() });
        }
        if extra.iter().take(index).any(|(earlier, _)| *earlier == key()) {
            return Err(AttachError::ExtraTwice { key: key() });
        }
        // A raw value that did not come from serde_json is whatever its maker wrote.
        serde_json::from_str::<&RawValue>(value.get())
            .map_err(|source| AttachError::ExtraNotJson { key: key(), source })?;
    }
    Ok(())
}

fn caller_members(text: &str) -> Result<Vec<Member<'_>>, AttachError> {
    match JsonKind::of(text) {
        JsonKind::Object => {
            meta::members(text).map_err(|source| AttachError::CallerNotJson { source })
        }
        found => Err(AttachError::CallerNotAnObject { found }),
    }
}

/// Whether a caller's entry goes out: not when the host replaces it, an error when it is forged.
fn is_carried(member: &Member<'_>, extra: &[(&str, &RawValue)]) -> Result<bool, AttachError> {
    if meta_key::is_replaced(&member.key) {
        return Ok(false);
    }
    match classify_meta_key(&member.key) {
        MetaKeyClass::Sandbox | MetaKeyClass::Reserved => {
            Err(AttachError::CallerReservedKey { key: member.key.clone().into_owned() })
        }
        _ => Ok(extra.iter().all(|(key, _)| *key != member.key)),
    }
}

#[cfg(test)]
mod tests;
