//! Reading the authority of a call from its `_meta`.

use std::path::Path;

use serde_json::{Map, Value, value::RawValue};

use crate::{
    CallAuthorityError, JsonKind, LAUNCHER_KEY, STATE_ALIAS_KEY, STATE_KEY, SandboxLauncher,
    SandboxState, meta,
};

mod exact;

/// The only member of a launcher value.
const LAUNCHER_MEMBER: &str = "codexExecutable";

/// The state and launcher that came with one `tools/call`, well formed or absent.
///
/// Tool arguments are never authority, whatever they are called: only `params._meta` is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallAuthority {
    state: Option<SandboxState>,
    launcher: Option<SandboxLauncher>,
}

impl CallAuthority {
    /// The authority of a call without `_meta`: none. Absence is not permission.
    pub fn absent() -> Self {
        Self::default()
    }

    /// Reads `params._meta` from its original text, which the state keeps byte for byte.
    ///
    /// # Errors
    ///
    /// [`CallAuthorityError`] when `_meta` is not an object, a sandbox key occurs twice (keys are
    /// compared after unescaping), a state is not an object, both names carry different texts, or
    /// the launcher is anything but an object with an absolute path as its only member.
    pub fn from_meta(meta: &RawValue) -> Result<Self, CallAuthorityError> {
        match JsonKind::of(meta.get()) {
            JsonKind::Object => {}
            found => return Err(CallAuthorityError::NotAnObject { found }),
        }
        let (mut state, mut alias, mut launcher) = (None, None, None);
        let members = meta::members(meta.get());
        for member in members.map_err(|source| CallAuthorityError::NotJson { source })? {
            let (key, slot) = match &*member.key {
                STATE_KEY => (STATE_KEY, &mut state),
                STATE_ALIAS_KEY => (STATE_ALIAS_KEY, &mut alias),
                LAUNCHER_KEY => (LAUNCHER_KEY, &mut launcher),
                _ => continue,
            };
            if slot.replace(member.value).is_some() {
                return Err(CallAuthorityError::Duplicated { key });
            }
        }
        let state = capture(STATE_KEY, state)?;
        let alias = capture(STATE_ALIAS_KEY, alias)?;
        if let (Some(state), Some(alias)) = (&state, &alias)
            && state != alias
        {
            return Err(CallAuthorityError::Differ);
        }
        let launcher = launcher.map(|value| launcher_from_text(value.get())).transpose()?;
        Ok(Self { state: state.or(alias), launcher })
    }

    /// Reads an already parsed `params._meta`, for servers whose SDK keeps no text.
    ///
    /// The state becomes the text of the parsed value: the same JSON value, not the same bytes.
    /// Refused is what a [`Value`] may have rounded: a number outside the 64-bit integers, or a
    /// fraction with more than 15 significant digits. What parsing already lost cannot be seen here
    /// (digits past the 15th of a fraction that were rounded away, a duplicated key of which one
    /// was kept), so prefer [`from_meta`](Self::from_meta) where you have the text.
    ///
    /// # Errors
    ///
    /// As [`from_meta`](Self::from_meta), comparing both names by value; also for an inexact number
    /// and for nesting deeper than 128, which `serde_json` itself does not parse.
    pub fn from_map(meta: &Map<String, Value>) -> Result<Self, CallAuthorityError> {
        let state = capture_value(STATE_KEY, meta.get(STATE_KEY))?;
        let alias = capture_value(STATE_ALIAS_KEY, meta.get(STATE_ALIAS_KEY))?;
        if state.is_some() && alias.is_some() && meta.get(STATE_KEY) != meta.get(STATE_ALIAS_KEY) {
            return Err(CallAuthorityError::Differ);
        }
        let launcher = match meta.get(LAUNCHER_KEY) {
            None => None,
            Some(value) => {
                exact::check(LAUNCHER_KEY, value)?;
                Some(launcher_from_text(&value.to_string())?)
            }
        };
        Ok(Self { state: state.or(alias), launcher })
    }

    /// The state, when the call brought one.
    pub fn state(&self) -> Option<&SandboxState> {
        self.state.as_ref()
    }

    /// The launcher, when the call brought one.
    pub fn launcher(&self) -> Option<&SandboxLauncher> {
        self.launcher.as_ref()
    }
}

fn capture(
    key: &'static str,
    value: Option<&RawValue>,
) -> Result<Option<SandboxState>, CallAuthorityError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let state = SandboxState::capture(value.get());
    state.map(Some).map_err(|source| CallAuthorityError::State { key, source })
}

fn capture_value(
    key: &'static str,
    value: Option<&Value>,
) -> Result<Option<SandboxState>, CallAuthorityError> {
    let Some(value) = value else {
        return Ok(None);
    };
    exact::check(key, value)?;
    let state = SandboxState::capture(&value.to_string());
    state.map(Some).map_err(|source| CallAuthorityError::State { key, source })
}

/// Reads a launcher value. Unknown members are refused: the contract has none, and one that a
/// future version adds may change what running the program means.
fn launcher_from_text(text: &str) -> Result<SandboxLauncher, CallAuthorityError> {
    match JsonKind::of(text) {
        JsonKind::Object => {}
        found => return Err(CallAuthorityError::LauncherNotAnObject { found }),
    }
    let mut path = None;
    let members = meta::members(text);
    for member in members.map_err(|source| CallAuthorityError::NotJson { source })? {
        if member.key != LAUNCHER_MEMBER {
            let member = member.key.into_owned();
            return Err(CallAuthorityError::LauncherMember { member });
        }
        if path.replace(member.value).is_some() {
            return Err(CallAuthorityError::LauncherDuplicated);
        }
    }
    let value = path.ok_or(CallAuthorityError::LauncherMissing)?.get();
    let path: String = serde_json::from_str(value)
        .map_err(|_| CallAuthorityError::LauncherNotText { found: JsonKind::of(value) })?;
    SandboxLauncher::new(Path::new(&path))
        .map_err(|source| CallAuthorityError::LauncherPath { source })
}

#[cfg(test)]
mod tests;
