//! Where the browser was sent back to: checked before anything of it is believed.

use std::borrow::Cow;

use plenipo_redact::Secret;

use super::PendingAuthorization;
use crate::error::CallbackFault;
use crate::text::shown;
use crate::token::Grant;
use crate::url::EndpointUrl;

/// The longest response that is read, in bytes.
const LONGEST: usize = 16 * 1024;

/// The parameters that count.
#[derive(Default)]
struct Response<'a> {
    code: Option<Cow<'a, str>>,
    state: Option<Cow<'a, str>>,
    iss: Option<Cow<'a, str>>,
    error: Option<Cow<'a, str>>,
    error_description: Option<Cow<'a, str>>,
    /// It has what a request has and no response.
    is_request: bool,
}

impl PendingAuthorization {
    /// Whether a response is to this sign-in: others may come to the same listener, and are to be
    /// turned away without ending the wait.
    #[must_use]
    pub fn is_answered_by(&self, response: &str) -> bool {
        matches!(Response::read(query(response)), Ok(read) if read.state.as_deref() == Some(self.state.expose()))
    }

    /// Whether what a person pasted is the response to this sign-in, a whole URL or its query alone: what
    /// [`accept`](Self::accept) refuses otherwise can be asked for again.
    ///
    /// # Errors
    /// [`CallbackFault`], also for the address of the sign-in page, and for one that the browser is not sent to.
    pub fn check(&self, response: &str) -> Result<(), CallbackFault> {
        let read = Response::read(query(response))?;
        if read.is_request {
            return Err(CallbackFault::Page);
        }
        self.check_place(response)?;
        match read {
            Response { state, .. } if state.as_deref() != Some(self.state.expose()) => {
                Err(CallbackFault::State)
            }
            Response { code: None, error: None, .. } => Err(CallbackFault::Empty),
            _ => Ok(()),
        }
    }

    /// What stands before the query is where the browser was to be sent, as far as it is there.
    fn check_place(&self, response: &str) -> Result<(), CallbackFault> {
        let redirect_uri = self.redirect_uri.as_str();
        let expected = redirect_uri.split('?').next().unwrap_or_default();
        let place = response.trim().split(['?', '#']).next().unwrap_or_default();
        let fits = match place {
            _ if !response.contains('?') || place == expected => true,
            "" => true,
            path if path.starts_with('/') => same(expected, |uri| uri.path() == path),
            address if address.contains("://") => is_same(expected, address),
            address => ["http", "https"]
                .iter()
                .any(|scheme| is_same(expected, &format!("{scheme}://{address}"))),
        };
        match fits {
            true => Ok(()),
            false => Err(CallbackFault::Elsewhere { expected: expected.to_owned() }),
        }
    }

    /// Checks the response, a whole URL or its query alone, and makes the grant of its code.
    ///
    /// # Errors
    /// [`CallbackFault`]. Where it was sent is checked first, then `state`, then `iss` (RFC 9207 §2.4); only
    /// then is an error response looked at.
    pub fn accept(self, response: &str) -> Result<Grant, CallbackFault> {
        self.check_place(response)?;
        let response = Response::read(query(response))?;
        if response.state.as_deref() != Some(self.state.expose()) {
            return Err(CallbackFault::State);
        }
        let expected = || self.issuer.to_string();
        match response.iss.as_deref() {
            Some(iss) if iss != self.issuer.as_str() => {
                return Err(CallbackFault::Issuer { expected: expected() });
            }
            None if self.promises_iss => {
                return Err(CallbackFault::IssuerMissing { expected: expected() });
            }
            _ => {}
        }
        if let Some(error) = response.error {
            let description = response.error_description.as_deref();
            let description = description.filter(|text| !text.is_empty()).map(shown);
            return Err(CallbackFault::Refused { code: shown(&error), description });
        }
        let code = response.code.filter(|code| !code.is_empty()).ok_or(CallbackFault::Empty)?;
        Ok(Grant::AuthorizationCode {
            code: Secret::new(code.into_owned()),
            verifier: self.verifier,
            redirect_uri: self.redirect_uri,
        })
    }
}

impl<'a> Response<'a> {
    fn read(query: &'a str) -> Result<Self, CallbackFault> {
        if query.len() > LONGEST || !query.contains('=') {
            return Err(CallbackFault::NotCallback);
        }
        let mut response = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let (slot, name) = match &*name {
                "code" => (&mut response.code, "code"),
                "state" => (&mut response.state, "state"),
                "iss" => (&mut response.iss, "iss"),
                "error" => (&mut response.error, "error"),
                "error_description" => (&mut response.error_description, "error_description"),
                "response_type" | "code_challenge" => {
                    response.is_request = true;
                    continue;
                }
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(CallbackFault::Duplicate { name });
            }
        }
        Ok(response)
    }
}

/// Whether two addresses without a query are one.
fn is_same(expected: &str, found: &str) -> bool {
    let Ok(found) = EndpointUrl::parse(found) else { return false };
    same(expected, |uri| uri.is_same_origin(&found) && uri.path() == found.path())
}

fn same(expected: &str, fits: impl FnOnce(&EndpointUrl) -> bool) -> bool {
    EndpointUrl::parse(expected).is_ok_and(|expected| fits(&expected))
}

/// The query of a URL, or a query alone.
fn query(response: &str) -> &str {
    let response = response.trim();
    let response = response.split('#').next().unwrap_or_default();
    response.split_once('?').map_or(response, |(_, query)| query)
}
