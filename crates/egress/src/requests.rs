//! HTTP/1 in the clear inside a tunnel: every request's `Host` has to be the name that the tunnel is for. RFC 9112
//! (section 3), RFC 9110 (sections 7.2, 7.8).
//!
//! Many names share an address, and a server in the clear serves whichever it is asked for.

use plenipo_policy::Host;

use crate::body::BodyEnd;
use crate::head::{MAX_HEAD_BYTES, authority, body, headers_of};

/// What the first bytes of a client that does not speak TLS look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// More bytes are needed.
    Undecided,
    Http,
    /// A protocol that names no host in the clear.
    Other,
}

/// Looks at the first line.
pub(crate) fn kind(bytes: &[u8]) -> Kind {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')); // servers skip these
    let line = start.and_then(|start| bytes.get(start..)).unwrap_or_default();
    let end = line.iter().position(|byte| *byte == b'\n');
    let first = end.and_then(|end| line.get(..end)).unwrap_or(line);
    let is_text = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\r');
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if first.first().is_some_and(|byte| !is_name(byte)) || !first.iter().all(is_text) {
        return Kind::Other;
    }
    let versioned = first.windows(5).any(|part| part.eq_ignore_ascii_case(b"HTTP/"));
    if versioned || first.starts_with(b"GET ") {
        return Kind::Http;
    }
    if end.is_none() && bytes.len() < MAX_HEAD_BYTES { Kind::Undecided } else { Kind::Other }
}

/// A request for another name, or one that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OtherName;

/// Follows the requests of one connection.
#[derive(Debug)]
pub(crate) struct Requests {
    host: Host,
    state: State,
    /// What has arrived and may not be passed on yet.
    held: Vec<u8>,
    /// Whether a request was passed on already.
    begun: bool,
}

#[derive(Debug)]
enum State {
    Head,
    Body(BodyEnd),
    /// The first request asked for another protocol; these are the first bytes of the answer.
    Switching(Vec<u8>),
    /// The server has agreed.
    Switched,
}

impl Requests {
    pub(crate) fn to(host: Host) -> Self {
        Self { host, state: State::Head, held: Vec::new(), begun: false }
    }

