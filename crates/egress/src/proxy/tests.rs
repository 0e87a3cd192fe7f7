use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown as Side, SocketAddr};
use std::time::Instant;

use plenipo_policy::{HostAccess, HostPattern};

use super::*;
use crate::server_name::tests::hello_for;

/// Answers in turn; the last one stays. Every question is written down.
#[derive(Debug, Default, Clone)]
struct Names(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    answers: BTreeMap<String, VecDeque<Vec<IpAddr>>>,
    asked: Vec<String>,
}

impl Names {
    fn with(self, name: &str, answers: &[&[&str]]) -> Self {
        let answers = answers
            .iter()
            .map(|answer| answer.iter().map(|text| text.parse().unwrap()).collect())
            .collect();
        self.0.lock().unwrap().answers.insert(name.to_owned(), answers);
        self
    }

    fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().asked.clone()
    }
}

impl Resolve for Names {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut state = self.0.lock().unwrap();
        state.asked.push(name.to_owned());
        let answers = state.answers.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        let first = answers.front().cloned().unwrap_or_default();
        if answers.len() > 1 {
            answers.pop_front();
        }
        Ok(first)
    }
}

/// A proxy that is being served on loopback.
struct Served {
    proxy: Proxy,
    address: SocketAddr,
}

fn served(patterns: &[(&str, HostAccess)], names: &Names, limits: Limits) -> Served {
    let hosts = patterns
        .iter()
        .map(|(text, access)| (text.parse::<HostPattern>().unwrap(), *access))
        .collect();
    let proxy = Proxy::with_limits(hosts, names.clone(), limits);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    proxy.serve(listener).unwrap();
    Served { proxy, address }
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Everything that comes back for `request`, the sending side left open.
    fn ask(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap_or_default();
        answer
    }

    fn status(&self, request: &str) -> String {
        let answer = String::from_utf8_lossy(&self.ask(request.as_bytes())).into_owned();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    fn refusals(&self) -> Vec<(String, u16, &'static str, u64)> {
        let summary = self.proxy.shared.tally.summary();
        let all = summary.refused.into_iter();
        all.map(|refused| (refused.host, refused.port, refused.reason, refused.count)).collect()
    }
}

/// A server that gives every connection to `serve`.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// One that sends back what it gets, and closes when the client does.
fn echo() -> u16 {
    server(|mut stream| {
        let mut bytes = [0; 4096];
        while let Ok(read) = stream.read(&mut bytes) {
            if read == 0 || stream.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
    })
}

/// One that answers with what it was asked, head and body.
fn mirror() -> u16 {
    server(|mut stream| {
        let mut asked = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(read) = stream.read(&mut bytes) {
            asked.extend_from_slice(&bytes[..read]);
            let head_only = asked.starts_with(b"GET") && asked.ends_with(b"\r\n\r\n");
            if read == 0 || head_only || asked.ends_with(b"END") {
                break;
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").unwrap();
        stream.write_all(&asked).unwrap();
    })
}

fn socks(name: &str, port: u16) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    [&[5, 1, 0, 5, 1, 0, 3, length][..], name.as_bytes(), &port.to_be_bytes()].concat()
}

/// What the end of a stream looks like to `stream`, after `skip` bytes.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    rest
}

fn allow(pattern: &str) -> (&str, HostAccess) {
    (pattern, HostAccess::Allow)
}

#[test]
fn a_listed_host_is_reached_by_connect_absolute_form_and_socks5() {
    let port = mirror();
    let (name, address) = (format!("web.test:{port}"), format!("127.0.0.1:{port}"));
    let names = Names::default().with("web.test", &[&["127.0.0.1"]]);
    let served = served(&[allow(&name), allow(&address)], &names, Limits::default());
    for host in [name.as_str(), address.as_str()] {
        let forwarded = served.ask(
            format!("POST http://{host}/x HTTP/1.1\r\nContent-Length: 3\r\n\r\nENDGET /evil")
                .as_bytes(),
        );
        let forwarded = String::from_utf8(forwarded).unwrap();
        assert!(
            forwarded.ends_with(&format!(
                "POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\nConnection: close\r\n\r\nEND"
            )),
            "{forwarded}"
        );
        let mut tunnel = served.connect();
        write!(tunnel, "CONNECT {host} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n").unwrap();
        let answer = String::from_utf8(rest(&mut tunnel)).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK"),
            "{answer}"
        );
        assert!(answer.ends_with("GET / HTTP/1.1\r\n\r\n"), "{answer}");
    }
    let mut through = served.connect();
    through.write_all(&socks("web.test", port)).unwrap();
    through.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let answer = rest(&mut through);
    assert_eq!(&answer[..12], [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert!(answer.ends_with(b"GET / HTTP/1.1\r\n\r\n"));
    assert_eq!(served.refusals(), []);
    assert_eq!(served.proxy.finish(Duration::ZERO).connections, 5);
}

#[test]
fn what_is_not_listed_is_refused_with_the_reason_and_counted() {
    let port = echo();
    let denied = format!("bad.web.test:{port}");
    let patterns = [allow("*.web.test"), (denied.as_str(), HostAccess::Deny), allow("localhost")];
    let names = Names::default().with("a.web.test", &[&["127.0.0.1"]]);
    let served = served(&patterns, &names, Limits::default());
    for target in
        ["web.test:443", "evilweb.test:443", "web.test.evil:80", "0x7f.1:80", "a.web.test:22"]
    {
        let status = served.status(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert_eq!(status, "HTTP/1.1 403 Forbidden", "{target}");
    }
    let denied = format!("GET http://bad.web.test:{port}/ HTTP/1.1\r\n\r\n");
    let answer = String::from_utf8(served.ask(denied.as_bytes())).unwrap();
    assert!(answer.ends_with(&format!(
        "plenipo: refused bad.web.test:{port}: denied by bad.web.test:{port}\n"
    )));
    let answer = served.ask(&socks("elsewhere.test", 443));
    assert_eq!(answer, [5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0]);
    let answer = String::from_utf8(served.ask(b"CONNECT a.web.test:443 HTTP/1.1\r\n\r\n")).unwrap();
    assert!(
        answer.contains("resolves to the loopback address 127.0.0.1, which is not listed itself")
    );
    assert_eq!(names.asked(), ["a.web.test"], "what is refused by name is not even looked up");
    let refusals = served.refusals();
    for expected in [
        ("127.0.0.1".to_owned(), 80, "not-listed", 1),
        ("a.web.test".to_owned(), 22, "port", 1),
        ("a.web.test".to_owned(), 443, "special-address", 1),
        ("bad.web.test".to_owned(), port, "denied", 1),
        ("elsewhere.test".to_owned(), 443, "not-listed", 1),
        ("web.test.evil".to_owned(), 80, "not-listed", 1),
    ] {
        assert!(refusals.contains(&expected), "{expected:?} in {refusals:?}");
    }
    assert_eq!(refusals.len(), 8);
}

#[test]
fn a_name_is_resolved_once_and_exactly_that_address_is_dialled() {
    let port = echo();
    let (name, loopback) = (format!("moving.test:{port}"), format!("127.0.0.1:{port}"));
    // First the listed address, then the metadata service: a check and a second look-up would differ.
    let names = Names::default().with(
        "moving.test",
        &[&["127.0.0.1"], &["169.254.169.254"], &["10.0.0.1", "127.0.0.1"], &["::ffff:7f00:1"]],
    );
    let served = served(&[allow(&name), allow(&loopback)], &names, Limits::default());
    let request = format!("CONNECT moving.test:{port} HTTP/1.1\r\n\r\n");
    let status = |served: &Served| {
        let mut stream = served.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(Side::Write).unwrap();
        String::from_utf8(rest(&mut stream)).unwrap()
    };
    assert!(status(&served).starts_with("HTTP/1.1 200"));
    assert_eq!(names.asked().len(), 1, "one look-up for one connection");
    let refused = status(&served);
    assert!(refused.contains("resolves to the metadata address 169.254.169.254"), "{refused}");
    assert!(status(&served).starts_with("HTTP/1.1 200"), "the permitted one of two");
    assert!(status(&served).starts_with("HTTP/1.1 200"), "the same address written in IPv6");
    assert_eq!(names.asked().len(), 4);
}

#[test]
fn an_empty_list_reaches_nothing_and_asks_nobody() {
    let port = echo();
    let names = Names::default().with("web.test", &[&["127.0.0.1"]]);
    let served = served(&[], &names, Limits::default());
    for target in ["web.test", "localhost", "127.0.0.1", "[::1]"] {
        let status = served.status(&format!("CONNECT {target}:{port} HTTP/1.1\r\n\r\n"));
        assert_eq!(status, "HTTP/1.1 403 Forbidden", "{target}");
    }
    assert_eq!(names.asked(), [""; 0]);
}

#[test]
fn what_cannot_be_reached_is_told_from_what_is_refused() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let (missing, there) = (format!("missing.test:{port}"), format!("127.0.0.1:{port}"));
    let served = served(&[allow(&missing), allow(&there)], &Names::default(), Limits::default());
    let connect = |host: &str| served.status(&format!("CONNECT {host} HTTP/1.1\r\n\r\n"));
    assert_eq!(connect(&missing), "HTTP/1.1 502 Bad Gateway");
    assert_eq!(connect(&there), "HTTP/1.1 502 Bad Gateway");
    assert_eq!(served.ask(&socks("missing.test", port))[3], 4);
    assert_eq!(served.ask(&socks("127.0.0.1", port))[3], 5);
    assert_eq!(served.refusals(), []);
}

#[test]
fn requests_that_are_none_are_refused_and_counted() {
    let served = served(&[allow("a.test")], &Names::default(), Limits::default());
    assert_eq!(served.status("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    assert_eq!(served.status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    let long = format!("GET http://a.test/ HTTP/1.1\r\nA: {}", "x".repeat(64 * 1024));
    assert!(served.status(&long).starts_with("HTTP/1.1 431"));
    assert_eq!(served.ask(&[5, 1, 2]), [5, 0xff]);
    assert_eq!(served.ask(&[5, 1, 0, 5, 3, 0, 1, 1, 1, 1, 1, 0, 80])[3], 7, "UDP ASSOCIATE");
    assert_eq!(served.ask(&socks("evil.test\0.a.test", 443))[3], 1);
    assert_eq!(served.proxy.shared.tally.summary().malformed, 6);
}

#[test]
fn a_tunnel_carries_no_other_name_than_its_own() {
    let port = echo();
    let (name, loopback) = (format!("web.test:{port}"), format!("127.0.0.1:{port}"));
    let names = Names::default().with("web.test", &[&["127.0.0.1"]]);
    let served = served(&[allow(&name), allow(&loopback)], &names, Limits::default());
    let through = |target: &str, first: &[u8]| {
        let mut stream = served.connect();
        write!(stream, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
        // In two parts, so that the greeting is held back.
        let (one, two) = first.split_at(first.len() / 2);
        stream.write_all(one).unwrap();
        // A refusal is a reset, and may come before all of it was sent.
        stream.write_all(two).and_then(|()| stream.shutdown(Side::Write)).unwrap_or_default();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap_or_default();
        answer.strip_prefix(crate_established()).map(<[u8]>::to_vec).unwrap_or_default()
    };
    assert_eq!(through(&name, &hello_for("WEB.test")), hello_for("WEB.test"));
    assert_eq!(through(&name, b"no TLS at all"), b"no TLS at all");
    assert_eq!(through(&name, &hello_for("evil.test")), b"", "nothing of it arrived");
    assert_eq!(through(&loopback, &hello_for("any.test")), hello_for("any.test"));
    let before_it = [&[20, 3, 3, 0, 1, 1][..], &hello_for("evil.test")].concat();
    assert_eq!(through(&name, &before_it), b"", "a record before the greeting");
    let request = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    let (own, evil) = (request("web.test"), request("evil.test"));
    assert_eq!(through(&name, &[&own[..], &own].concat()), [&own[..], &own].concat());
    assert_eq!(through(&name, &evil), b"", "a request in the clear");
    assert_eq!(through(&loopback, &evil), evil);
    let second = through(&name, &[&own[..], &evil].concat());
    assert!(
        !String::from_utf8_lossy(&second).contains("evil"),
        "the second request of a connection"
    );
    assert_eq!(served.refusals(), [("web.test".to_owned(), port, "server-name", 4)]);
}

#[test]
fn a_client_of_socks_version_4_is_told_so_in_its_own_words() {
    let served = served(&[allow("web.test")], &Names::default(), Limits::default());
    for request in [
        &b"\x04\x01\x00\x50\x7f\x00\x00\x01me\x00"[..],
        b"\x04\x01\x00\x50\x00\x00\x00\x01\x00web.test\x00",
    ] {
        assert_eq!(served.ask(request), [0, 91, 0, 0, 0, 0, 0, 0]);
    }
    assert_eq!(served.proxy.shared.tally.summary().malformed, 2);
}

fn crate_established() -> &'static [u8] {
    b"HTTP/1.1 200 Connection established\r\n\r\n"
}

#[test]
fn a_side_that_is_closed_is_closed_on_the_other_end_and_the_answer_still_comes() {
    let port = server(|mut stream| {
        let mut asked = Vec::new();
        stream.read_to_end(&mut asked).unwrap();
        stream.write_all(format!("{} bytes", asked.len()).as_bytes()).unwrap();
    });
    let loopback = format!("127.0.0.1:{port}");
    let served = served(&[allow(&loopback)], &Names::default(), Limits::default());
    let mut stream = served.connect();
    stream.write_all(&socks("127.0.0.1", port)).unwrap();
    stream.write_all(&[7; 100_000]).unwrap();
    stream.shutdown(Side::Write).unwrap();
    assert_eq!(rest(&mut stream)[12..], *b"100000 bytes");
    // And the other way round: the server closes first, and still gets what follows.
    let (told, hears) = std::sync::mpsc::channel();
    let port = server(move |mut stream| {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Side::Write).unwrap();
        let mut asked = Vec::new();
        stream.read_to_end(&mut asked).unwrap();
        told.send(asked.len()).unwrap();
    });
    let loopback = format!("127.0.0.1:{port}");
    let served = self::served(&[allow(&loopback)], &Names::default(), Limits::default());
    let mut stream = served.connect();
    stream.write_all(&socks("127.0.0.1", port)).unwrap();
    assert_eq!(rest(&mut stream)[12..], *b"bye");
    stream.write_all(&[7; 50_000]).unwrap();
    drop(stream);
    assert_eq!(hears.recv_timeout(Duration::from_secs(20)).unwrap(), 50_000);
}

#[test]
fn a_large_transfer_is_exact_both_ways() {
    const MANY: usize = 24 * 1024 * 1024;
    let port = echo();
    let loopback = format!("127.0.0.1:{port}");
    let served = served(&[allow(&loopback)], &Names::default(), Limits::default());
    let bytes: Vec<u8> = (0..MANY).map(|n| (n * 31 % 251) as u8).collect();
    let mut stream = served.connect();
    stream.write_all(&socks("127.0.0.1", port)).unwrap();
    let mut writing = stream.try_clone().unwrap();
    let sent = bytes.clone();
    let writer = thread::spawn(move || {
        writing.write_all(&sent).unwrap();
        writing.shutdown(Side::Write).unwrap();
    });
    let answer = rest(&mut stream);
    writer.join().unwrap();
    assert!(answer[12..] == bytes[..], "{} bytes back of {MANY}", answer.len());
}

#[test]
fn a_broken_answer_is_not_taken_for_a_whole_one() {
    let port = server(|mut stream| {
        stream.read_exact(&mut [0]).unwrap(); // the proxy is connected
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").unwrap();
        set_reset(&stream);
    });
    let loopback = format!("127.0.0.1:{port}");
    let served = served(&[allow(&loopback)], &Names::default(), Limits::default());
    let mut stream = served.connect();
    write!(stream, "CONNECT {loopback} HTTP/1.1\r\n\r\nx").unwrap();
    let ended = stream.read_to_end(&mut Vec::new());
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

fn set_reset(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn connections_beyond_the_limit_wait_and_are_served_later() {
    let port = echo();
    let loopback = format!("127.0.0.1:{port}");
    let limits = Limits { connections: 4, ..Limits::default() };
    let served = served(&[allow(&loopback)], &Names::default(), limits);
    let open = |served: &Served| {
        let mut stream = served.connect();
        stream.write_all(&socks("127.0.0.1", port)).unwrap();
        stream
    };
    let mut first: Vec<TcpStream> = (0..4).map(|_| open(&served)).collect();
    for stream in &mut first {
        stream.read_exact(&mut [0; 12]).unwrap();
    }
    let mut waiting = open(&served);
    waiting.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(waiting.read(&mut [0]).is_err(), "no fifth connection is served");
    assert_eq!(served.proxy.shared.tally.summary().connections, 4);
    first.pop();
    waiting.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    waiting.read_exact(&mut [0; 12]).unwrap();
}

#[test]
fn two_thousand_connections_are_served_a_few_at_a_time() {
    let port = echo();
    let loopback = format!("127.0.0.1:{port}");
    let limits = Limits { connections: 16, ..Limits::default() };
    let served = Arc::new(served(&[allow(&loopback)], &Names::default(), limits));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let served = Arc::clone(&served);
            thread::spawn(move || {
                for _ in 0..250 {
                    let mut stream = served.connect();
                    stream.write_all(&socks("127.0.0.1", port)).unwrap();
                    stream.write_all(b"ping").unwrap();
                    stream.shutdown(Side::Write).unwrap();
                    assert_eq!(rest(&mut stream)[12..], *b"ping");
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let summary = served.proxy.finish(Duration::from_secs(20));
    assert_eq!((summary.connections, summary.refused.len()), (2000, 0));
    assert!(served.proxy.slots.drained(Duration::from_secs(20)), "nothing is left behind");
}

#[test]
fn who_says_nothing_is_let_go() {
    let port = echo();
    let loopback = format!("127.0.0.1:{port}");
    let brief = Duration::from_millis(150);
    let limits = Limits { connections: 8, head: brief, idle: brief };
    let served = served(&[allow(&loopback)], &Names::default(), limits);
    let since = Instant::now();
    let mut silent = served.connect();
    assert_eq!(rest(&mut silent), b"", "no head");
    let mut slow = served.connect();
    slow.write_all(b"CONNECT 127.0.0.1").unwrap();
    assert_eq!(rest(&mut slow), b"", "half a head");
    let mut idle = served.connect();
    idle.write_all(&socks("127.0.0.1", port)).unwrap();
    let mut answer = Vec::new();
    idle.read_to_end(&mut answer).unwrap_or_default(); // reset, so that nobody takes it for an end
    assert_eq!(answer.len(), 12);
    assert!(since.elapsed() < Duration::from_secs(15));
}

#[test]
fn finishing_waits_for_what_was_sent_and_takes_no_more() {
    let (told, hears) = std::sync::mpsc::channel();
    let port = server(move |mut stream| {
        let mut asked = Vec::new();
        stream.read_to_end(&mut asked).unwrap();
        told.send(asked.len()).unwrap();
    });
    let loopback = format!("127.0.0.1:{port}");
    let served = served(&[allow(&loopback)], &Names::default(), Limits::default());
    let mut stream = served.connect();
    stream.write_all(&socks("127.0.0.1", port)).unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    stream.write_all(&[1; 1_000_000]).unwrap();
    drop(stream);
    served.proxy.finish(Duration::from_secs(20));
    assert_eq!(hears.recv_timeout(Duration::from_secs(20)).unwrap(), 1_000_000);
    let after = TcpStream::connect_timeout(&served.address, Duration::from_secs(2));
    let refused = after.and_then(|mut stream| {
        stream.write_all(b"CONNECT a:1 HTTP/1.1\r\n\r\n")?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.read(&mut [0])
    });
    assert!(matches!(refused, Ok(0) | Err(_)), "{refused:?}");
}
