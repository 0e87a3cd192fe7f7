//! Framing and envelopes, on anything.

use std::path::Path;

use plenipo_testkit::Fuzz;
use plenipo_wire::{Incoming, LineReader};

const LIMIT: usize = 200;
const WORDS: [&str; 14] = [
    "\n",
    "\r\n",
    "\u{feff}",
    "{\"jsonrpc\":\"2.0\",",
    "\"id\":1",
    "\"id\":\"a\"",
    "\"method\":\"m\"",
    "\"params\":{",
    "\"result\":{}",
    "\"error\":{\"code\":-1,\"message\":\"\"}",
    "}",
    "null",
    "\\u000a",
    "\u{2028}",
];

/// Lines, and too long ones as their sizes' absence.
fn lines(reader: &mut LineReader, lines: &mut Vec<Option<Vec<u8>>>) {
    while let Some(line) = reader.next_line() {
        lines.push(line.ok().map(<[u8]>::to_vec));
    }
}

/// However the bytes arrive, the lines are the same, none is over the bound, and none holds a line's end.
#[test]
fn fuzz_framing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/framing");
    Fuzz::of(&corpus, &WORDS).rounds(800).run(|input| {
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        let mut reader = LineReader::with_limit(LIMIT);
        reader.push(input);
        lines(&mut reader, &mut whole);
        let mut reader = LineReader::with_limit(LIMIT);
        let size = input.first().map_or(1, |byte| usize::from(*byte) % 7 + 1);
        for piece in input.chunks(size) {
            reader.push(piece);
            lines(&mut reader, &mut pieces);
        }
        assert_eq!(whole, pieces, "in pieces of {size}");
        let mut outcome = String::new();
        for line in &whole {
            outcome.push(match line {
                None => 'L',
                Some(line) => {
                    assert!(!line.is_empty() && line.len() <= LIMIT && !line.contains(&b'\n'));
                    kind(line)
                }
            });
        }
        outcome.truncate(12);
        outcome
    });
}

fn kind(line: &[u8]) -> char {
    match Incoming::parse(line) {
        Ok(Incoming::Request { .. }) => 'r',
        Ok(Incoming::Notification { .. }) => 'n',
        Ok(Incoming::Success { .. }) => 's',
        Ok(Incoming::Failure { .. }) => 'f',
        Ok(_) => 'o',
        Err(_) => 'e',
    }
}
