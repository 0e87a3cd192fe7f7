//! URLs without the parts that may carry a credential.

use crate::REDACTED;

/// `url` for display: user information, query and fragment are masked; scheme, host, port and path
/// are kept. Works on text, valid URL or not: of two readings the one that masks more is taken.
pub fn redacted_url(url: &str) -> String {
    let (scheme, rest) = split_scheme(url);
    let (user_information, rest) = split_user_information(rest);
    let (rest, fragment) = split(rest, '#');
    let (rest, query) = split(rest, '?');

    let mut shown = scheme.to_owned();
    if user_information {
        shown.push_str(REDACTED);
        shown.push('@');
    }
    shown.push_str(rest);
    for (mark, part) in [('?', query), ('#', fragment)] {
        if let Some(part) = part {
            shown.push(mark);
            shown.push_str(if part.is_empty() { "" } else { REDACTED });
        }
    }
    shown
}

/// The scheme with its colon and slashes (both kinds and any number, as browsers read them), and
/// the rest. What only resembles a scheme counts: `$SCHEME://…`.
fn split_scheme(url: &str) -> (&str, &str) {
    let is_slash = ['/', '\\'];
    let rest = match url.split_once(':') {
        Some((scheme, rest))
            if !scheme.contains(['/', '\\', '@']) && rest.starts_with(is_slash) =>
        {
            rest
        }
        _ => url,
    };
    let rest = rest.trim_start_matches(is_slash);
    (url.strip_suffix(rest).unwrap_or_default(), rest)
}

/// Whether there is user information, and what comes after it.
fn split_user_information(rest: &str) -> (bool, &str) {
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (authority, _) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    // A password may hold an unescaped `/`, `?` or `#`: then what looks like a port is none.
    let is_host = authority.starts_with('[')
        || port.is_none_or(|port| port.chars().all(|digit| digit.is_ascii_digit()));
    let region = if authority.contains('@') || is_host { authority } else { rest };
    match region.rsplit_once('@') {
        Some((masked, _)) => {
            let after = rest.strip_prefix(masked).and_then(|after| after.strip_prefix('@'));
            (true, after.unwrap_or_default())
        }
        None => (false, rest),
    }
}

/// The text before `mark` and, if it occurs, the text after.
fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_query_and_fragment_are_masked() {
        let table = [
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("https://example.com:8443/a/b", "https://example.com:8443/a/b"),
            ("https://ada@example.com", "https://[redacted]@example.com"),
            ("https://ada:p%40w@example.com/x", "https://[redacted]@example.com/x"),
            ("https://a@b@example.com/x", "https://[redacted]@example.com/x"),
            ("postgres://u:p@db:5432/x?sslmode=on", "postgres://[redacted]@db:5432/x?[redacted]"),
            ("https://example.com/?token=1", "https://example.com/?[redacted]"),
            ("https://example.com/#access_token=1", "https://example.com/#[redacted]"),
            ("https://example.com/x#a?b", "https://example.com/x#[redacted]"),
            ("https://example.com/?", "https://example.com/?"),
            ("https://example.com/@scope/pkg", "https://example.com/@scope/pkg"),
            ("http:\\\\u:p@h\\x", "http:\\\\[redacted]@h\\x"),
            ("https:/u:p@h/x", "https:/[redacted]@h/x"),
            ("u:p@h/x", "[redacted]@h/x"),
            ("mailto:ada@example.com", "[redacted]@example.com"),
            ("https://u:p?q@h/", "https://[redacted]@h/"),
            ("postgres://u:p/w#@db:5432/x", "postgres://[redacted]@db:5432/x"),
            ("https://example.com:80/@scope?a@b", "https://example.com:80/@scope?[redacted]"),
            ("http://[::1]:80/@x", "http://[::1]:80/@x"),
            ("//u:p@h/x", "//[redacted]@h/x"),
            ("", ""),
            ("é://ü@ß/ö?ä", "é://[redacted]@ß/ö?[redacted]"),
        ];
        for (url, shown) in table {
            assert_eq!(redacted_url(url), shown, "{url}");
        }
    }
}