    /// Takes bytes of the client's and returns those that may go on.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<u8>, OtherName> {
        self.held.extend_from_slice(bytes);
        let mut passed = Vec::new();
        loop {
            let count = match &mut self.state {
                State::Switched => self.held.len(),
                State::Switching(_) if self.held.len() > MAX_HEAD_BYTES => return Err(OtherName),
                State::Switching(_) => 0,
                State::Body(end) => end.take(&self.held).map_err(|_| OtherName)?,
                State::Head => self.head()?,
            };
            passed.extend(self.held.drain(..count.min(self.held.len())));
            match &self.state {
                State::Body(end) if end.is_done() => self.state = State::Head,
                State::Body(_) | State::Head if count > 0 => {}
                _ => return Ok(passed),
            }
        }
    }

    /// Takes bytes of the server's and returns those of the client's that may go on because of them.
    pub(crate) fn answered(&mut self, bytes: &[u8]) -> Result<Vec<u8>, OtherName> {
        const AGREED: [&[u8]; 2] = [b"HTTP/1.1 101", b"HTTP/1.0 101"];
        let State::Switching(answer) = &mut self.state else { return Ok(Vec::new()) };
        answer.extend(bytes.iter().take(AGREED[0].len().saturating_sub(answer.len())));
        if AGREED.contains(&answer.as_slice()) {
            self.state = State::Switched;
        } else if AGREED.iter().all(|agreed| !agreed.starts_with(answer)) {
            self.state = State::Head;
        }
        self.take(&[])
    }

    /// The length of a complete head that asks for the right name; 0 while it is not complete.
    fn head(&mut self) -> Result<usize, OtherName> {
        let mut headers = headers_of();
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(&self.held) {
            Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
            Ok(httparse::Status::Partial) if self.held.len() < MAX_HEAD_BYTES => return Ok(0),
            _ => return Err(OtherName),
        };
        let (Some(method), Some(target)) = (request.method, request.path) else {
            return Err(OtherName);
        };
        let in_target = target.split_once("://").map(|(_, rest)| {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            rest.get(..end).unwrap_or(rest)
        });
        let named = |name: &str| {
            let header = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
            request.headers.iter().filter(header).map(|header| header.value).collect::<Vec<_>>()
        };
        let in_header = match named("host").as_slice() {
            [] => None,
            [host] => Some(std::str::from_utf8(host).map_err(|_| OtherName)?),
            _ => return Err(OtherName), // which one counts is the server's choice
        };
        let is_own = |text: &str| {
            text.is_ascii() && authority(text.trim()).is_ok_and(|(host, _)| host == self.host)
        };
        if method == "CONNECT" || !in_target.into_iter().chain(in_header).all(is_own) {
            return Err(OtherName);
        }
        let body = body(request.headers).map_err(|_| OtherName)?;
        let switches = !self.begun && !named("upgrade").is_empty();
        self.begun = true;
        self.state = if switches && BodyEnd::of(body).is_done() {
            State::Switching(Vec::new())
        } else {
            State::Body(BodyEnd::of(body))
        };
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_web() -> Requests {
        Requests::to(Host::parse("web.test").unwrap())
    }

    /// What goes on of `text`, at once and byte by byte.
    fn passed(text: &str) -> Result<String, OtherName> {
        let at_once =
            to_web().take(text.as_bytes()).map(|passed| String::from_utf8(passed).unwrap());
        let mut requests = to_web();
        let by_byte: Result<Vec<Vec<u8>>, _> =
            text.as_bytes().iter().map(|byte| requests.take(&[*byte])).collect();
        let by_byte = by_byte.map(|parts| String::from_utf8(parts.concat()).unwrap());
        assert_eq!(at_once.is_err(), by_byte.is_err(), "{text:?}");
        assert!(at_once.is_err() || at_once == by_byte, "{text:?}");
        at_once
    }

    #[test]
    fn a_first_line_of_http_is_told_from_other_protocols() {
        for (bytes, expected) in [
            (&b""[..], Kind::Undecided),
            (b"GE", Kind::Undecided),
            (b"GET /", Kind::Http),
            (b"POST / HTTP/1.1\r\n", Kind::Http),
            (b"\r\n\nX-Y /a http/1.1", Kind::Http),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Kind::Http),
            (b"POST /", Kind::Undecided),
            (b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", Kind::Other),
            (b"EHLO web.test\r\n", Kind::Other),
            (b"<stream:stream>", Kind::Other),
            (b"\x00\x00\x00\x08", Kind::Other),
            (b"AMQP\x00", Kind::Other),
        ] {
            assert_eq!(kind(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(kind(&vec![b'a'; MAX_HEAD_BYTES]), Kind::Other);
    }

    #[test]
    fn every_request_of_a_connection_has_to_name_the_tunnels_host() {
        let fine = "GET /a HTTP/1.1\r\nHost: Web.TEST:8080\r\n\r\n\
                    POST http://web.test/b HTTP/1.1\r\nhost: web.test\r\nContent-Length: 3\r\n\r\nabc\
                    PUT /c HTTP/1.1\r\nHost: web.test.\r\nTransfer-Encoding: chunked\r\n\r\n\
                    1\r\nx\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n";
        assert_eq!(passed(fine).as_deref(), Ok(fine));
        for evil in [
            "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: web.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.test\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n Host: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: web.test,evil.test\r\n\r\n",
            "CONNECT web.test:80 HTTP/1.1\r\nHost: web.test\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "GET /\r\nHost: evil.test\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: web.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(passed(evil), Err(OtherName), "{evil:?}");
            assert_eq!(passed(&format!("{fine}{evil}")), Err(OtherName), "{evil:?}");
        }
    }

    #[test]
    fn another_protocol_begins_when_the_server_agrees_and_not_before() {
        let ask = b"GET / HTTP/1.1\r\nHost: web.test\r\nUpgrade: websocket\r\n\r\n";
        let evil = b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
        let asked = || {
            let mut requests = to_web();
            assert_eq!(requests.take(&[&ask[..], evil].concat()).as_deref(), Ok(&ask[..]));
            requests
        };
        let mut agreed = asked();
        assert_eq!(agreed.answered(b"HTTP/1.1 1").as_deref(), Ok(&b""[..]));
        assert_eq!(agreed.answered(b"01 Switching").as_deref(), Ok(&evil[..]));
        assert_eq!(agreed.take(b"\x81\x00").as_deref(), Ok(&b"\x81\x00"[..]));
        let mut declined = asked();
        assert_eq!(declined.answered(b"HTTP/1.1 200 OK\r\n"), Err(OtherName));
        // Only the first request of a connection: an answer before it could look like agreement.
        let mut later = to_web();
        let first = b"GET / HTTP/1.1\r\nHost: web.test\r\n\r\n";
        assert_eq!(later.take(&[&first[..], ask, evil].concat()), Err(OtherName));
    }
}
