//! What happens on a connection beside its answers, offered to the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

use plenipo_wire::RawValue;

use crate::approval::ApprovalDecision;
use crate::server_name::ServerName;

/// Receives events. Called on the task that reads from the server: return quickly, never block. A panic
/// in it is caught: the event is lost, the connection is not.
pub trait Observer: Send + Sync {
    /// One event.
    fn event(&self, event: &Event<'_>);
}

/// What happened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Something a person should know; each kind of warning comes once per connection.
    Warning {
        /// Whose connection.
        server: &'a ServerName,
        /// One sentence without control characters.
        text: &'a str,
    },
    /// A line the server wrote to stderr, control characters replaced. Never a failure by itself.
    Stderr {
        /// Whose.
        server: &'a ServerName,
        /// The line, at most 8 KiB.
        line: &'a str,
    },
    /// `notifications/message`: the server's log.
    Log {
        /// Whose.
        server: &'a ServerName,
        /// The notification's parameters, raw.
        params: &'a RawValue,
    },
    /// Whether a call may be made, and who says so. Comes before anything of the call is sent.
    Approval {
        /// Whose tool.
        server: &'a ServerName,
        /// As the server spells it.
        tool: &'a str,
        /// The decision.
        decision: ApprovalDecision,
    },
    /// The server's tool list changed; the next use lists again. Told once until then.
    ToolsChanged {
        /// Whose.
        server: &'a ServerName,
    },
    /// The server's prompts changed; told once until they are listed again.
    PromptsChanged {
        /// Whose.
        server: &'a ServerName,
    },
    /// The server's list of resources or templates changed; told once until it is listed again.
    ResourcesChanged {
        /// Whose.
        server: &'a ServerName,
    },
    /// A resource that was subscribed to changed.
    ResourceUpdated {
        /// Whose.
        server: &'a ServerName,
        /// Which; untrusted text.
        uri: &'a str,
    },
    /// A server that had ended was started again.
    Restarted {
        /// Which.
        server: &'a ServerName,
        /// The connection that holds from now on, counted from 1.
        generation: u64,
    },
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: &Event<'_>) {}
}

/// Tells the host. Where that panics, the panic hook has said so; what else is under way on the connection is not
/// the observer's to end.
pub(crate) fn tell(observer: &dyn Observer, event: &Event<'_>) {
    call_back(|| observer.event(event));
}

/// Runs code of the host's on a task of ours.
pub(crate) fn call_back(code: impl FnOnce()) {
    let _reported = catch_unwind(AssertUnwindSafe(code));
}
