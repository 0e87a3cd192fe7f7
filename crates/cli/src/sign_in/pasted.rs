//! Lines that a person pastes: from standard input, or in a conversation that goes on already.

use std::io::{self, BufRead};

use plenipo_redact::Secret;
use tokio::sync::mpsc;

use super::listener::LONGEST;
use crate::person::Talk;

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
            loop {
                let mut line = String::new();
                let limit = u64::try_from(LONGEST).unwrap_or(u64::MAX);
                match io::Read::take(&mut input, limit).read_line(&mut line) {
                    Ok(1..) if !line.trim().is_empty() => {
                        if sender.blocking_send(Secret::new(line)).is_err() {
                            return;
                        }
                    }
                    Ok(1..) => {}
                    _ => return,
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
