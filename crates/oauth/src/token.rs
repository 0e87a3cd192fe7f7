//! The token endpoint: what is asked, and what comes back (RFC 6749 §4 to §6).

mod endpoint;
mod grant;

pub use endpoint::{TokenEndpoint, TokenRequest};
pub use grant::{Grant, TokenExchange, token_type};

use std::fmt;
use std::time::Duration;

use plenipo_redact::Secret;

use crate::error::OAuthError;
use crate::json::Json;
use crate::scope::Scopes;

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenType {
    /// `Authorization: Bearer …` (RFC 6750). What is neither of the others counts as this.
    Bearer,
    /// `Authorization: DPoP …` with a proof for every request (RFC 9449).
    Dpop,
    /// Not an access token, but something to exchange (RFC 8693 §2.2.1).
    NotApplicable,
}

impl TokenType {
    /// As it stands in the header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
            Self::NotApplicable => "N_A",
        }
    }

    /// Reads `token_type`, in whatever case.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            _ if text.eq_ignore_ascii_case("dpop") => Self::Dpop,
            _ if text.eq_ignore_ascii_case("n_a") => Self::NotApplicable,
            _ => Self::Bearer,
        }
    }
}

/// A successful answer of a token endpoint. Nothing secret of it is shown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TokenResponse {
    /// `access_token`.
    pub access_token: Secret<String>,
    /// `token_type`.
    pub token_type: TokenType,
    /// `expires_in`; `None`: not said, so good until it is refused. Zero: good for nothing.
    pub expires_in: Option<Duration>,
    /// `refresh_token`. When a refresh brings none, the old one stays good (RFC 6749 §6).
    pub refresh_token: Option<Secret<String>>,
    /// `scope`; `None`: what was asked for (RFC 6749 §5.1).
    pub scopes: Option<Scopes>,
    /// `id_token`.
    pub id_token: Option<Secret<String>>,
    /// `issued_token_type` (RFC 8693 §2.2.1).
    pub issued_token_type: Option<String>,
}

impl TokenResponse {
    /// Only an access token: for tests, and for tokens from elsewhere.
    #[must_use]
    pub fn new(access_token: Secret<String>, token_type: TokenType) -> Self {
        Self {
            access_token,
            token_type,
            expires_in: None,
            refresh_token: None,
            scopes: None,
            id_token: None,
            issued_token_type: None,
        }
    }

    pub(crate) fn read(json: &Json) -> Result<Self, OAuthError> {
        let access_token = json.required_text("access_token")?;
        // It will stand in a header.
        if !access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(json.value_fault("access_token", "has characters that no header may have"));
        }
        let secret = |name| -> Result<Option<Secret<String>>, OAuthError> {
            let text = json.text(name)?.filter(|text| !text.is_empty());
            Ok(text.map(|text| Secret::new(text.to_owned())))
        };
        Ok(Self {
            access_token: Secret::new(access_token.to_owned()),
            token_type: json.text("token_type")?.map_or(TokenType::Bearer, TokenType::parse),
            expires_in: json.seconds("expires_in")?.map(Duration::from_secs),
            refresh_token: secret("refresh_token")?,
            scopes: json.scopes("scope")?,
            id_token: secret("id_token")?,
            issued_token_type: json.text("issued_token_type")?.map(str::to_owned),
        })
    }
}

impl fmt::Display for TokenType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
