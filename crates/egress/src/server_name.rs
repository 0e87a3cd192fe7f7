//! The name that a TLS client asks for before anything is encrypted: RFC 8446 (section 4.1.2), RFC 6066 (section 3).
//!
//! A tunnel to an allowed name must not carry another one: many names share an address.

use plenipo_policy::Host;

/// A ClientHello has less; what has more is none that this proxy lets through.
const MAX_BYTES: usize = 64 * 1024;
const HANDSHAKE: u8 = 22;
/// Change of cipher, alert, application data, heartbeat.
const OTHER_RECORDS: [u8; 4] = [20, 21, 23, 24];
/// Of SSL 3.0 and all versions of TLS.
const MAJOR_VERSION: u8 = 3;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEADER: usize = 5;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// What the first bytes of a connection say about its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// More bytes are needed.
    Incomplete,
    /// Another protocol.
    NotTls,
    /// TLS without a name.
    Nameless,
    Named(Host),
    /// It begins like TLS and cannot be read.
    Malformed,
}

/// Looks at the first bytes that a client sends.
pub(crate) fn greeting(bytes: &[u8]) -> Greeting {
    match bytes {
        [] => return Greeting::Incomplete,
        [HANDSHAKE, ..] => {}
        // Other records of TLS, which a client does not begin with and some servers would skip.
        [first, rest @ ..] if OTHER_RECORDS.contains(first) => match rest.first() {
            None => return Greeting::Incomplete,
            Some(&MAJOR_VERSION) => return Greeting::Malformed,
            Some(_) => return Greeting::NotTls,
        },
        _ => return Greeting::NotTls,
    }
    let Some((message, whole)) = handshake(bytes) else { return Greeting::Malformed };
    match client_hello(&message) {
        Some(body) => match name(body) {
            Ok(Some(host)) => Greeting::Named(host),
            Ok(None) => Greeting::Nameless,
            Err(Unreadable) => Greeting::Malformed,
        },
        None if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) => Greeting::Malformed,
        None if bytes.len() >= MAX_BYTES || whole => Greeting::Malformed,
        None => Greeting::Incomplete,
    }
}

struct Unreadable;

/// The records' payload up to a complete ClientHello, and whether something other than a handshake comes before that.
fn handshake(bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut message = Vec::new();
    let mut rest = bytes;
    while let [kind, major, _, high, low, payload @ ..] = rest {
        if *kind != HANDSHAKE {
            return Some((message, true));
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *major != MAJOR_VERSION || length == 0 {
            return None;
        }
        message.extend_from_slice(payload.get(..length).unwrap_or(payload));
        if client_hello(&message).is_some() {
            break; // what follows is not read here
        }
        rest = rest.get(RECORD_HEADER + length..).unwrap_or_default();
    }
    Some((message, false))
}

/// The body of a complete ClientHello.
fn client_hello(message: &[u8]) -> Option<&[u8]> {
    let [CLIENT_HELLO, a, b, c, body @ ..] = message else { return None };
    body.get(..usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).ok()?)
}

fn name(body: &[u8]) -> Result<Option<Host>, Unreadable> {
    const VERSION_AND_RANDOM: usize = 2 + 32;
    let mut reader = Reader(body);
    reader.take(VERSION_AND_RANDOM)?;
    reader.vector(1)?; // session
    reader.vector(2)?; // cipher suites
    reader.vector(1)?; // compression methods
    if reader.0.is_empty() {
        return Ok(None);
    }
    let mut extensions = Reader(reader.vector(2)?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let data = extensions.vector(2)?;
        if kind == usize::from(SERVER_NAME) {
            if found.is_some() {
                return Err(Unreadable); // which one counts is the server's choice
            }
            found = Some(server_name(data)?);
        }
    }
    Ok(found)
}

