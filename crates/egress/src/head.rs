//! The head of an HTTP request to a proxy: RFC 9110, RFC 9112 (section 3.2: the forms of a request's target).

use plenipo_policy::Host;

/// Longest head, in bytes.
pub(crate) const MAX_HEAD_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 128;
const HTTP_PORT: u16 = 80;

/// Headers that concern the connection to this proxy (RFC 9110, section 7.6.1), and what is written anew.
const OF_THIS_HOP: [&str; 9] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
    "http2-settings",
];

/// Where a connection is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// `CONNECT host:port`.
    Tunnel(Target),
    /// `GET http://host/path`, as it is sent on.
    Forward { target: Target, head: Vec<u8>, body: Body },
}

/// How the end of a request's body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// After so many bytes.
    Length(u64),
    Chunked,
}

/// Why a head is not taken: a status and a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
}

/// Room for as many as a head may have.
pub(crate) fn headers_of<'a>() -> [httparse::Header<'a>; MAX_HEADERS] {
    [httparse::EMPTY_HEADER; MAX_HEADERS]
}

fn bad(reason: &'static str) -> Malformed {
    Malformed { status: "400 Bad Request", reason }
}

/// Parses what has arrived. `None`: the head is not complete. With it, how many bytes it took.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Malformed> {
    let mut headers = headers_of();
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < MAX_HEAD_BYTES => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let status = "431 Request Header Fields Too Large";
            return Err(Malformed { status, reason: "the head of the request is too large" });
        }
        Err(_) => return Err(bad("not an HTTP/1 request")),
    };
    let (Some(method), Some(target), Some(version)) =
        (request.method, request.path, request.version)
    else {
        return Err(bad("not an HTTP/1 request"));
    };
    if method == "CONNECT" {
        let (host, port) = authority(target)?;
        let port = port.ok_or_else(|| bad("CONNECT needs a host and a port"))?;
        return Ok(Some((Request::Tunnel(Target { host, port }), length)));
    }
    let (target, path) = absolute(target)?;
    let body = body(request.headers)?;
    let head = rewrite((method, path, version), &target, request.headers);
    Ok(Some((Request::Forward { target, head, body }, length)))
}

/// `http://host:port/path?query`: the target, and what a server is asked for.
fn absolute(url: &str) -> Result<(Target, &str), Malformed> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(bad("this is a proxy: a whole URL is needed (http://host/path), or CONNECT"));
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(bad("only http:// URLs are requested of a proxy; others take CONNECT"));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, path) = rest.split_at_checked(end).ok_or_else(|| bad("not a URL"))?;
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) || path.contains('#') {
        return Err(bad("a character that is in no URL"));
    }
    let (host, port) = authority(place)?;
    Ok((Target { host, port: port.unwrap_or(HTTP_PORT) }, path))
}

/// `host`, `host:port`, `[v6]:port`; no user, no password.
pub(crate) fn authority(text: &str) -> Result<(Host, Option<u16>), Malformed> {
    let after_brackets = text.rfind(']').map_or(0, |bracket| bracket + 1);
    let colon = text.get(after_brackets..).and_then(|rest| rest.find(':'));
    let (host, port) = match colon.and_then(|colon| text.split_at_checked(after_brackets + colon)) {
        Some((host, port)) => (host, port.get(1..)),
        None => (text, None),
    };
    let port = match port {
        None | Some("") => None,
        Some(digits) => Some(self::port(digits).ok_or_else(|| bad("not a port"))?),
    };
    Host::parse(host).map(|host| (host, port)).map_err(|_| bad("not a host"))
}

fn port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| plain && *port > 0)
}

pub(crate) fn body(headers: &[httparse::Header<'_>]) -> Result<Body, Malformed> {
    let all = |name: &str| -> Vec<&[u8]> {
        let named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value).collect()
    };
    match (all("transfer-encoding").as_slice(), all("content-length").as_slice()) {
        ([], []) => Ok(Body::Length(0)),
        ([], [length]) => {
            let digits = std::str::from_utf8(length).unwrap_or_default();
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let length = digits.parse().ok().filter(|_| plain);
            length.map(Body::Length).ok_or_else(|| bad("not a content length"))
        }
        ([coding], []) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked),
        ([_], []) => Err(Malformed {
            status: "501 Not Implemented",
            reason: "no transfer coding but chunked is taken",
        }),
        _ => Err(bad("where the body ends is said twice")),
    }
}

