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

/// What issuers call a bearer token. `user` and `bot` say whose it is, where it should say how it is presented.
const BEARERS: [&str; 3] = ["bearer", "user", "bot"];

/// How a token is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenType {
    /// `Authorization: Bearer …` (RFC 6750).
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

    /// Reads `token_type`, in whatever case. `None`: a type that says how it is presented, in a way that is not
    /// known here, so that it must not be used (RFC 6749 §7.1).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is = |name: &str| text.eq_ignore_ascii_case(name);
        match text {
            _ if BEARERS.into_iter().any(is) => Some(Self::Bearer),
            _ if is("dpop") => Some(Self::Dpop),
            _ if is("n_a") => Some(Self::NotApplicable),
            _ => None,
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
        let token_type = match json.text("token_type")? {
            // Some servers leave it out; there was one type only when they were written.
            None => TokenType::Bearer,
            Some(text) => TokenType::parse(text).ok_or_else(|| {
                let found = crate::text::shown(text);
                json.value_fault("token_type", format!("is `{found}`, expected `Bearer` or `DPoP`"))
            })?,
        };
        Ok(Self {
            access_token: Secret::new(access_token.to_owned()),
            token_type,
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
