//! What can go wrong between a configuration file and an answer.

mod fault;
mod http;
mod input;
mod request;
mod skill;
mod task;

use std::error::Error;
use std::fmt;

pub(crate) use self::http::REDIRECTED_TOO_OFTEN;
pub use self::http::{HttpCause, HttpFault};
pub use fault::{Fault, ListingFault, PeerError};
pub use input::InputFault;
pub use plenipo_authorizer::ErrorKind;
pub use plenipo_schema::{Mismatch, SchemaFault};
pub use skill::SkillFault;
pub use task::TaskFault;

use crate::server_name::ServerName;

/// A failure on one server, with what the server last wrote to stderr.
///
/// Reads after "failed to". What a person can do about it is in [`hint`](Self::hint).
#[derive(Debug)]
pub struct ConnectError {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    server: ServerName,
    operation: Operation,
    fault: Fault,
    stderr_tail: Vec<String>,
}

/// What was being done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Starting the process and agreeing on a revision.
    Start,
    /// `tools/list`.
    List,
    /// Subscribing to changes.
    Subscribe,
    /// `tools/call` of the named tool.
    Call {
        /// As the server spells it.
        tool: String,
    },
    /// Another request.
    Request {
        /// For example `resources/read`.
        method: &'static str,
        /// What it is about: a URI, a name, an id.
        subject: Option<String>,
    },
}

impl ConnectError {
    pub(crate) fn new(
        server: &ServerName,
        operation: Operation,
        fault: Fault,
        stderr_tail: Vec<String>,
    ) -> Self {
        let server = server.clone();
        Self { inner: Box::new(Inner { server, operation, fault, stderr_tail }) }
    }

    /// Which server.
    #[must_use]
    pub fn server(&self) -> &ServerName {
        &self.inner.server
    }

    /// What was being done.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        &self.inner.operation
    }

    /// What went wrong.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.inner.fault
    }

    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.fault.kind()
    }

    /// The last lines the server wrote to stderr (at most 64 KiB), oldest first; empty where they
    /// cannot explain the failure.
    #[must_use]
    pub fn stderr_tail(&self) -> &[String] {
        &self.inner.stderr_tail
    }

    /// What to try, as a sentence.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.inner.fault.hint()
    }

    /// The scopes that a sign-in has to ask for, so that this would not fail: those that are held,
    /// and those that the server wants.
    #[must_use]
    pub fn wanted_scopes(&self) -> Option<&plenipo_oauth::Scopes> {
        match &self.inner.fault {
            Fault::Http(HttpFault::NotAuthorized(error)) => error.scopes(),
            _ => None,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { server, operation, fault, stderr_tail } = &*self.inner;
        match operation {
            Operation::Start => write!(f, "start server `{server}`: {fault}")?,
            Operation::List => write!(f, "list the tools of server `{server}`: {fault}")?,
            Operation::Subscribe => {
                write!(f, "subscribe to changes of server `{server}`: {fault}")?;
            }
            Operation::Call { tool } => {
                write!(
                    f,
                    "call tool `{}` of server `{server}`: {fault}",
                    crate::text::shown(tool)
                )?;
            }
            Operation::Request { method, subject } => {
                let subject = subject.as_deref().unwrap_or_default();
                let doing = request::doing(method, &crate::text::shown(subject));
                write!(f, "{doing} of server `{server}`: {fault}")?;
            }
        }
        match stderr_tail.iter().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => write!(f, "; last line on stderr: {}", crate::text::shown(line)),
            None => Ok(()),
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner.fault.source()
    }
}
