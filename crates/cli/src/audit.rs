//! The audit file: one line of JSON for every call, when `audit.file` is set.
//!
//! It says who was called under which authority and how it ended: no arguments, no results, no secrets. A call that
//! cannot be recorded is not made.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use serde::Serialize;

use crate::failure::{Code, Failure};

/// Only its owner reads it.
const MODE: u32 = 0o600;
/// Room for a line, in bytes, that has to be there before the call is made.
const ROOM: u64 = 16 * 1024;

/// An open audit file and the call that is to be recorded.
pub(crate) struct Audit {
    file: Option<File>,
    begun: Instant,
}

#[derive(Serialize)]
struct Record<'a> {
    /// RFC 3339, UTC, when the call was accepted or refused.
    time: String,
    server: &'a str,
    tool: &'a str,
    /// SHA-256 over the captured authority, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    authority: Option<String>,
    decision: &'a str,
    /// Who approved the call, where the server has rules for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'static str>,
    outcome: &'a str,
    duration_ms: u128,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    Answered,
    ToolError,
    Failed(Code),
}

impl Audit {
    /// Opens the file for appending; without one nothing is recorded.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let file = path.map(|path| {
            open(path).map_err(|error| {
                let message = format!("failed to open the audit file {}: {error}", path.display());
                Failure::new(Code::Refused, message).with_hint(
                    "calls are recorded there or not made; see `audit.file` in the configuration",
                )
            })
        });
        Ok(Self { file: file.transpose()?, begun: Instant::now() })
    }

    /// The call is made once more, from now on.
    pub(crate) fn begin_again(&mut self) {
        self.begun = Instant::now();
    }

    /// Records one call.
    pub(crate) fn record(
        &mut self,
        (server, tool): (&str, &str),
        authority: Option<String>,
        approval: Option<&'static str>,
        ending: Ending,
    ) -> Result<(), Failure> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let elapsed = self.begun.elapsed();
        let record = Record {
            time: timestamp(elapsed),
            server,
            tool,
            authority,
            decision: ending.decision(),
            approval,
            outcome: ending.outcome(),
            duration_ms: elapsed.as_millis(),
        };
        let failed = |error: io::Error| {
            Failure::new(Code::Refused, format!("failed to write to the audit file: {error}"))
        };
        let mut line = serde_json::to_vec(&record).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        // One write of one line: lines of several processes do not mix.
        file.write_all(&line).map_err(failed)
    }
}

impl Ending {
    fn decision(self) -> &'static str {
        match self {
            Self::Failed(Code::Refused | Code::Usage) => "refused",
            _ => "allowed",
        }
    }

    fn outcome(self) -> &'static str {
        match self {
            Self::Answered => "ok",
            Self::ToolError | Self::Failed(Code::ToolError) => "tool-error",
            Self::Failed(Code::Usage) => "usage",
            Self::Failed(Code::Transport) => "transport",
            Self::Failed(Code::Protocol) => "protocol",
            Self::Failed(Code::SignIn) => "sign-in",
            Self::Failed(Code::Refused) => "refused",
            Self::Failed(Code::Timeout) => "timeout",
            Self::Failed(Code::HungUp | Code::Interrupted | Code::Terminated) => "interrupted",
        }
    }
}

/// A plain file, with room for one more line: a pipe that nobody reads would hold up the call, and a full disk would leave
/// one that was made without its line.
fn open(path: &Path) -> io::Result<File> {
    let not_plain = || io::Error::other("it is no plain file");
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(MODE);
    options.custom_flags(i32::try_from(flags.bits()).map_err(io::Error::other)?);
    let file = options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        // What a pipe without a reader, or a socket, answers.
        Some(Errno::NXIO) => not_plain(),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_plain());
    }
    match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, metadata.len(), ROOM) {
        // Not every file system can say so beforehand.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(file),
        Err(error) => Err(error.into()),
    }
}

fn timestamp(since_begun: Duration) -> String {
    let begun = SystemTime::now().checked_sub(since_begun).unwrap_or(SystemTime::UNIX_EPOCH);
    humantime::format_rfc3339_millis(begun).to_string()
}
