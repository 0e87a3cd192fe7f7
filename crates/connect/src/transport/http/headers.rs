//! Names and values of headers: which are ours to set, and how MCP's own are spelled.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};

use crate::error::HttpFault;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Set by HTTP or by this client; `mcp-…` and `proxy-…` besides.
const RESERVED: [&str; 15] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// A header a person may set.
pub(super) fn checked(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HttpFault> {
    let fault = |reason| HttpFault::Header { name: crate::text::shown(name), reason };
    let parsed = HeaderName::from_bytes(name.as_bytes());
    let parsed = parsed.map_err(|_| fault("does not have a header's name"))?;
    if check_name(&parsed).is_err() {
        return Err(fault("is not for you to set"));
    }
    let value = HeaderValue::from_str(value)
        .map_err(|_| fault("has a value with characters no header may have"))?;
    Ok((parsed, value))
}

/// That neither HTTP nor this client sets it.
pub(super) fn check_name(name: &HeaderName) -> Result<(), HttpFault> {
    let lower = name.as_str();
    if RESERVED.contains(&lower) || lower.starts_with("mcp-") || lower.starts_with("proxy-") {
        let (name, reason) = (crate::text::shown(lower), "is not for you to set");
        return Err(HttpFault::Header { name, reason });
    }
    Ok(())
}

/// The value of `Mcp-Name` and `Mcp-Param-…`: as it is when that survives in a header, else in Base64 between marks
/// (revision 2026-07-28, "Standard Request Headers"). What looks like the marks is encoded as well.
pub(crate) fn encoded(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && !looks_encoded(text);
    let value = match plain {
        true => HeaderValue::from_str(text),
        false => {
            let (open, close) = SENTINEL;
            HeaderValue::try_from(format!("{open}{}{close}", STANDARD.encode(text)))
        }
    };
    // Both are visible ASCII.
    value.unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn looks_encoded(text: &str) -> bool {
    let (open, close) = SENTINEL;
    text.get(..open.len()).is_some_and(|start| start.eq_ignore_ascii_case(open))
        && text.ends_with(close)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinel_encoding_table() {
        let table = [
            ("echo", "echo"),
            ("a b/c:d~", "a b/c:d~"),
            ("", ""),
            (" lead", "=?base64?IGxlYWQ=?="),
            ("trail ", "=?base64?dHJhaWwg?="),
            ("tab\there", "=?base64?dGFiCWhlcmU=?="),
            ("line\r\nX-Evil: 1", "=?base64?bGluZQ0KWC1FdmlsOiAx?="),
            ("n\u{e9}", "=?base64?bsOp?="),
            ("\u{8bfb}\u{53d6}", "=?base64?6K+75Y+W?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?base64?ZWNobw==?=", "=?base64?PT9iYXNlNjQ/WldOb2J3PT0/PQ==?="),
            ("=?BASE64?x?=", "=?base64?PT9CQVNFNjQ/eD89?="),
            ("=?base64?x", "=?base64?x"),
        ];
        for (text, header) in table {
            assert_eq!(encoded(text), header, "{text:?}");
        }
    }

    #[test]
    fn reserved_names_and_bad_values_are_refused_without_the_value() {
        for name in [
            "Host",
            "content-LENGTH",
            "Mcp-Session-Id",
            "mcp-anything",
            "Proxy-Authorization",
            "a b",
            "",
        ] {
            let error = checked(name, "s3cr3t").unwrap_err().to_string();
            assert!(!error.contains("s3cr3t"), "{error}");
        }
        let error = checked("X-A", "s3cr3t\r\nHost: evil").unwrap_err();
        assert_eq!(
            error.to_string(),
            "its header `X-A` has a value with characters no header may have"
        );
        assert!(checked("Authorization", "Basic eA==").is_ok());
    }
}
