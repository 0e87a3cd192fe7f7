//! Where the body of a request ends: RFC 9112, section 7.1 (chunks). It is passed on as it is.

use crate::head::Body;

/// Longest line of a size, an extension or a trailer.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// A size has 16 hexadecimal digits at most.
const MAX_DIGITS: u32 = 16;

/// Follows a body as it arrives.
#[derive(Debug)]
pub(crate) struct BodyEnd {
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes are left of a body with a length.
    Fixed(u64),
    Size {
        size: u64,
        digits: u32,
    },
    /// After a size, before the end of its line.
    Extension {
        size: u64,
        length: usize,
    },
    SizeEnd {
        size: u64,
    },
    Data(u64),
    DataReturn,
    DataEnd,
    /// A line after the last chunk, so far this long.
    Trailer {
        length: usize,
        total: usize,
    },
    TrailerEnd {
        empty: bool,
        total: usize,
    },
    Done,
}

/// A body that is not framed as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misframed;

impl BodyEnd {
    pub(crate) fn of(body: Body) -> Self {
        let state = match body {
            Body::Length(0) => State::Done,
            Body::Length(length) => State::Fixed(length),
            Body::Chunked => State::Size { size: 0, digits: 0 },
        };
        Self { state }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// How many of these next bytes belong to the body.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, Misframed> {
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            match &mut self.state {
                State::Done => break,
                State::Fixed(left) | State::Data(left) => {
                    let part = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= u64::try_from(part).unwrap_or(*left);
                    taken += part;
                    self.state = match self.state {
                        State::Fixed(0) => State::Done,
                        State::Data(0) => State::DataReturn,
                        other => other,
                    };
                }
                _ => {
                    let Some(byte) = rest.first() else { break };
                    self.state = self.state.after(*byte).ok_or(Misframed)?;
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }
}

impl State {
    /// What follows one byte of framing; `None` if it cannot stand there.
    fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16)?;
                Self::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Self::Size { size, digits: 1.. }, b'\r') => Self::SizeEnd { size },
            (Self::Size { size, digits: 1.. }, b';' | b' ' | b'\t') => {
                Self::Extension { size, length: 0 }
            }
            (Self::Extension { size, .. }, b'\r') => Self::SizeEnd { size },
            (Self::Extension { size, length }, _) if byte != b'\n' && length < MAX_LINE_BYTES => {
                Self::Extension { size, length: length + 1 }
            }
            (Self::SizeEnd { size: 0 }, b'\n') => Self::Trailer { length: 0, total: 0 },
            (Self::SizeEnd { size }, b'\n') => Self::Data(size),
            (Self::DataReturn, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size { size: 0, digits: 0 },
            (Self::Trailer { length, total }, b'\r') => {
                Self::TrailerEnd { empty: length == 0, total }
            }
            (Self::Trailer { length, total }, _) if byte != b'\n' && total < MAX_LINE_BYTES => {
                Self::Trailer { length: length + 1, total: total + 1 }
            }
            (Self::TrailerEnd { empty: true, .. }, b'\n') => Self::Done,
            (Self::TrailerEnd { empty: false, total }, b'\n') => Self::Trailer { length: 0, total },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of a body is taken, fed in pieces.
    fn taken(body: Body, bytes: &[u8], piece: usize) -> Result<(usize, bool), Misframed> {
        let mut end = BodyEnd::of(body);
        let mut total = 0;
        for piece in bytes.chunks(piece) {
            let part = end.take(piece)?;
            total += part;
            if part < piece.len() {
                break;
            }
        }
        Ok((total, end.is_done()))
    }

    #[test]
    fn a_body_ends_where_it_says_however_it_is_cut() {
        let next = b"GET http://evil.example/ HTTP/1.1\r\n\r\n";
        for (kind, body) in [
            (Body::Length(0), &b""[..]),
            (Body::Length(5), b"hello"),
            (Body::Chunked, b"0\r\n\r\n"),
            (Body::Chunked, b"5\r\nhello\r\n0\r\n\r\n"),
            (
                Body::Chunked,
                b"005;a=b\r\nhello\r\nA\r\n0\r\n\r\n01234\r\n0\r\nX: y\r\nZ: 1\r\n\r\n",
            ),
        ] {
            let all = [body, next].concat();
            for piece in 1..all.len() {
                assert_eq!(taken(kind, &all, piece), Ok((body.len(), true)), "{kind:?} by {piece}");
            }
            for cut in 0..body.len() {
                assert_eq!(taken(kind, &body[..cut], 3), Ok((cut, false)));
            }
        }
    }

    #[test]
    fn framing_that_two_readers_could_take_differently_is_refused() {
        let long = format!("1;{}\r\n", "x".repeat(10_000));
        let trailers = format!("0\r\n{}", "X: y\r\n".repeat(3000));
        for body in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "0x1\r\n",
            "1\n",
            "1\r\r\n",
            ";a\r\n",
            "1\r\nab\r\n",
            "1\r\na\n",
            "1\r\na\r\r",
            "10000000000000000\r\n",
            "0\r\n\n",
            "0\r\nX: y\n",
            "0\r\n\rx",
            &long,
            &trailers,
        ] {
            assert_eq!(taken(Body::Chunked, body.as_bytes(), 7), Err(Misframed), "{body:?}");
        }
    }
}
