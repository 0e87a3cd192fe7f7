//! Failures of sign-ins and stores, as a connection tells of them.

use std::sync::Arc;

use plenipo_credentials::{ErrorKind as TokenErrorKind, StoreError, TokenError};
use plenipo_oauth::{ErrorKind as OAuthErrorKind, OAuthError, Scopes};

use super::grantor::GrantError;
use crate::{AuthorizeError, ErrorKind};

/// Of a flow.
pub(super) fn failed(error: OAuthError, command: &str) -> AuthorizeError {
    let kind = match error.kind() {
        OAuthErrorKind::Transient => ErrorKind::Transport,
        OAuthErrorKind::PeerMisbehaved | OAuthErrorKind::Unsupported => ErrorKind::Protocol,
        OAuthErrorKind::Config => ErrorKind::Usage,
        _ => ErrorKind::SignIn,
    };
    let hint = error.hint().or_else(|| match error.kind() {
        OAuthErrorKind::SignIn => Some(run(command)),
        _ => None,
    });
    with(AuthorizeError::new(kind, error), hint)
}

/// Of a token source.
pub(super) fn token_failed(error: &TokenError, command: &str) -> AuthorizeError {
    let (kind, hint) = match error.kind() {
        TokenErrorKind::SignIn => (ErrorKind::SignIn, Some(run(command))),
        TokenErrorKind::Changed => (ErrorKind::Refused, Some("connect again".to_owned())),
        TokenErrorKind::Transient => (ErrorKind::Transport, None),
        TokenErrorKind::Config => (ErrorKind::Usage, None),
        _ => (ErrorKind::SignIn, Some(run(command))),
    };
    with(AuthorizeError::new(kind, error.clone()), hint)
}

/// Of a store.
pub(super) fn store_failed(error: Arc<StoreError>) -> AuthorizeError {
    let kind = match error.kind() {
        TokenErrorKind::Transient => ErrorKind::Transport,
        _ => ErrorKind::Usage,
    };
    let hint = error.hint();
    with(AuthorizeError::new(kind, error), hint)
}

/// Of a grantor.
pub(super) fn grant_failed(error: GrantError, command: &str) -> AuthorizeError {
    match error {
        GrantError::OAuth(error) => failed(error, command),
        GrantError::Prompt(source) => AuthorizeError::new(ErrorKind::SignIn, source),
    }
}

/// Nothing is held, and nobody to ask.
pub(super) fn not_signed_in(command: &str) -> AuthorizeError {
    AuthorizeError::new(ErrorKind::SignIn, "the server wants a sign-in").with_hint(run(command))
}

/// More scopes are needed, and nobody to ask.
pub(super) fn needs_scopes(
    wanted: Option<&Scopes>,
    held: &Scopes,
    command: &str,
) -> AuthorizeError {
    let wanted = wanted.cloned().unwrap_or_default();
    let missing = wanted.without(held);
    if missing.is_empty() {
        let text = "it needs scopes that were not granted";
        return AuthorizeError::new(ErrorKind::SignIn, text).with_hint(run(command));
    }
    let all = held.union(&missing);
    let text = format!("it needs the scope `{missing}`, which was not granted");
    let hint = format!("run `{command} --scopes \"{all}\"`");
    AuthorizeError::new(ErrorKind::SignIn, text).with_hint(hint).with_scopes(all)
}

fn run(command: &str) -> String {
    format!("run `{command}`")
}

fn with(error: AuthorizeError, hint: Option<String>) -> AuthorizeError {
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
