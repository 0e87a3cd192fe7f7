//! Lines that a person pastes: from standard input, or in a conversation that goes on already.

use std::io::{self, BufRead};

use plenipo_redact::Secret;
use tokio::sync::mpsc;

use super::listener::LONGEST;
use crate::person::Talk;

/// The next line, as far as it could be an address; `None` at the end.
fn line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut kept = Vec::new();
    let limit = u64::try_from(LONGEST).unwrap_or(u64::MAX);
    if io::Read::take(&mut *input, limit).read_until(b'\n', &mut kept)? == 0 {
        return Ok(None);
    }
    if kept.len() == LONGEST && !kept.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(Some(String::from_utf8_lossy(&kept).into_owned()))
}

/// Where lines come from.
pub(super) enum Pasted<'a> {
    Stdin(mpsc::Receiver<Secret<String>>),
    Person(Talk<'a>),
}

impl<'a> Pasted<'a> {
    /// Lines of standard input, as they come. The thread ends with the input or with the program.
    pub(super) fn stdin() -> Self {
        let (sender, receiver) = mpsc::channel(4);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            while let Ok(Some(line)) = line(&mut input) {
                if !line.trim().is_empty() && sender.blocking_send(Secret::new(line)).is_err() {
                    return;
                }
            }
        });
        Self::Stdin(receiver)
    }

    pub(super) fn of(talk: Talk<'a>) -> Self {
        Self::Person(talk)
    }

    /// The next line; never, once there is none.
    pub(super) async fn next(&mut self) -> Secret<String> {
        let line = match self {
            Self::Stdin(lines) => lines.recv().await,
            Self::Person(talk) => talk.line().await.map(Secret::new),
        };
        match line {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_one_line() {
        let text = format!("{}\nnext\n", "x".repeat(10 * LONGEST));
        let mut bytes = text.into_bytes();
        bytes.push(0xff);
        let mut input = io::Cursor::new(bytes);
        let lines: Vec<_> = std::iter::from_fn(|| line(&mut input).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].len(), LONGEST);
        assert_eq!(lines[1], "next\n");
    }
}
