//! How a client proves its identity at the token endpoint (RFC 6749 §2.3, RFC 7523 §2.2).

use std::fmt;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, header};
use plenipo_redact::Secret;

use crate::error::{KeyFault, OAuthError};
use crate::form::Form;
use crate::jose::{Claims, SigningKey};
use crate::registration::ClientRegistration;
use crate::server_metadata::{ServerMetadata, lists};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// In seconds: long enough for clocks that differ a little.
const ASSERTION_LIFE: u64 = 300;

/// A way to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthenticationMethod {
    /// Only the client id, in the body.
    None,
    /// Id and secret as HTTP Basic.
    SecretBasic,
    /// Id and secret in the body.
    SecretPost,
    /// A JWT signed with the client's key.
    PrivateKeyJwt,
}

impl AuthenticationMethod {
    /// As in metadata and configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SecretBasic => "client_secret_basic",
            Self::SecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// The reverse of [`as_str`](Self::as_str).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let methods = [Self::None, Self::SecretBasic, Self::SecretPost, Self::PrivateKeyJwt];
        methods.into_iter().find(|method| method.as_str() == text)
    }
}

/// What a client proves its identity with.
#[derive(Clone)]
#[non_exhaustive]
pub enum ClientCredential {
    /// Nothing: a public client.
    None,
    /// `client_secret`.
    Secret(Secret<String>),
    /// A key.
    Key(SigningKey),
}

impl fmt::Debug for ClientCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Secret(_) => "Secret",
            Self::Key(_) => "Key",
        })
    }
}

/// The method that suits both: the registered one, else the first that the server lists and the
/// credential allows; without a list, `client_secret_basic` (RFC 8414 §2).
///
/// # Errors
/// [`OAuthError::ClientAuthentication`] when none does.
pub(crate) fn method(
    metadata: &ServerMetadata,
    client: &ClientRegistration,
) -> Result<AuthenticationMethod, OAuthError> {
    use AuthenticationMethod as Method;
    let able: &[Method] = match client.credential {
        ClientCredential::None => &[Method::None],
        ClientCredential::Secret(_) => &[Method::SecretBasic, Method::SecretPost, Method::None],
        ClientCredential::Key(_) => &[Method::PrivateKeyJwt],
    };
    let offered = metadata.token_auth_methods.as_deref();
    let chosen = match (client.method, offered) {
        (Some(method), _) => Some(method).filter(|method| able.contains(method)),
        (None, None) => able.first().copied(),
        (None, Some([])) => able.first().copied(),
        (None, Some(_)) => {
            able.iter().copied().find(|method| lists(offered, method.as_str())).or(
                // A public client has nothing else to offer; some servers list their favourites only.
                matches!(client.credential, ClientCredential::None).then_some(Method::None),
            )
        }
    };
    chosen.ok_or_else(|| OAuthError::ClientAuthentication {
        issuer: metadata.issuer.to_string(),
        offered: match (client.method, offered) {
            (Some(method), _) => method.as_str().to_owned(),
            (None, offered) => crate::text::shown(&offered.unwrap_or_default().join(", ")),
        },
    })
}

/// Adds what `method` wants to a form; returns the headers it wants.
pub(crate) fn authenticate(
    metadata: &ServerMetadata,
    client: &ClientRegistration,
    now: SystemTime,
    form: &mut Form,
) -> Result<Vec<(HeaderName, HeaderValue)>, OAuthError> {
    let method = method(metadata, client)?;
    match (method, &client.credential) {
        (AuthenticationMethod::SecretBasic, ClientCredential::Secret(secret)) => {
            form.protect(secret);
            return Ok(vec![(header::AUTHORIZATION, basic(&client.client_id, secret)?)]);
        }
        (AuthenticationMethod::SecretPost, ClientCredential::Secret(secret)) => {
            form.add("client_id", &client.client_id);
            form.add_secret("client_secret", secret);
        }
        (AuthenticationMethod::PrivateKeyJwt, ClientCredential::Key(key)) => {
            key.check_accepted(metadata.token_auth_algorithms.as_deref())?;
            let claims = Claims {
                iss: Some(client.client_id.clone()),
                sub: Some(client.client_id.clone()),
                aud: Some(metadata.issuer.as_str().to_owned()),
                ..Claims::new(now, Some(ASSERTION_LIFE))?
            };
            form.add("client_assertion_type", ASSERTION_TYPE);
            form.add_secret("client_assertion", &key.sign("JWT", None, &claims)?);
        }
        _ => form.add("client_id", &client.client_id),
    }
    Ok(Vec::new())
}

/// Both parts are form-encoded first (RFC 6749 §2.3.1).
fn basic(client_id: &str, secret: &Secret<String>) -> Result<HeaderValue, OAuthError> {
    let encode =
        |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let pair = format!("{}:{}", encode(client_id), encode(secret.expose()));
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
    let mut value = value.map_err(|_| OAuthError::from(KeyFault::NotPem))?;
    value.set_sensitive(true);
    Ok(value)
}
