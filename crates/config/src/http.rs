//! What makes a text a URL or a header, as far as a configuration can tell.

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

#[cfg(test)]
mod tests {
    use super::*;

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
