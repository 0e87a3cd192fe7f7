//! JSON documents of peers: bounded, one object, no member twice; each member read with its type.
//!
//! `null` is the same as a missing member. Errors name the document, where it was read, and the
//! member.

use std::fmt;

use http::header;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::{Document, DocumentFault, Expected, OAuthError, UrlFault};
use crate::http_client::IncomingResponse;
use crate::scope::Scopes;
use crate::url::EndpointUrl;

/// The most entries of a list.
const MOST: usize = 1024;
/// Ten years, in seconds: nothing lives longer.
const LONGEST_LIFE: f64 = 315_360_000.0;

/// An object, and what it is. Not `Debug`: it may hold tokens.
pub(crate) struct Json {
    pub(crate) document: Document,
    /// Fit to show.
    pub(crate) url: String,
    members: Map<String, Value>,
}

impl Json {
    pub(crate) fn read(
        document: Document,
        url: &EndpointUrl,
        response: &IncomingResponse,
    ) -> Result<Self, OAuthError> {
        let body = response.body().expose();
        let parsed = match is_form(response) {
            true => Ok(form(body)),
            false => parse(body),
        };
        let fault = |fault| OAuthError::document(document, url, fault);
        let members = parsed.map_err(|found| match is_html(response, body) {
            true => fault(DocumentFault::Html),
            false => fault(found),
        })?;
        Ok(Self { document, url: url.to_string(), members })
    }

    pub(crate) fn fault(&self, fault: DocumentFault) -> OAuthError {
        OAuthError::document(self.document, &self.url, fault)
    }

    pub(crate) fn value_fault(&self, name: &'static str, reason: impl ToString) -> OAuthError {
        self.fault(DocumentFault::Value { name, reason: reason.to_string() })
    }

    pub(crate) fn address_fault(
        &self,
        name: &'static str,
        url: &str,
        fault: UrlFault,
    ) -> OAuthError {
        self.fault(DocumentFault::Address { name, url: crate::text::shown_url(url), fault })
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<&str>, OAuthError> {
        match self.member(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.type_fault(name, Expected::Text, other)),
        }
    }

    pub(crate) fn required_text(&self, name: &'static str) -> Result<&str, OAuthError> {
        match self.text(name)? {
            Some("") => Err(self.value_fault(name, "is empty")),
            Some(text) => Ok(text),
            None => Err(self.fault(DocumentFault::Missing { name })),
        }
    }

    pub(crate) fn texts(&self, name: &'static str) -> Result<Option<Vec<String>>, OAuthError> {
        let Some(value) = self.member(name) else { return Ok(None) };
        let wrong = || self.type_fault(name, Expected::Texts, value);
        let list = value.as_array().ok_or_else(wrong)?;
        if list.len() > MOST {
            return Err(self.value_fault(name, format!("has over {MOST} entries")));
        }
        let texts = list.iter().map(|entry| {
            let found = type_name(entry);
            let text = entry.as_str().map(str::to_owned);
            text.ok_or_else(|| self.fault(DocumentFault::Entry { name, found }))
        });
        texts.collect::<Result<_, _>>().map(Some)
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, OAuthError> {
        match self.member(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.type_fault(name, Expected::Boolean, other)),
        }
    }

    pub(crate) fn url(&self, name: &'static str) -> Result<Option<EndpointUrl>, OAuthError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let url =
            EndpointUrl::parse(text).map_err(|fault| self.address_fault(name, text, fault))?;
        Ok(Some(url))
    }

    /// Seconds as a whole number, a number with a fraction, or a string of either; negative is 0,
    /// and ten years the most.
    pub(crate) fn seconds(&self, name: &'static str) -> Result<Option<u64>, OAuthError> {
        let Some(value) = self.member(name) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let number = number.filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| self.type_fault(name, Expected::Seconds, value))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        Ok(Some(number.clamp(0.0, LONGEST_LIFE) as u64))
    }

    /// A list in one string, or an array of strings, which some servers send.
    pub(crate) fn scopes(&self, name: &'static str) -> Result<Option<Scopes>, OAuthError> {
        let scopes = match self.member(name) {
            None => return Ok(None),
            Some(Value::Array(_)) => Scopes::from_tokens(self.texts(name)?.unwrap_or_default()),
            Some(_) => Scopes::parse(self.text(name)?.unwrap_or_default()),
        };
        let scopes = scopes.map_err(|fault| OAuthError::Scopes {
            what: format!("`{name}` in the {}", self.document),
            fault,
        })?;
        Ok(Some(scopes))
    }

    /// A member of whatever type.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.member(name)
    }

    fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    fn type_fault(&self, name: &'static str, expected: Expected, found: &Value) -> OAuthError {
        self.fault(DocumentFault::Type { name, expected, found: type_name(found) })
    }
}

/// One JSON object without duplicate members.
pub(crate) fn parse(bytes: &[u8]) -> Result<Map<String, Value>, DocumentFault> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read = reader.deserialize_any(Object).and_then(|object| reader.end().map(|()| object));
    match read {
        Ok(Ok(members)) => Ok(members),
        Ok(Err(fault)) => Err(fault),
        Err(_) => match serde_json::from_slice::<Value>(bytes) {
            Ok(_) => Err(DocumentFault::NotObject),
            Err(_) => Err(DocumentFault::NotJson),
        },
    }
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Result<Map<String, Value>, DocumentFault>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        let mut duplicate = None;
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.insert(name.clone(), value).is_some() {
                duplicate.get_or_insert(name);
            }
        }
        Ok(match duplicate {
            Some(name) => Err(DocumentFault::Duplicate { name: crate::text::shown(&name) }),
            None => Ok(members),
        })
    }
}

/// The members of a form, the last of a name.
fn form(body: &[u8]) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(body).take(MOST);
    pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into_owned()))).collect()
}

fn media_type(response: &IncomingResponse) -> String {
    let value = response.headers().get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_form(response: &IncomingResponse) -> bool {
    media_type(response) == "application/x-www-form-urlencoded"
}

fn is_html(response: &IncomingResponse, body: &[u8]) -> bool {
    matches!(media_type(response).as_str(), "text/html" | "application/xhtml+xml")
        || body.trim_ascii_start().first() == Some(&b'<')
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