/// The head that the server gets. Its last line makes it close after the answer, so there is one request a connection:
/// none can be smuggled in behind it to another host.
fn rewrite(
    (method, path, version): (&str, &str, u8),
    target: &Target,
    headers: &[httparse::Header<'_>],
) -> Vec<u8> {
    let named: Vec<String> = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("connection"))
        .flat_map(|header| {
            let value = String::from_utf8_lossy(header.value).to_ascii_lowercase();
            value.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>()
        })
        .filter(|name| !["content-length", "transfer-encoding"].contains(&name.as_str()))
        .collect();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let port = match target.port {
        HTTP_PORT => String::new(),
        port => format!(":{port}"),
    };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {}{port}\r\n", target.host)
            .into_bytes();
    for header in headers {
        let name = header.name.to_ascii_lowercase();
        if OF_THIS_HOP.contains(&name.as_str()) || named.contains(&name) {
            continue;
        }
        head.extend_from_slice(header.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(header.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Request {
        let (request, length) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(length, text.len());
        request
    }

    fn refused(text: &str) -> &'static str {
        parse(text.as_bytes()).unwrap_err().reason
    }

    fn forwarded(text: &str) -> (Target, String, Body) {
        match taken(text) {
            Request::Forward { target, head, body } => {
                (target, String::from_utf8(head).unwrap(), body)
            }
            Request::Tunnel(target) => panic!("a tunnel to {target:?}"),
        }
    }

    fn target(host: &str, port: u16) -> Target {
        Target { host: Host::parse(host).unwrap(), port }
    }

    #[test]
    fn connect_names_a_host_and_a_port() {
        for (line, expected) in [
            ("example.org:443", target("example.org", 443)),
            ("EXAMPLE.org.:443", target("example.org", 443)),
            ("[::1]:22", target("::1", 22)),
            ("0x7f.1:80", target("127.0.0.1", 80)),
        ] {
            let text = format!("CONNECT {line} HTTP/1.1\r\nHost: other.example\r\n\r\n");
            assert_eq!(taken(&text), Request::Tunnel(expected), "{line}");
        }
        for line in [
            "example.org",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            "example.org:+1",
            "example.org:443:1",
            "user@example.org:443",
            "http://example.org:443",
            ":443",
            "*:443",
            "[::1]",
            "::1",
            "[::1]x:443",
            "a%00b:443",
            "a\tb:443",
            "/",
            "ok.com:80@evil.com:443",
        ] {
            let text = format!("CONNECT {line} HTTP/1.1\r\n\r\n");
            assert!(parse(text.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn a_whole_url_becomes_a_request_to_its_server() {
        let text = "POST http://Example.org:8080/a?b=c HTTP/1.1\r\nHost: evil.example\r\nAccept: */*\r\n\
                    Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nX-Drop: 1\r\n\
                    Connection: keep-alive, X-Drop, Content-Length\r\nContent-Length: 3\r\n\r\n";
        let (to, head, body) = forwarded(text);
        assert_eq!((to, body), (target("example.org", 8080), Body::Length(3)));
        assert_eq!(
            head,
            "POST /a?b=c HTTP/1.1\r\nHost: example.org:8080\r\nAccept: */*\r\nContent-Length: 3\r\n\
             Connection: close\r\n\r\n"
        );
        for (url, path, host) in [
            ("http://a.org", "/", "a.org"),
            ("HTTP://a.org?x", "/?x", "a.org"),
            ("http://a.org:80/", "/", "a.org"),
            ("http://[::1]:8/x", "/x", "[::1]:8"),
        ] {
            let (_, head, _) = forwarded(&format!("GET {url} HTTP/1.0\r\n\r\n"));
            assert_eq!(
                head,
                format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            );
        }
    }

    #[test]
    fn what_is_no_request_to_a_proxy_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://user@a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org\\@b.org/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://a.org/#x HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "\x16\x03\x01\x02\x00\x01",
            "GET http://a.org/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nA : b\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nA: \0\r\n\r\n",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_end_of_a_body_is_said_once() {
        let of = |headers: &str| {
            parse(format!("POST http://a.org/ HTTP/1.1\r\n{headers}\r\n").as_bytes())
        };
        let body = |headers: &str| match of(headers).unwrap().unwrap().0 {
            Request::Forward { body, .. } => body,
            Request::Tunnel(_) => unreachable!(),
        };
        assert_eq!(body(""), Body::Length(0));
        assert_eq!(body("content-length: 18446744073709551615\r\n"), Body::Length(u64::MAX));
        assert_eq!(body("Transfer-Encoding: Chunked\r\n"), Body::Chunked);
        for headers in [
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: 1, 1\r\n",
            "Content-Length: \r\n",
            "Content-Length: 18446744073709551616\r\n",
        ] {
            assert!(of(headers).is_err(), "{headers:?}");
        }
    }

    #[test]
    fn a_head_is_taken_when_it_is_complete_and_refused_when_it_is_too_large() {
        let text = "CONNECT a.org:443 HTTP/1.1\r\nA: b\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..end]), Ok(None), "{end}");
        }
        let with_rest = format!("{text}\x16\x03");
        assert_eq!(parse(with_rest.as_bytes()).unwrap().unwrap().1, text.len());
        let long = format!("GET http://a.org/{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(refused(&long), "the head of the request is too large");
        let many = format!("GET http://a.org/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(200));
        assert_eq!(refused(&many), "the head of the request is too large");
    }
}