fn server_name(data: &[u8]) -> Result<Host, Unreadable> {
    let mut reader = Reader(data);
    let mut names = Reader(reader.vector(2)?);
    let kind = names.number(1)?;
    let name = names.vector(2)?;
    if kind != usize::from(HOST_NAME) || !names.0.is_empty() || !reader.0.is_empty() {
        return Err(Unreadable);
    }
    let text = std::str::from_utf8(name).map_err(|_| Unreadable)?;
    Host::parse(text).map_err(|_| Unreadable)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Unreadable)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<usize, Unreadable> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A length of so many bytes, and what it is of.
    fn vector(&mut self, bytes: usize) -> Result<&'a [u8], Unreadable> {
        let length = self.number(bytes)?;
        self.take(length)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn vector(bytes: usize, data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[4 - bytes..], data].concat()
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector(2, data)].concat()
    }

    fn server_name_extension(name: &[u8]) -> Vec<u8> {
        let entry = [&[HOST_NAME][..], &vector(2, name)].concat();
        extension(SERVER_NAME, &vector(2, &entry))
    }

    /// A ClientHello, in records of at most `record` bytes.
    fn hello(extensions: &[u8], record: usize) -> Vec<u8> {
        let body = [
            &[3, 3][..],
            &[7; 32],
            &vector(1, &[9; 32]),
            &vector(2, &[0x13, 1]),
            &vector(1, &[0]),
            &vector(2, extensions),
        ]
        .concat();
        let message = [&[CLIENT_HELLO][..], &vector(3, &body)].concat();
        message
            .chunks(record)
            .flat_map(|part| [&[HANDSHAKE, 3, 1][..], &vector(2, part)].concat())
            .collect()
    }

    pub(crate) fn hello_for(name: &str) -> Vec<u8> {
        hello(
            &[extension(10, &[0, 2, 0, 29]), server_name_extension(name.as_bytes())].concat(),
            16_384,
        )
    }

    #[test]
    fn the_name_is_found_however_the_records_are_cut() {
        let named = Greeting::Named(Host::parse("example.org").unwrap());
        let extensions =
            [extension(0xfe0d, &[1; 200]), server_name_extension(b"Example.ORG")].concat();
        for record in [16_384, 100, 7, 1] {
            let bytes = hello(&extensions, record);
            assert_eq!(greeting(&bytes), named, "records of {record}");
            for more in [&b"more"[..], &[23, 3, 3, 0, 1, 1], &[HANDSHAKE, 7, 7, 0, 0, 0]] {
                assert_eq!(greeting(&[&bytes[..], more].concat()), named);
            }
            for end in 0..bytes.len() {
                assert_eq!(greeting(&bytes[..end]), Greeting::Incomplete, "{end} of {record}");
            }
        }
    }

    #[test]
    fn what_is_not_tls_is_told_from_tls_without_a_name() {
        assert_eq!(greeting(b"GET / HTTP/1.1\r\n"), Greeting::NotTls);
        assert_eq!(greeting(b"SSH-2.0-x\r\n"), Greeting::NotTls);
        assert_eq!(greeting(&[20, 1, 2]), Greeting::NotTls);
        assert_eq!(greeting(&hello(&extension(10, &[]), 512)), Greeting::Nameless);
        assert_eq!(greeting(&hello(&[], 512)), Greeting::Nameless);
    }

    #[test]
    fn what_begins_like_tls_and_cannot_be_read_is_malformed() {
        let twice = [server_name_extension(b"ok.com"), server_name_extension(b"evil.com")].concat();
        let two = [&[HOST_NAME][..], &vector(2, b"ok.com"), &[HOST_NAME], &vector(2, b"evil.com")]
            .concat();
        let cut = {
            let mut bytes = hello(&[], 512);
            bytes[4] = bytes[4].saturating_sub(10);
            bytes[8] -= 10;
            bytes
        };
        for bytes in [
            hello(&twice, 512),
            hello(&extension(SERVER_NAME, &vector(2, &two)), 512),
            hello(&extension(SERVER_NAME, &[]), 512),
            hello(&extension(SERVER_NAME, &vector(2, &[1, 0, 0])), 512),
            hello(&server_name_extension(b"evil.com\0.ok.com"), 512),
            hello(&server_name_extension(b""), 512),
            hello(&[0, 0, 255, 255], 512),
            [&[20, 3, 3, 0, 1, 1][..], &hello_for("evil.com")].concat(),
            [&[21, 3, 1, 0, 2, 1, 0][..], &hello_for("evil.com")].concat(),
            vec![23, 3],
            vec![HANDSHAKE, 3, 1, 0, 0],
            vec![HANDSHAKE, 9, 1, 0, 1, 1],
            vec![HANDSHAKE, 3, 1, 0, 1, 2],
            vec![HANDSHAKE, 3, 1, 0, 1, 1, 23, 3, 3, 0, 1],
            cut,
        ] {
            assert_eq!(greeting(&bytes), Greeting::Malformed, "{bytes:x?}");
        }
        let endless = hello(&extension(21, &vec![0; 65_000]), 60_000);
        assert_eq!(greeting(&endless[..endless.len() - 1]), Greeting::Incomplete);
        let claims_more = {
            let mut bytes = [&[HANDSHAKE, 3, 1][..], &vector(2, &vec![0; 65_000])].concat();
            bytes[5..9].copy_from_slice(&[1, 255, 255, 255]);
            bytes
        };
        assert_eq!(greeting(&[claims_more.clone(), claims_more].concat()), Greeting::Malformed);
    }
}
