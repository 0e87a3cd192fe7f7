//! Everything that is read from a client, on anything.

use std::path::Path;

use plenipo_policy::Host;
use plenipo_testkit::Fuzz;

use crate::body::BodyEnd;
use crate::head::{self, Body, Request};
use crate::requests::{Requests, kind};
use crate::server_name::{Greeting, greeting};
use crate::socks;

const WORDS: [&str; 28] = [
    "CONNECT ",
    "GET ",
    "http://",
    "example.org",
    ":443",
    "[::1]",
    "0x7f.1",
    "xn--",
    " HTTP/1.1\r\n",
    "\r\n",
    "\r\n\r\n",
    "Host: ",
    "Connection: ",
    "close",
    "Content-Length: ",
    "Transfer-Encoding: chunked",
    "0\r\n\r\n",
    "ffffffffffffffff",
    "\u{5}\u{1}\u{0}",
    "\u{3}",
    "\u{4}",
    "\u{16}\u{3}\u{1}",
    "@",
    "%00",
    "\0",
    "#",
    "/",
    "*.",
];

fn corpus(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(name)
}

/// A name that could be written two ways, or split a line, never gets past the parser.
fn assert_canonical(host: &Host) {
    assert_eq!(Host::parse(&host.to_string()).as_ref(), Ok(host));
}

/// A head that is sent on is one request to one host, and says so in a way that reads back the same.
#[test]
fn fuzz_head() {
    Fuzz::of(&corpus("head"), &WORDS).run(|input| match head::parse(input) {
        Ok(None) => "incomplete".to_owned(),
        Err(malformed) => malformed.reason.to_owned(),
        Ok(Some((Request::Tunnel(target), length))) => {
            assert!(length <= input.len() && target.port > 0);
            assert_canonical(&target.host);
            "tunnel".to_owned()
        }
        Ok(Some((Request::Forward { target, head, body }, length))) => {
            assert!(length <= input.len() && target.port > 0);
            assert_canonical(&target.host);
            let mut headers = [httparse::EMPTY_HEADER; 160];
            let mut sent = httparse::Request::new(&mut headers);
            let whole = sent.parse(&head).expect("a request that servers understand");
            assert_eq!(whole, httparse::Status::Complete(head.len()));
            assert!(sent.path.unwrap_or_default().starts_with('/'));
            let count = |name: &str| {
                sent.headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name)).count()
            };
            assert_eq!((count("host"), count("connection")), (1, 1));
            let (lengths, codings) = (count("content-length"), count("transfer-encoding"));
            match body {
                Body::Chunked => assert_eq!((lengths, codings), (0, 1)),
                Body::Length(_) => assert!(lengths <= 1 && codings == 0),
            }
            format!("forward {body:?}").chars().take(14).collect()
        }
    });
}

/// However a body arrives, it ends at the same byte.
#[test]
fn fuzz_body() {
    Fuzz::of(&corpus("body"), &WORDS).run(|input| {
        let mut whole = BodyEnd::of(Body::Chunked);
        let at_once = whole.take(input);
        let mut by_byte = BodyEnd::of(Body::Chunked);
        let mut taken = 0;
        let piecewise = loop {
            let Some(byte) = input.get(taken..=taken) else { break Ok(taken) };
            match by_byte.take(byte) {
                Ok(0) => break Ok(taken),
                Ok(count) => taken += count,
                Err(error) => break Err(error),
            }
        };
        assert_eq!(at_once, piecewise);
        (at_once.is_ok(), whole.is_done(), taken.min(20))
    });
}

#[test]
fn fuzz_socks() {
    Fuzz::of(&corpus("socks"), &WORDS).run(|input| {
        let greeted = socks::greeting(input);
        let rest = greeted.and_then(|(_, length)| input.get(length..)).unwrap_or_default();
        let requested = socks::request(rest);
        if let Some(Ok((target, length))) = &requested {
            assert!(*length <= rest.len() && target.port > 0);
            assert_canonical(&target.host);
        }
        let shape =
            requested.map(|requested| requested.map(|(target, _)| target.host.is_localhost()));
        format!("{:?} {shape:?}", greeted.map(|(fits, _)| fits))
    });
}

/// What is known of the name does not change when more arrives.
#[test]
fn fuzz_server_name() {
    Fuzz::of(&corpus("server_name"), &WORDS).run(|input| {
        let whole = greeting(input);
        if let Some(less) = input.get(..input.len().saturating_sub(1)) {
            let before = greeting(less);
            let settled =
                matches!(before, Greeting::Named(_) | Greeting::Nameless | Greeting::NotTls);
            assert!(!settled || before == whole, "{before:?} became {whole:?}");
        }
        match whole {
            Greeting::Named(host) => {
                assert_canonical(&host);
                "named".to_owned()
            }
            other => format!("{other:?}"),
        }
    });
}

/// However the requests of a tunnel arrive, the same of them goes on, and none of them names another host.
#[test]
fn fuzz_requests() {
    const OWN: &str = "a.org";
    Fuzz::of(&corpus("requests"), &WORDS).run(|input| {
        let host = Host::parse(OWN).unwrap();
        let at_once = Requests::to(host.clone()).take(input);
        let mut by_byte = Requests::to(host);
        let piecewise: Result<Vec<Vec<u8>>, _> =
            input.iter().map(|byte| by_byte.take(&[*byte])).collect();
        assert_eq!(at_once.is_err(), piecewise.is_err());
        let (Ok(at_once), Ok(piecewise)) = (at_once, piecewise) else { return (kind(input), 0) };
        assert_eq!(at_once, piecewise.concat());
        assert!(input.starts_with(&at_once));
        let mut headers = [httparse::EMPTY_HEADER; 160];
        let mut first = httparse::Request::new(&mut headers);
        if first.parse(&at_once).is_ok_and(|status| status.is_complete()) {
            let hosts = first.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("host"));
            for host in hosts {
                let value = std::str::from_utf8(host.value).unwrap().to_ascii_lowercase();
                assert!(value.trim().starts_with(OWN), "{value}");
            }
        }
        (kind(input), at_once.len().min(8))
    });
}
