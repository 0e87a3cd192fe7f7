//! Colour, only where a person looks: a terminal without `NO_COLOR`.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};

use crate::env;
use crate::failure::{Code, Failure};

/// Paints words, or leaves them alone.
#[derive(Debug, Clone, Copy)]
pub struct Paint(bool);

/// For standard error.
#[must_use]
pub fn stderr() -> Paint {
    Paint(io::stderr().is_terminal() && env::colours_wanted())
}

/// For standard output.
#[must_use]
pub fn stdout() -> Paint {
    Paint(io::stdout().is_terminal() && env::colours_wanted())
}

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// What failed.
    #[must_use]
    pub fn red(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// What is well.
    #[must_use]
    pub fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// What needs attention.
    #[must_use]
    pub fn yellow(self, text: &str) -> String {
        self.wrap("33", text)
    }

    /// What stands out.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// What is aside.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }
}

/// One line on stderr. If nobody can read it the exit code still says what happened.
pub fn tell(text: &str) {
    clear();
    drop(writeln!(io::stderr(), "{text}"));
}

/// Whether the last line of the terminal is a drawn one.
static DRAWN: AtomicBool = AtomicBool::new(false);

/// Puts `line` in place of the last drawn one; the next [`tell`] or [`clear`] takes it away.
pub fn draw(line: &str) {
    DRAWN.store(true, Ordering::Relaxed);
    drop(write!(io::stderr(), "\r{line}\u{1b}[K"));
}

/// Takes a drawn line away.
pub fn clear() {
    if DRAWN.swap(false, Ordering::Relaxed) {
        drop(write!(io::stderr(), "\r\u{1b}[K"));
    }
}

/// Whether a person reads stderr as it comes.
#[must_use]
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// A question on stderr, without the end of its line.
pub fn ask(question: &str) {
    clear();
    drop(write!(io::stderr(), "{question}"));
}

/// One warning line on stderr.
pub fn warn(text: &str) {
    tell(&format!("{} {}", stderr().yellow("warning:"), line(text)));
}

/// Text of our own with names, paths and words of others in it, as one line that a terminal does not act on.
#[must_use]
pub fn line(text: &str) -> String {
    text.chars().map(plenipo_connect::text::harmless).collect()
}

/// Text of a server, fit for a terminal: it may hold lines and tabs, and no control over what is shown.
#[must_use]
pub fn harmless(text: &str) -> String {
    let fit = |character: char| match character {
        '\n' | '\t' => character,
        other => plenipo_connect::text::harmless(other),
    };
    text.chars().map(fit).collect()
}

/// Whether a person reads stdout as it comes.
#[must_use]
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// So much a pipe that can be written to takes at once (PIPE_BUF, pipe(7)).
pub const PAGE: usize = 4096;

/// Whether so much can be written to stdout without waiting for its reader.
#[must_use]
pub fn stdout_takes_a_page() -> bool {
    let stdout = io::stdout();
    let mut waited = [PollFd::new(&stdout, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut waited, Some(&now)).is_ok()
        && waited.iter().all(|one| one.revents() == PollFlags::OUT)
}

/// Standard output as it is. That of the standard library takes what cannot be written there, because it is closed or open
/// for reading only, for written.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if plenipo_launch::output_was_closed() {
            return Err(Errno::BADF.into());
        }
        Ok(retry_on_intr(|| rustix::io::write(io::stdout(), bytes))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn not_written(error: &io::Error) -> Failure {
    let why = match Errno::from_io_error(error) {
        Some(Errno::BADF) => "it is closed, or not open for writing".to_owned(),
        _ => error.to_string(),
    };
    Failure::new(Code::Transport, format!("failed to write to standard output: {why}"))
}

/// Refuses to begin what is about nothing but standard output, where there is none.
///
/// # Errors
/// It is closed.
pub fn check_stdout() -> Result<(), Failure> {
    match plenipo_launch::output_was_closed() {
        true => Err(not_written(&Errno::BADF.into())),
        false => Ok(()),
    }
}

/// Text on stdout. A reader that has gone (`| head`) is no error.
///
/// # Errors
/// It cannot be written, and somebody still reads.
pub fn print(text: &str) -> Result<(), Failure> {
    match Stdout.write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(not_written(&error)),
        _ => Ok(()),
    }
}

/// Standard output piece by piece. A reader that has gone (`| head`) is no error.
pub struct Output {
    stdout: BufWriter<Stdout>,
    for_a_person: bool,
    has_gone: bool,
    open_line: bool,
}

impl Output {
    /// Begins.
    #[must_use]
    pub fn begin() -> Self {
        const BUFFER: usize = 64 * 1024;
        let stdout = BufWriter::with_capacity(BUFFER, Stdout);
        Self { stdout, for_a_person: stdout_is_terminal(), has_gone: false, open_line: false }
    }

    /// Text of our own.
    ///
    /// # Errors
    /// It cannot be written, and somebody still reads.
    pub fn write(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(last) = text.bytes().last() {
            self.open_line = last != b'\n';
        }
        let written = self.stdout.write_all(text.as_bytes());
        self.judge(written)
    }

    /// Text of a server: raw for a program, harmless for a terminal.
    ///
    /// # Errors
    /// It cannot be written, and somebody still reads.
    pub fn write_peers(&mut self, text: &str) -> Result<(), Failure> {
        if self.for_a_person { self.write(&harmless(text)) } else { self.write(text) }
    }

    /// JSON of a server: raw for a program; for a terminal the same JSON, with what is not harmless spelled out.
    ///
    /// # Errors
    /// It cannot be written, and somebody still reads.
    pub fn write_json(&mut self, text: &str) -> Result<(), Failure> {
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
    ///
    /// # Errors
    /// It cannot be written, and somebody still reads.
    pub fn end_line(&mut self) -> Result<(), Failure> {
        if self.open_line { self.write("\n") } else { Ok(()) }
    }

    /// Everything was written.
    ///
    /// # Errors
    /// It cannot be written, and somebody still reads.
    pub fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.stdout.flush();
        self.judge(flushed)
    }

    fn judge(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.has_gone = true,
            Err(error) if !self.has_gone => return Err(not_written(&error)),
            _ => {}
        }
        Ok(())
    }
}

/// Lines on stdout; nothing for none.
///
/// # Errors
/// It cannot be written, and somebody still reads.
pub fn print_lines(lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() { Ok(()) } else { print(&format!("{}\n", lines.join("\n"))) }
}

/// One line of JSON on stdout.
///
/// # Errors
/// It cannot be written, and somebody still reads.
pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(value)
        .map_err(|error| Failure::new(Code::Protocol, format!("failed to write JSON: {error}")))?;
    text.push('\n');
    print(&text)
}
