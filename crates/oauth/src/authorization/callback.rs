//! Where the browser was sent back to: checked before anything of it is believed.

use std::borrow::Cow;

use plenipo_redact::Secret;

use super::PendingAuthorization;
use crate::error::CallbackFault;
use crate::text::shown;
use crate::token::Grant;

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
}

impl PendingAuthorization {
    /// Whether a response is to this sign-in: others may come to the same listener, and are to be
    /// turned away without ending the wait.
    #[must_use]
    pub fn is_answered_by(&self, response: &str) -> bool {
        matches!(Response::read(query(response)), Ok(read) if read.state.as_deref() == Some(self.state.expose()))
    }

    /// Checks the response, a whole URL or its query alone, and makes the grant of its code.
    ///
    /// # Errors
    /// [`CallbackFault`]. `state` is checked first, then `iss` (RFC 9207 §2.4); only then is an
    /// error response looked at.
    pub fn accept(self, response: &str) -> Result<Grant, CallbackFault> {
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
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(CallbackFault::Duplicate { name });
            }
        }
        Ok(response)
    }
}

/// The query of a URL, or a query alone.
fn query(response: &str) -> &str {
    let response = response.trim();
    let response = response.split('#').next().unwrap_or_default();
    response.split_once('?').map_or(response, |(_, query)| query)
}
