//! Colour, only where a person looks: a terminal without `NO_COLOR`.

use std::io::IsTerminal;

use crate::env;

/// Paints words, or leaves them alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

pub(crate) fn stderr() -> Paint {
    Paint(std::io::stderr().is_terminal() && env::colours_wanted())
}

pub(crate) fn stdout() -> Paint {
    Paint(std::io::stdout().is_terminal() && env::colours_wanted())
}

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
}
