//! What makes a text a URL or a header, as far as a configuration can tell.

use std::collections::BTreeMap;

use plenipo_redact::is_secret_header;

use crate::template::Template;

/// What may stand before a variable in a header with a credential, and is none.
const SCHEMES: [&str; 6] = ["", "Basic", "Bearer", "DPoP", "Key", "Token"];
/// What stands before a credential in whatever header.
const CREDENTIAL_SCHEMES: [&str; 3] = ["Basic", "Bearer", "DPoP"];
/// Headers that the transport sets itself.
const RESERVED: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// `http://` or `https://`, a host, no user information, printable ASCII without spaces.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| {
        let start = url.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| url.get(scheme.len()..)).flatten()
    });
    let rest = rest.ok_or_else(|| "should begin with `http://` or `https://`".to_owned())?;
    // Parsers disagree about what a backslash means.
    if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        let reason = "should be printable ASCII without spaces and backslashes: escape the rest";
        return Err(reason.to_owned());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("holds a user name or password: put credentials into a header".to_owned());
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Err("has no host".to_owned());
    }
    Ok(())
}

/// A token (RFC 9110 section 5.6.2) that is not the transport's own.
pub(crate) fn check_header_name(name: &str) -> Result<(), String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err("is not the name of a header".to_owned());
    }
    if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err("is a header that the transport sets itself".to_owned());
    }
    Ok(())
}

/// No control characters but tab, so that nothing can begin another header.
pub(crate) fn check_header_value(value: &str) -> Result<(), String> {
    match value.chars().any(|character| character.is_control() && character != '\t') {
        true => Err("has a control character, such as a line break".to_owned()),
        false => Ok(()),
    }
}

/// Whether a header that has `text` in it whatever its variables hold has a credential in it: its name says that it is
/// one, and the text is more than a scheme (`Bearer`) or the names of cookies (`sid=`); or the text says it (`Bearer x`).
pub(crate) fn has_credential(name: &str, text: &str) -> bool {
    let is_scheme =
        |word: &str| CREDENTIAL_SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word));
    if text.trim().split_once(char::is_whitespace).is_some_and(|(word, _)| is_scheme(word)) {
        return true;
    }
    if !is_secret_header(name) || is_placeholder(text) {
        return false;
    }
    match name.eq_ignore_ascii_case("cookie") {
        true => text.split(';').map(str::trim).any(|pair| {
            pair.split_once('=').map_or(!pair.is_empty(), |(_, value)| !value.is_empty())
        }),
        false => !SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(text.trim())),
    }
}

/// A variable that holds a credential as it is written, if one does.
pub(crate) fn credential_of(variables: &BTreeMap<String, Template>) -> Option<&Template> {
    let holds = |(name, value): &(&String, &Template)| {
        let text = value.own_text();
        is_secret_header(name) && !text.trim().is_empty() && !is_placeholder(&text)
    };
    variables.iter().find(holds).map(|(_, value)| value)
}

/// Whether a text is no more than what another program asks for when it starts the server: `${input:key}`.
fn is_placeholder(text: &str) -> bool {
    let name = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.contains(['$', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_or_the_name_of_a_cookie_is_no_credential() {
        for (name, text) in [
            ("Authorization", "Bearer "),
            ("authorization", ""),
            ("X-Api-Key", ""),
            ("Cookie", "sid=; theme="),
            ("X-Team", "payments"),
            ("X-Team", "Bearers of news"),
            ("X-Forwarded-Authorization", " Bearer "),
            ("X-Api-Key", "${input:key}"),
        ] {
            assert!(!has_credential(name, text), "{name}: {text}");
        }
        for (name, text) in [
            ("Authorization", "Bearer s3cr3t"),
            ("Proxy-Authorization", "s3cr3t"),
            ("X-API-Key", "s3cr3t"),
            ("X-Foo", "Bearer s3cr3t"),
            ("X-Foo", " basic s3cr3t"),
            ("X-Foo", "DPoP\ts3cr3t"),
            ("X-Auth-Token", "Bearer s3cr3t"),
            ("Cookie", "sid=s3cr3t"),
            ("cookie", "theme=; s3cr3t"),
            ("X-Api-Key", "${a}s3cr3t${b}"),
        ] {
            assert!(has_credential(name, text), "{name}: {text}");
        }
    }

    #[test]
    fn urls_have_a_scheme_and_a_host_and_no_user() {
        for url in ["http://a", "HTTPS://a.b:1/c?d#e", "http://[::1]:80/", "https://a/x@y"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in
            ["", "ftp://a", "http:/a", "http://", "http:///x", "http://:1/", "http://a b", "//a"]
        {
            assert!(check_url(url).is_err(), "{url}");
        }
        for url in ["http://u:p@a/", "http://u@a", "https://a\\@b/", "http://a/\u{e4}"] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
