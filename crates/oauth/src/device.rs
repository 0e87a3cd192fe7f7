//! Device authorization (RFC 8628): a sign-in on another device.
//!
//! The caller waits: [`DeviceAuthorization::interval`] before each [`poll`](DeviceAuthorization::poll).

use std::time::{Duration, SystemTime};

use plenipo_redact::Secret;

use crate::client_authentication::authenticate;
use crate::error::{Document, OAuthError};
use crate::form::Form;
use crate::http_client::Http;
use crate::issuer::ResourceId;
use crate::scope::Scopes;
use crate::token::{Grant, TokenEndpoint, TokenRequest, TokenResponse};

/// Without `interval` (RFC 8628 §3.2).
const INTERVAL: Duration = Duration::from_secs(5);
/// Added by `slow_down` (RFC 8628 §3.5).
const SLOWER: Duration = Duration::from_secs(5);
/// The longest life and wait that are believed.
const LONGEST: u64 = 3600;

/// What the person has to enter where, and what is polled with meanwhile.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeviceAuthorization {
    /// For the person.
    pub user_code: Secret<String>,
    /// Where to enter it; to be shown, and opened only by the person.
    pub verification_uri: String,
    /// The same with the code in it.
    pub verification_uri_complete: Option<Secret<String>>,
    /// How long to wait before the next poll.
    pub interval: Duration,
    /// When the code is good for nothing any more.
    pub expires_at: SystemTime,
    request: TokenRequest,
}

/// What a poll brought.
#[derive(Debug)]
#[non_exhaustive]
pub enum Polled {
    /// The person is not done; wait [`DeviceAuthorization::interval`].
    Pending,
    /// Signed in.
    Done(TokenResponse),
}

impl DeviceAuthorization {
    /// Asks for a code.
    ///
    /// # Errors
    /// [`Missing::Endpoint`](crate::Missing::Endpoint) without `device_authorization_endpoint`; a
    /// refusal; a response that cannot be used.
    pub async fn begin(
        http: &Http<'_>,
        endpoint: &TokenEndpoint,
        resource: Option<&ResourceId>,
        scopes: Option<&Scopes>,
    ) -> Result<Self, OAuthError> {
        let metadata = &endpoint.metadata;
        let member = "device_authorization_endpoint";
        let url = metadata.need(metadata.device_authorization_endpoint.as_ref(), member)?;
        let mut form = Form::default();
        form.add_some("resource", resource.map(ResourceId::as_str));
        form.add_some("scope", scopes.map(Scopes::to_string));
        let now = http.now();
        let headers = authenticate(metadata, &endpoint.client, now, &mut form)?;
        // RFC 8628 §3.1 wants the id in the body, whatever authenticates.
        if !headers.is_empty() {
            form.add("client_id", &endpoint.client.client_id);
        }
        let document = Document::DeviceAuthorization;
        let response = http.post_form(document, url, headers, form.encode()).await?;
        let json = crate::response::read(document, url, &response, form.secrets())?;
        let code = Secret::new(json.required_text("device_code")?.to_owned());
        let shown_to_person = |name| -> Result<Option<String>, OAuthError> {
            let Some(url) = json.url(name)? else { return Ok(None) };
            Ok(Some(url.as_str().to_owned()))
        };
        // An older draft called it `verification_url`.
        let verification_uri =
            shown_to_person("verification_uri")?.or(shown_to_person("verification_url")?);
        let missing =
            || json.fault(crate::error::DocumentFault::Missing { name: "verification_uri" });
        let user_code = json.required_text("user_code")?;
        if user_code.len() > 64 || user_code.chars().any(char::is_control) {
            return Err(json.value_fault("user_code", "is nothing that a person could enter"));
        }
        let life = json.seconds("expires_in")?.unwrap_or(LONGEST / 2).min(LONGEST);
        let interval = json
            .seconds("interval")?
            .map_or(INTERVAL, |seconds| Duration::from_secs(seconds.clamp(1, LONGEST)));
        Ok(Self {
            user_code: Secret::new(user_code.to_owned()),
            verification_uri: verification_uri.ok_or_else(missing)?,
            verification_uri_complete: shown_to_person("verification_uri_complete")?
                .map(Secret::new),
            interval,
            expires_at: now + Duration::from_secs(life),
            request: TokenRequest::new(Grant::DeviceCode(code), resource.cloned()),
        })
    }

    /// Asks whether the person is done.
    ///
    /// # Errors
    /// [`OAuthError::DeviceCodeExpired`]; a refusal such as `access_denied`; whatever else a token
    /// request may end with. After an error of [`ErrorKind::Transient`](crate::ErrorKind) another
    /// poll makes sense, later (RFC 8628 §3.5).
    pub async fn poll(
        &mut self,
        http: &Http<'_>,
        endpoint: &TokenEndpoint,
    ) -> Result<Polled, OAuthError> {
        if http.now() >= self.expires_at {
            return Err(OAuthError::DeviceCodeExpired);
        }
        match endpoint.request(http, &self.request).await {
            Ok(token) => Ok(Polled::Done(token)),
            Err(error) => match error.code() {
                Some("authorization_pending") => Ok(Polled::Pending),
                Some("slow_down") => {
                    self.interval += SLOWER;
                    Ok(Polled::Pending)
                }
                Some("expired_token") => Err(OAuthError::DeviceCodeExpired),
                _ => {
                    // After a connection that failed, less often (RFC 8628 §3.5).
                    self.interval = (self.interval * 2).min(Duration::from_secs(LONGEST));
                    Err(error)
                }
            },
        }
    }
}
