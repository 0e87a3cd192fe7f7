//! Shells that stay for several calls, each under the authority of the call that started it.
//!
//! A call takes a session out while it uses it. One that is cancelled, runs out of time or loses track of the shell does
//! not put it back: nobody knows what the shell does with the line, or what of its output is still to come.

pub(crate) mod call;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plenipo_authority::{AuthorityGuard, CallAuthority};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio::time::timeout;

use crate::enforcement::Enforcement;
use crate::output::{CAPTURED_BYTES, Captured, Stream};
use crate::spawn::Started;

/// Sessions at once.
pub(crate) const MAXIMUM_SESSIONS: usize = 16;
/// How long a launcher may take to report.
const REPORT: Duration = Duration::from_secs(30);
/// More than the mark of a line's end, with the exit code and two line breaks.
const END_BYTES: usize = 128;

/// A running shell.
#[derive(Debug)]
pub(crate) struct Session {
    started: Started,
    stdin: ChildStdin,
    guard: AuthorityGuard,
    /// Ends each line's output; a command cannot know it beforehand.
    mark: String,
}

/// What came of a line.
#[derive(Debug)]
pub(crate) enum Line {
    /// The shell is ready for the next.
    Done { exit_code: i32, output: Captured },
    /// It ended, by `exit` or otherwise.
    Ended { output: Captured },
    /// The time was over.
    TimedOut,
}

/// The sessions of a connection, by name. `None`: a call is using it.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Option<Session>>>);

impl Session {
    /// Takes over a shell that was started with a standard input; says what its launcher reported.
    pub(crate) async fn new(
        mut started: Started,
        authority: &CallAuthority,
        report_bytes: usize,
    ) -> io::Result<(Self, Option<Captured>)> {
        let stdin = started.child.stdin.take();
        let stdin = stdin.ok_or_else(|| io::Error::other("it has no standard input"))?;
        let report = match started.report.take() {
            None => None,
            Some(pipe) => {
                let mut report = Stream::new(Some(pipe), report_bytes);
                let reading = async {
                    while !report.is_closed() {
                        report.more().await;
                    }
                };
                timeout(REPORT, reading).await?;
                Some(report.into_captured())
            }
        };
        let random = [RandomState::new(), RandomState::new()].map(|state| state.hash_one(0_u8));
        let mark = format!("--end-{:016x}{:016x}--", random[0], random[1]);
        let guard = AuthorityGuard::retain(authority);
        let mut session = Self { started, stdin, guard, mark };
        // Both streams in the order in which they were written. Where the launcher refused, nobody reads this.
        session.stdin.write_all(b"exec 2>&1\n").await.ok();
        Ok((session, report))
    }

    /// Runs `line` in the shell.
    pub(crate) async fn line(&mut self, line: &str, limit: Duration) -> io::Result<Line> {
        let text = format!("{line}\nprintf '\\n%s %s\\n' {} \"$?\"\n", self.mark);
        let exchange = async {
            // A shell that reads no more has ended, which its output says.
            self.stdin.write_all(text.as_bytes()).await.ok();
            self.read().await
        };
        timeout(limit, exchange).await.unwrap_or(Ok(Line::TimedOut))
    }

    /// Reads to the mark; keeps the beginning of what is before it.
    async fn read(&mut self) -> io::Result<Line> {
        let stdout = self.started.stdout.as_mut();
        let stdout = stdout.ok_or_else(|| io::Error::other("it has no standard output"))?;
        let mut output = Captured::with_limit(CAPTURED_BYTES);
        let mut end: Vec<u8> = Vec::new();
        loop {
            if stdout.read_buf(&mut end).await? == 0 {
                output.push(&end);
                return Ok(Line::Ended { output });
            }
            if let Some((before, exit_code)) = split_end(&end, &self.mark) {
                output.push(end.get(..before).unwrap_or_default());
                return Ok(Line::Done { exit_code, output });
            }
            let settled = end.len().saturating_sub(END_BYTES);
            output.push(end.get(..settled).unwrap_or_default());
            end.drain(..settled);
        }
    }
}

/// Where the output ends, and the exit code, when `bytes` ends with the mark's line.
fn split_end(bytes: &[u8], mark: &str) -> Option<(usize, i32)> {
    let line = bytes.strip_suffix(b"\n")?;
    let start = line.iter().rposition(|byte| *byte == b'\n')?;
    let text = std::str::from_utf8(line.get(start.saturating_add(1)..)?).ok()?;
    let code = text.strip_prefix(mark)?.strip_prefix(' ')?.parse().ok()?;
    Some((start, code))
}

impl Sessions {
    /// Keeps a new session under a name that nothing else has.
    pub(crate) fn add(&self, session: Session) -> Option<String> {
        let mut sessions = self.lock();
        if sessions.len() >= MAXIMUM_SESSIONS {
            return None;
        }
        let name = format!("{:016x}", RandomState::new().hash_one(sessions.len()));
        sessions.insert(name.clone(), Some(session));
        Some(name)
    }

    /// Takes a session out for a call under the authority that it was started with.
    ///
    /// # Errors
    /// Why not, as a sentence.
    pub(crate) fn take(&self, name: &str, authority: &CallAuthority) -> Result<Session, String> {
        let mut sessions = self.lock();
        let Some(place) = sessions.get_mut(name) else {
            return Err("there is no such session; it may have ended".to_owned());
        };
        let Some(session) = place else { return Err("the session is in use".to_owned()) };
        session.guard.ensure_same(authority).map_err(|changed| {
            format!("refused: {changed} since the session was started; start another")
        })?;
        place.take().ok_or_else(|| "the session is in use".to_owned())
    }

    pub(crate) fn put_back(&self, name: &str, session: Session) {
        if let Some(place) = self.lock().get_mut(name) {
            *place = Some(session);
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Option<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a session that is out, unless it is put back.
pub(crate) struct Loan<'a> {
    pub(crate) sessions: &'a Sessions,
    pub(crate) name: &'a str,
    pub(crate) session: Option<Session>,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        match self.session.take() {
            Some(session) => self.sessions.put_back(self.name, session),
            None => self.sessions.remove(self.name),
        }
    }
}

/// What the launcher of a session said.
pub(crate) fn enforcement(sandboxed: bool, report: Option<&Captured>) -> Enforcement {
    match (sandboxed, report) {
        (false, _) => Enforcement::None,
        (true, None) => Enforcement::Unreported(None),
        (true, Some(report)) => Enforcement::from_report(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mark_on_a_line_of_its_own_ends_the_output() {
        assert_eq!(split_end(b"out\n\nM 7\n", "M"), Some((4, 7)));
        assert_eq!(split_end(b"\nM 0\n", "M"), Some((0, 0)));
        for other in ["", "M 7\n", "\nM 7", "\nM \n", "\nxM 7\n", "\nM 7\nmore\n", "\nM x\n"] {
            assert_eq!(split_end(other.as_bytes(), "M"), None, "{other:?}");
        }
    }
}
