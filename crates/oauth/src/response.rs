//! Responses of endpoints: a document, or an OAuth error in whatever status it comes.

use plenipo_redact::Secret;

use crate::error::{Document, DocumentFault, OAuthError};
use crate::http_client::IncomingResponse;
use crate::json::Json;
use crate::text::{scrubbed, shown};
use crate::url::EndpointUrl;

/// Reads a response. An `error` member is an error even with status 200, as some servers send it.
/// `secrets` went with the request and are masked in what is shown.
pub(crate) fn read(
    document: Document,
    url: &EndpointUrl,
    response: &IncomingResponse,
    secrets: &[Secret<String>],
) -> Result<Json, OAuthError> {
    let status = response.status();
    let failed = |fault| OAuthError::document(document, url, fault);
    let json = match Json::read(document, url, response) {
        Ok(json) => json,
        Err(error) if status.is_success() => return Err(error),
        Err(_) => return Err(failed(DocumentFault::Status { status: status.as_u16() })),
    };
    let clean = |text: &str| {
        let secrets = secrets.iter().map(|secret| secret.expose().as_str());
        shown(&scrubbed(text, secrets))
    };
    if let Ok(Some(code)) = json.text("error") {
        let description = json.text("error_description").unwrap_or_default();
        return Err(OAuthError::Refused {
            document,
            url: url.to_string(),
            code: clean(code),
            description: description.filter(|text| !text.is_empty()).map(clean),
        });
    }
    match status.is_success() {
        true => Ok(json),
        false => Err(failed(DocumentFault::Status { status: status.as_u16() })),
    }
}
