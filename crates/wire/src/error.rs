//! What can be wrong with text that is to become, or claims to be, a message.

use thiserror::Error;

/// Text that cannot become a [`Fragment`](crate::Fragment).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The text is not exactly one JSON value (RFC 8259).
    #[error("read text as one JSON value")]
    NotJson(#[source] serde_json::Error),
    /// The text is JSON, but an object was needed.
    #[error("read text as a JSON object: found {found}")]
    NotAnObject {
        /// The JSON type that was found, for example `array`.
        found: &'static str,
    },
}

/// Coarse class of a [`WireError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// Not JSON at all.
    Syntax,
    /// JSON of another type than needed.
    Type,
}

impl WireError {
    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> WireErrorKind {
        match self {
            Self::NotJson(_) => WireErrorKind::Syntax,
            Self::NotAnObject { .. } => WireErrorKind::Type,
        }
    }
}

/// A line that is not a JSON-RPC message.
///
/// [`kind`](Self::kind) tells noise (a banner, a log line) from JSON that is not JSON-RPC.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ParseFault {
    /// The line is not UTF-8.
    #[error("read a line as UTF-8: bad byte at offset {offset}")]
    NotUtf8 {
        /// Offset of the first bad byte in the line.
        offset: usize,
    },
    /// The line is not JSON.
    #[error("read a line as JSON")]
    NotJson(#[source] serde_json::Error),
    /// The line is a JSON array: a JSON-RPC batch, which MCP removed in 2025-06-18.
    #[error("read a line as one message: it is a batch, which is not supported")]
    Batch,
    /// The line is JSON, but not a JSON-RPC 2.0 message.
    #[error("read a line as a JSON-RPC message: {reason}")]
    NotJsonRpc {
        /// The rule that is broken, for example `id is neither a string nor a number`.
        reason: &'static str,
    },
}

/// Coarse class of a [`ParseFault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseFaultKind {
    /// Not JSON or not UTF-8: to be skipped like a log line.
    Noise,
    /// JSON that is not a JSON-RPC message.
    NotJsonRpc,
}

impl ParseFault {
    /// The class of this fault.
    #[must_use]
    pub fn kind(&self) -> ParseFaultKind {
        match self {
            Self::NotUtf8 { .. } | Self::NotJson(_) => ParseFaultKind::Noise,
            Self::Batch | Self::NotJsonRpc { .. } => ParseFaultKind::NotJsonRpc,
        }
    }
}

/// A line longer than the reader's bound; the reader skips to the next line end by itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read a message: the line is longer than {limit} bytes")]
#[non_exhaustive]
pub struct LineTooLong {
    /// The bound in bytes that was passed.
    pub limit: usize,
    /// The first bytes of the line (at most 512), to find out which message was lost.
    pub prefix: Vec<u8>,
}

/// An event longer than the reader's bound; the reader skips to the next event by itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read an event: it is longer than {limit} bytes")]
#[non_exhaustive]
pub struct EventTooLong {
    /// The bound in bytes that was passed.
    pub limit: usize,
    /// The first bytes of its data (at most 512), to find out which message was lost.
    pub prefix: Vec<u8>,
}

/// A part of a message that does not have the shape the protocol gives it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("read {what}: {path} should be {expected}, found {found}")]
#[non_exhaustive]
pub struct ViewError {
    /// What was being read, for example `tool`.
    pub what: &'static str,
    /// Which member, for example `inputSchema`.
    pub path: &'static str,
    /// What the protocol wants there.
    pub expected: &'static str,
    /// The JSON type that was found, or `nothing`.
    pub found: &'static str,
    /// Name of the item when it could be read (a tool's `name`).
    pub item: Option<String>,
}
