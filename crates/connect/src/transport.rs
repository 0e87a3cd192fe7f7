//! How bytes get to a server and back.

pub mod http;
pub mod stdio;

use self::http::HttpEndpoint;
use self::stdio::StdioCommand;
use crate::config;
use crate::error::HttpFault;

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

impl TryFrom<config::Endpoint> for Endpoint {
    type Error = HttpFault;

    /// What a configuration describes.
    fn try_from(endpoint: config::Endpoint) -> Result<Self, HttpFault> {
        Ok(match endpoint {
            config::Endpoint::Stdio(command) => command.into(),
            config::Endpoint::Http(endpoint) => HttpEndpoint::try_from(endpoint)?.into(),
        })
    }
}

impl TryFrom<config::HttpEndpoint> for HttpEndpoint {
    type Error = HttpFault;

    fn try_from(configured: config::HttpEndpoint) -> Result<Self, HttpFault> {
        let mut endpoint = Self::new(&configured.url)?;
        for (name, value) in &configured.headers {
            endpoint.header(name, value)?;
        }
        if let Some(helper) = configured.headers_helper {
            endpoint.headers_helper(helper);
        }
        Ok(endpoint)
    }
}
