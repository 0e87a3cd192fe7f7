//! Colour, only where a person looks: a terminal without `NO_COLOR`.

use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::env;
use crate::failure::{Code, Failure};

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

/// One line on stderr. If nobody can read it the exit code still says what happened.
pub(crate) fn tell(text: &str) {
    clear();
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// Whether the last line of the terminal is a drawn one.
static DRAWN: AtomicBool = AtomicBool::new(false);

/// Puts `line` in place of the last drawn one; the next [`tell`] or [`clear`] takes it away.
pub(crate) fn draw(line: &str) {
    DRAWN.store(true, Ordering::Relaxed);
    drop(write!(std::io::stderr(), "\r{line}\u{1b}[K"));
}

/// Takes a drawn line away.
pub(crate) fn clear() {
    if DRAWN.swap(false, Ordering::Relaxed) {
        drop(write!(std::io::stderr(), "\r\u{1b}[K"));
    }
}

/// Whether a person reads stderr as it comes.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// A question on stderr, without the end of its line.
pub(crate) fn ask(question: &str) {
    clear();
    drop(write!(std::io::stderr(), "{question}"));
}

/// One warning line on stderr.
pub(crate) fn warn(text: &str) {
    tell(&format!("{} {text}", stderr().yellow("warning:")));
}

/// Text of a server, fit for a terminal: it may hold lines and tabs, and no control over what is shown.
pub(crate) fn harmless(text: &str) -> String {
    let fit = |character: char| match character {
        '\n' | '\t' => character,
        other => plenipo_connect::text::harmless(other),
    };
    text.chars().map(fit).collect()
}

/// Whether a person reads stdout as it comes.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// So much a pipe that can be written to takes at once (PIPE_BUF, pipe(7)).
pub(crate) const PAGE: usize = 4096;

/// Whether so much can be written to stdout without waiting for its reader.
pub(crate) fn stdout_takes_a_page() -> bool {
    let stdout = std::io::stdout();
    let mut waited = [PollFd::new(&stdout, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut waited, Some(&now)).is_ok()
        && waited.iter().all(|one| one.revents() == PollFlags::OUT)
}

/// Text on stdout. A reader that has gone (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Transport, format!("failed to write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Standard output piece by piece. A reader that has gone (`| head`) is no error.
pub(crate) struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    for_a_person: bool,
    has_gone: bool,
    open_line: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        const BUFFER: usize = 64 * 1024;
        let stdout = BufWriter::with_capacity(BUFFER, std::io::stdout().lock());
        Self { stdout, for_a_person: stdout_is_terminal(), has_gone: false, open_line: false }
    }

    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(last) = text.bytes().last() {
            self.open_line = last != b'\n';
        }
        let written = self.stdout.write_all(text.as_bytes());
        self.judge(written)
    }

    /// Text of a server: raw for a program, harmless for a terminal.
    pub(crate) fn write_peers(&mut self, text: &str) -> Result<(), Failure> {
        if self.for_a_person { self.write(&harmless(text)) } else { self.write(text) }
    }

    /// JSON of a server: raw for a program; for a terminal the same JSON, with what is not harmless spelled out.
    pub(crate) fn write_json(&mut self, text: &str) -> Result<(), Failure> {
        let is_harmless =
            |c: char| matches!(c, '\n' | '\t') || plenipo_connect::text::harmless(c) == c;
        if !self.for_a_person || text.chars().all(is_harmless) {
            return self.write(text);
        }
        let mut spelled = String::with_capacity(text.len());
        for character in text.chars() {
            if is_harmless(character) {
                spelled.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                spelled.extend(format!("\\u{unit:04x}").chars());
            }
        }
        self.write(&spelled)
    }

    /// Ends the line that was begun, if one was.
    pub(crate) fn end_line(&mut self) -> Result<(), Failure> {
        if self.open_line { self.write("\n") } else { Ok(()) }
    }

    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.stdout.flush();
        self.judge(flushed)
    }

    fn judge(&mut self, written: std::io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => self.has_gone = true,
            Err(error) if !self.has_gone => {
                let message = format!("failed to write to stdout: {error}");
                return Err(Failure::new(Code::Transport, message));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Lines on stdout; nothing for none.
pub(crate) fn print_lines(lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() { Ok(()) } else { print(&format!("{}\n", lines.join("\n"))) }
}

/// One line of JSON on stdout.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(value)
        .map_err(|error| Failure::new(Code::Protocol, format!("failed to write JSON: {error}")))?;
    text.push('\n');
    print(&text)
}
