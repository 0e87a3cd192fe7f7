//! Giving a token back (RFC 7009).

use plenipo_redact::Secret;

use crate::client_authentication::authenticate;
use crate::error::{Document, OAuthError};
use crate::form::Form;
use crate::http_client::Http;
use crate::token::TokenEndpoint;

/// Which token is given back: `token_type_hint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revoked {
    /// The refresh token, and with it what came of it.
    RefreshToken,
    /// An access token.
    AccessToken,
}

/// Revokes a token. A server without `revocation_endpoint` is left alone: then this is `false`.
///
/// # Errors
/// A refusal, or a server that cannot be reached. The token is to be forgotten all the same.
pub async fn revoke(
    http: &Http<'_>,
    endpoint: &TokenEndpoint,
    token: &Secret<String>,
    which: Revoked,
) -> Result<bool, OAuthError> {
    let Some(url) = &endpoint.metadata.revocation_endpoint else { return Ok(false) };
    let mut form = Form::default();
    form.add_secret("token", token);
    let hint = match which {
        Revoked::RefreshToken => "refresh_token",
        Revoked::AccessToken => "access_token",
    };
    form.add("token_type_hint", hint);
    let headers = authenticate(&endpoint.metadata, &endpoint.client, http.now(), &mut form)?;
    let document = Document::Revocation;
    let response = http.post_form(document, url, headers, form.encode()).await?;
    // The body of a success is nothing (RFC 7009 §2.2).
    match response.status().is_success() {
        true => Ok(true),
        false => crate::response::read(document, url, &response, form.secrets()).map(|_| true),
    }
}
