//! The reasons of a failure on a server.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use plenipo_authority::AttachError;
use plenipo_process::{Exit, StartFault};
use plenipo_schema::{Mismatch, SchemaFault};
use plenipo_wire::param_headers::ValueFault;
use plenipo_wire::{ErrorObject, Fragment, LineTooLong, ViewError, protocol};
use rustix::io::Errno;
use thiserror::Error;

use super::input::ask_hint;
use super::{ErrorKind, HttpFault, InputFault, SkillFault, TaskFault};
use crate::text::shown;

/// Why something failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// No such program.
    #[error("program `{program}` was not found{}", searched_in(searched.as_deref()))]
    ProgramNotFound {
        /// As configured.
        program: String,
        /// The `PATH` that was searched; absent when the name has a slash.
        searched: Option<String>,
    },
    /// The program is there, the interpreter in its first line or its loader is not.
    #[error("program `{program}` is there, but the interpreter it names is not")]
    InterpreterMissing {
        /// Where it was found.
        program: String,
    },
    /// The working directory is missing.
    #[error("its working directory `{}` is not a directory", path.display())]
    WorkingDirectory {
        /// As configured.
        path: PathBuf,
    },
    /// The program exists and could not be started.
    #[error("program `{program}` could not be started")]
    Spawn {
        /// As configured.
        program: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The process is gone.
    #[error("the server {how}")]
    Exited {
        /// Code or signal.
        how: Exit,
    },
    /// The process lives, its stdout is closed.
    #[error("the server closed its output")]
    OutputClosed,
    /// The server was started again as often as it may be.
    #[error("it ended {restarts} times within {}, last because {last}", seconds(*window))]
    EndsTooOften {
        /// How many starts were used up.
        restarts: usize,
        /// Within which time.
        window: Duration,
        /// Why it ended last.
        last: String,
    },
    /// Reading or writing failed.
    #[error("the pipe to the server failed")]
    Pipe(#[source] io::Error),
    /// Something of HTTP.
    #[error(transparent)]
    Http(#[from] HttpFault),
    /// The connection was shut down on this side.
    #[error("the connection was shut down")]
    ShutDown,
    /// Silence during the start or a listing.
    #[error("no answer to `{method}` within {}", seconds(*limit))]
    NoAnswer {
        /// What was asked.
        method: &'static str,
        /// How long was waited.
        limit: Duration,
        /// The server writes `Content-Length` headers, as language servers do.
        language_server_framing: bool,
    },
    /// No revision in common.
    #[error("the server speaks no protocol revision that we do (it offers {})", offered.join(", "))]
    UnsupportedVersion {
        /// What the server offers.
        offered: Vec<String>,
    },
    /// The answer does not have the protocol's shape.
    #[error("bad answer to `{method}`")]
    BadAnswer {
        /// What was asked.
        method: &'static str,
        /// Which rule it breaks.
        #[source]
        source: ViewError,
    },
    /// A result of a kind we do not know, or did not ask for.
    #[error("the result is of type `{found}`, which is not a final answer")]
    ResultType {
        /// `resultType`.
        found: String,
    },
    /// The listing breaks a bound.
    #[error("{0}")]
    Listing(ListingFault),
    /// The peer answered with an error.
    #[error("{0}")]
    Peer(PeerError),
    /// The answer is over the limit.
    #[error("the answer is too long (`max_message_bytes`)")]
    TooLong(#[source] LineTooLong),
    /// The server does not read what it is sent.
    #[error("the server does not read its input: {waiting} bytes are waiting")]
    NotReading {
        /// How much.
        waiting: usize,
    },
    /// The call took too long.
    #[error("{}", timed_out(*limit, *total))]
    TimedOut {
        /// The limit reached.
        limit: Duration,
        /// The maximum that holds even with progress, not the idle limit.
        total: bool,
    },
    /// The caller cancelled.
    #[error("cancelled{}", reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default())]
    Cancelled {
        /// What the caller said.
        reason: Option<String>,
    },
    /// The server has no such tool; nothing was sent.
    #[error("the server has no such tool")]
    NoSuchTool {
        /// What may have been meant.
        nearest: Option<String>,
        /// Why a tool of that name was dropped from the list.
        dropped: Option<String>,
    },
    /// The tool is switched off by `enabled_tools` or `disabled_tools`; nothing was sent.
    #[error("the tool is disabled by the configuration")]
    ToolDisabled,
    /// The tool is no longer what it was when the call was prepared; nothing was sent.
    #[error("the tool changed after the call was prepared")]
    ToolChanged,
    /// Arguments have to be an object; nothing was sent.
    #[error("the arguments are not a JSON object")]
    ArgumentsNotObject,
    /// An argument that has to be a header as well cannot be one; nothing was sent.
    #[error("{0}")]
    ArgumentHeader(ValueFault),
    /// The rules want the call to be approved, and it was not; nothing was sent.
    #[error("{}", not_approved(*asked))]
    NotApproved {
        /// Somebody was asked and refused; else there was nobody to ask.
        asked: bool,
    },
    /// What the server asked for in return could not be answered.
    #[error("{0}")]
    Input(InputFault),
    /// The arguments do not match the tool's input schema; nothing was sent.
    #[error("the arguments do not match its schema: {0}")]
    Arguments(Mismatch),
    /// The arguments cannot be checked against the tool's input schema; nothing was sent.
    #[error("the arguments cannot be checked against its schema")]
    InputSchema(#[source] SchemaFault),
    /// The captured authority does not belong to this connection; nothing was sent.
    #[error("authority changed: it was captured for {captured}, the server's is {actual}")]
    AuthorityChanged {
        /// What was captured.
        captured: String,
        /// What is.
        actual: String,
    },
    /// `_meta` could not be built; nothing was sent.
    #[error("the call's `_meta` could not be built")]
    Attach(#[source] AttachError),
    /// The server does not say that it can; nothing was sent.
    #[error("the server does not offer `{capability}`")]
    NotOffered {
        /// Which capability, or which setting of an extension.
        capability: &'static str,
    },
    /// A task comes to nothing.
    #[error("{0}")]
    Task(TaskFault),
    /// A skill must not be used.
    #[error("{0}")]
    Skill(SkillFault),
}

impl From<StartFault> for Fault {
    fn from(fault: StartFault) -> Self {
        match fault {
            StartFault::ProgramNotFound { program, searched } => {
                Self::ProgramNotFound { program, searched }
            }
            StartFault::InterpreterMissing { program } => Self::InterpreterMissing { program },
            StartFault::WorkingDirectory { path } => Self::WorkingDirectory { path },
            StartFault::Spawn { program, source } => Self::Spawn { program, source },
            other => Self::Pipe(io::Error::other(other)),
        }
    }
}

/// Which bound a listing broke.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListingFault {
    /// A cursor came twice.
    #[error("the server repeats a page cursor")]
    RepeatedCursor,
    /// A cursor over 64 KiB.
    #[error("a page cursor of {bytes} bytes is over the limit of {limit}")]
    CursorTooLong {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Over `max_list_pages`.
    #[error("more than {limit} pages (`max_list_pages`)")]
    TooManyPages {
        /// The limit.
        limit: usize,
    },
    /// The server does not know the cursors that it gives, twice in a row.
    #[error("the server refuses its own page cursor")]
    CursorRefused,
    /// Over `max_list_items`.
    #[error("more than {limit} items (`max_list_items`)")]
    TooManyItems {
        /// The limit.
        limit: usize,
    },
    /// Over `max_tools`.
    #[error("more than {limit} tools (`max_tools`)")]
    TooManyTools {
        /// The limit.
        limit: usize,
    },
}

/// An error that the peer answered with (JSON-RPC 2.0 §5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerError {
    /// See [`protocol::error_code`].
    pub code: i64,
    /// The peer's text, as sent.
    pub message: String,
    /// Details, raw.
    pub data: Option<Fragment>,
}

impl PeerError {
    pub(crate) fn from_view(view: &ErrorObject<'_>) -> Self {
        Self {
            code: view.code,
            message: view.message.clone().into_owned(),
            data: view.data.map(Fragment::from_raw),
        }
    }

    /// Whether it may say that a resource is not there: the code of legacy servers, and that of
    /// modern ones, which wrong parameters have too.
    #[must_use]
    pub fn is_resource_missing(&self) -> bool {
        use protocol::error_code::{INVALID_PARAMS, RESOURCE_NOT_FOUND};
        matches!(self.code, RESOURCE_NOT_FOUND | INVALID_PARAMS)
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered with error {}", self.code)?;
        if let Some(name) = protocol::error_code::name(self.code) {
            write!(f, " ({name})")?;
        }
        match self.message.as_str() {
            "" => Ok(()),
            message => write!(f, ": {}", shown(message)),
        }
    }
}

impl Fault {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::ProgramNotFound { .. }
            | Self::InterpreterMissing { .. }
            | Self::WorkingDirectory { .. }
            | Self::Spawn { .. } => ErrorKind::Start,
            Self::Exited { .. }
            | Self::OutputClosed
            | Self::EndsTooOften { .. }
            | Self::Pipe(_)
            | Self::ShutDown
            | Self::NotReading { .. }
            | Self::NoAnswer { .. } => ErrorKind::Transport,
            Self::TooLong(_)
            | Self::UnsupportedVersion { .. }
            | Self::BadAnswer { .. }
            | Self::ResultType { .. }
            | Self::Listing(_)
            | Self::InputSchema(_)
            | Self::Peer(_) => ErrorKind::Protocol,
            Self::Http(fault) => fault.kind(),
            Self::Input(fault) => fault.kind(),
            Self::TimedOut { .. } => ErrorKind::Timeout,
            Self::Cancelled { .. } | Self::Task(TaskFault::Cancelled { .. }) => {
                ErrorKind::Cancelled
            }
            Self::Task(TaskFault::Record) => ErrorKind::Usage,
            Self::Task(_) => ErrorKind::Protocol,
            Self::NoSuchTool { .. }
            | Self::ArgumentsNotObject
            | Self::ArgumentHeader(_)
            | Self::NotOffered { .. }
            | Self::Arguments(_) => ErrorKind::Usage,
            Self::Skill(_)
            | Self::ToolDisabled
            | Self::ToolChanged
            | Self::NotApproved { .. }
            | Self::AuthorityChanged { .. }
            | Self::Attach(_) => ErrorKind::Refused,
        }
    }

    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::ProgramNotFound { searched: Some(_), .. } => {
                "give the absolute path as `command`, or set PATH in the server's `env`".to_owned()
            }
            Self::ProgramNotFound { .. } => "check the path in `command`".to_owned(),
            Self::InterpreterMissing { .. } => {
                "install the interpreter, or set PATH in the server's `env`".to_owned()
            }
            Self::WorkingDirectory { .. } => "create it, or change `cwd`".to_owned(),
            Self::Spawn { source, .. } => return not_spawned(source),
            Self::Exited { how } if how.code() == Some(127) => {
                "code 127 means that a command the server runs was not found: check PATH in its \
                 `env`"
                    .to_owned()
            }
            Self::Exited { .. } | Self::OutputClosed => {
                "its stderr may say why; of the environment it gets only an allow-list, so name \
                 what else it needs in `env_vars` or `env`"
                    .to_owned()
            }
            Self::EndsTooOften { .. } => {
                "mend the server; it is started again when it is next used, once the time is over"
                    .to_owned()
            }
            Self::Http(fault) => return fault.hint(),
            Self::Input(fault) => return fault.hint(),
            Self::Peer(error) => match error.code {
                protocol::error_code::MISSING_REQUIRED_CLIENT_CAPABILITY
                | protocol::error_code::URL_ELICITATION_REQUIRED => return Some(ask_hint()),
                _ => return None,
            },
            Self::UnsupportedVersion { .. } => "update the server".to_owned(),
            Self::Listing(ListingFault::TooManyTools { .. }) => "raise `max_tools`".to_owned(),
            Self::Listing(ListingFault::TooManyItems { .. }) => "raise `max_list_items`".to_owned(),
            Self::Listing(ListingFault::TooManyPages { .. }) => "raise `max_list_pages`".to_owned(),
            Self::BadAnswer { .. } | Self::ResultType { .. } | Self::Listing(_) => {
                "the server breaks the protocol: update it, or tell its author".to_owned()
            }
            Self::NotApproved { asked: false } => {
                "call it where somebody can be asked, or see `approval_mode` in the server's \
                 configuration"
                    .to_owned()
            }
            Self::NotReading { .. } => "the server is stuck: start it anew".to_owned(),
            Self::ToolChanged => "look at the tool again, then call it".to_owned(),
            Self::NoAnswer { language_server_framing: true, .. } => {
                "the server frames its messages with Content-Length headers; MCP over stdio wants \
                 one JSON text a line"
                    .to_owned()
            }
            Self::NoAnswer { .. } => {
                "raise `startup_timeout_sec` if the server is only slow".to_owned()
            }
            Self::TimedOut { total: true, .. } => {
                "raise `tool_total_timeout_sec` or `--timeout`".to_owned()
            }
            Self::TimedOut { .. } => "raise `tool_timeout_sec` or `--timeout`".to_owned(),
            Self::TooLong(_) => "raise `max_message_bytes` or `--max-message-size`".to_owned(),
            Self::NoSuchTool { dropped: Some(reason), .. } => {
                format!("its entry in the tool list was dropped: {reason}")
            }
            Self::NoSuchTool { nearest: Some(nearest), .. } => {
                format!("did you mean `{}`?", shown(nearest))
            }
            Self::Arguments(Mismatch { member: Some(member), .. }) => {
                format!("correct the argument `{}`", shown(member))
            }
            Self::InputSchema(_) => {
                "the server's author has to correct the schema; a call without checks sends the \
                 arguments as they are"
                    .to_owned()
            }
            Self::ToolDisabled => "see `enabled_tools` and `disabled_tools`".to_owned(),
            _ => return None,
        })
    }

    /// The same end of a connection, for one more of the calls it fails.
    pub(crate) fn repeat(&self) -> Self {
        match self {
            Self::Exited { how } => Self::Exited { how: *how },
            Self::OutputClosed => Self::OutputClosed,
            Self::AuthorityChanged { captured, actual } => {
                Self::AuthorityChanged { captured: captured.clone(), actual: actual.clone() }
            }
            _ => Self::ShutDown,
        }
    }

    /// Whether what the server wrote to stderr may explain it.
    pub(crate) fn concerns_process(&self) -> bool {
        matches!(
            self,
            Self::Exited { .. } | Self::OutputClosed | Self::Pipe(_) | Self::NoAnswer { .. }
        )
    }
}

fn searched_in(path: Option<&str>) -> String {
    path.map(|path| format!(" in PATH `{path}`")).unwrap_or_default()
}

fn not_spawned(source: &io::Error) -> Option<String> {
    let hint = match Errno::from_io_error(source)? {
        Errno::ACCESS | Errno::NOEXEC => "check that the file is executable",
        Errno::MFILE => "raise `ulimit -n`, the limit of open files",
        Errno::AGAIN => "end some processes, or raise `ulimit -u`",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn not_approved(asked: bool) -> &'static str {
    match asked {
        true => "the call was not approved",
        false => "the call needs approval, and nobody is there to give it",
    }
}

fn timed_out(limit: Duration, total: bool) -> String {
    if total {
        return format!("no end within {}, whatever its progress", seconds(limit));
    }
    format!("no answer within {}", seconds(limit))
}

/// `2 s`, `0.25 s`.
fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
