//! How bytes get to a server and back.

pub mod http;
pub mod stdio;

use self::http::HttpEndpoint;
use self::stdio::StdioCommand;

/// How a server is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Endpoint {
    /// A program to start on this machine.
    Stdio(StdioCommand),
    /// A URL.
    Http(Box<HttpEndpoint>),
}

impl From<StdioCommand> for Endpoint {
    fn from(command: StdioCommand) -> Self {
        Self::Stdio(command)
    }
}

impl From<HttpEndpoint> for Endpoint {
    fn from(endpoint: HttpEndpoint) -> Self {
        Self::Http(Box::new(endpoint))
    }
}
