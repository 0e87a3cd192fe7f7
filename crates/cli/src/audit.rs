//! The audit file: one line of JSON for every call, when `audit.file` is set.
//!
//! It says who was called under which authority and how it ended: no arguments, no results, no secrets. A call that
//! cannot be recorded is not made.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use crate::failure::{Code, Failure};

/// Only its owner reads it.
const MODE: u32 = 0o600;

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
            let opened = OpenOptions::new().create(true).append(true).mode(MODE).open(path);
            opened.map_err(|error| {
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
        let failed = |error: std::io::Error| {
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

fn timestamp(since_begun: Duration) -> String {
    let begun = SystemTime::now().checked_sub(since_begun).unwrap_or(SystemTime::UNIX_EPOCH);
    humantime::format_rfc3339_millis(begun).to_string()
}
