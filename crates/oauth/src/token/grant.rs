//! What a token is asked for with.

use plenipo_redact::Secret;

use crate::form::Form;

/// Names of token types (RFC 8693 §3 and the identity assertion grant).
pub mod token_type {
    /// An OpenID Connect ID token.
    pub const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
    /// A refresh token.
    pub const REFRESH_TOKEN: &str = "urn:ietf:params:oauth:token-type:refresh_token";
    /// An access token.
    pub const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
    /// A SAML 2.0 assertion.
    pub const SAML2: &str = "urn:ietf:params:oauth:token-type:saml2";
    /// An identity assertion for another authorization server.
    pub const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
}

/// A grant. `Debug` shows which, and nothing secret.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Grant {
    /// RFC 6749 §4.1.3 with RFC 7636 §4.5.
    AuthorizationCode {
        /// The code.
        code: Secret<String>,
        /// The PKCE verifier.
        verifier: Secret<String>,
        /// The one of the authorization request, to the letter.
        redirect_uri: String,
    },
    /// RFC 6749 §6.
    RefreshToken(Secret<String>),
    /// RFC 6749 §4.4.
    ClientCredentials,
    /// RFC 8628 §3.4.
    DeviceCode(Secret<String>),
    /// RFC 7523 §2.1: workload identity, or an identity assertion.
    JwtBearer(Secret<String>),
    /// An identity assertion that is bound to a key, with a proof of it.
    JwtDpop(Secret<String>),
    /// RFC 8693.
    TokenExchange(TokenExchange),
}

/// What a token exchange takes and wants (RFC 8693 §2.1).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TokenExchange {
    /// `subject_token`.
    pub subject_token: Secret<String>,
    /// `subject_token_type`, one of [`token_type`].
    pub subject_token_type: String,
    /// `requested_token_type`.
    pub requested_token_type: Option<String>,
    /// `audience`.
    pub audience: Option<String>,
}

impl TokenExchange {
    /// An exchange of `subject_token` for whatever the server gives.
    #[must_use]
    pub fn new(subject_token: Secret<String>, subject_token_type: impl Into<String>) -> Self {
        Self {
            subject_token,
            subject_token_type: subject_token_type.into(),
            requested_token_type: None,
            audience: None,
        }
    }
}

impl Grant {
    /// `grant_type`.
    #[must_use]
    pub fn grant_type(&self) -> &'static str {
        match self {
            Self::AuthorizationCode { .. } => "authorization_code",
            Self::RefreshToken(_) => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::DeviceCode(_) => "urn:ietf:params:oauth:grant-type:device_code",
            Self::JwtBearer(_) => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            Self::JwtDpop(_) => "urn:ietf:params:oauth:grant-type:jwt-dpop",
            Self::TokenExchange(_) => "urn:ietf:params:oauth:grant-type:token-exchange",
        }
    }

    pub(crate) fn write(&self, form: &mut Form) {
        form.add("grant_type", self.grant_type());
        match self {
            Self::AuthorizationCode { code, verifier, redirect_uri } => {
                form.add_secret("code", code);
                form.add_secret("code_verifier", verifier);
                form.add("redirect_uri", redirect_uri);
            }
            Self::RefreshToken(token) => form.add_secret("refresh_token", token),
            Self::ClientCredentials => {}
            Self::DeviceCode(code) => form.add_secret("device_code", code),
            Self::JwtBearer(assertion) | Self::JwtDpop(assertion) => {
                form.add_secret("assertion", assertion)
            }
            Self::TokenExchange(exchange) => {
                form.add_secret("subject_token", &exchange.subject_token);
                form.add("subject_token_type", &exchange.subject_token_type);
                form.add_some("requested_token_type", exchange.requested_token_type.as_deref());
                form.add_some("audience", exchange.audience.as_deref());
            }
        }
    }
}
