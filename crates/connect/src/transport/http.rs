//! A server behind a URL: Streamable HTTP, both eras.
//!
//! One JSON-RPC message goes out per POST; the answer is a JSON body or an event stream. A legacy
//! server may keep a session and send more on a GET stream; a modern one has neither. Nothing of
//! HTTP or TLS is set up before the first request. Over TLS a server that offers HTTP/2 is spoken to in
//! it, all requests on one connection; else connections of HTTP/1.1 are kept.
//!
//! | bound, beside those of [`plenipo_http`] | value |
//! |---|---|
//! | body, event | `max_message_bytes` of the connection |
//! | body of an error | 64 KiB; 8 KiB and 200 characters of it are kept to show |
//! | redirections | 5, same origin only |
//! | headers helper | 10 s, 64 KiB |

mod delivery;
mod exchange;
mod headers;
mod helper;
mod link;
mod post;
mod principal;
mod server_stream;
mod session;

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
pub use plenipo_authorizer::{
    Authorization, AuthorizeError, AuthorizeRequest, Authorizer, Authorizing, Challenge, Operation,
    Verdict, Withdrawal,
};
pub use plenipo_http::{HttpClient, HttpClientOptions, ProxyRules};
use plenipo_http::{Secrets, Target};
use plenipo_redact::Secret;

pub(crate) use exchange::Question;
pub(crate) use headers::encoded;
pub(crate) use link::HttpLink;
pub(crate) use principal::era_key;
pub(crate) use session::Protocol;

use super::stdio::StdioCommand;
use crate::error::HttpFault;

/// Where a server is and what is sent with every request: plain values, nothing read from the
/// environment. Header values and the URL's query are never shown.
#[derive(Clone)]
pub struct HttpEndpoint {
    pub(crate) target: Target,
    pub(crate) headers: HeaderMap,
    pub(crate) secrets: Secrets,
    pub(crate) helper: Option<StdioCommand>,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) server_stream: bool,
}

impl HttpEndpoint {
    /// An endpoint without further headers.
    ///
    /// # Errors
    /// [`HttpFault::Url`] unless `url` is an absolute `http` or `https` URL without user information.
    pub fn new(url: &str) -> Result<Self, HttpFault> {
        Ok(Self {
            target: Target::parse(url)?,
            headers: HeaderMap::new(),
            secrets: Secrets::default(),
            helper: None,
            authorizer: None,
            server_stream: true,
        })
    }

    /// Sends a header with every request; a header set twice has the later value.
    ///
    /// # Errors
    /// [`HttpFault::Header`] when the name or value is no header's, or the name is one that HTTP or
    /// MCP sets itself.
    pub fn header(&mut self, name: &str, value: &Secret<String>) -> Result<&mut Self, HttpFault> {
        let (name, value) = headers::checked(name, value.expose())?;
        self.set(name, value);
        Ok(self)
    }

    /// Sends `Authorization: Bearer TOKEN` (RFC 6750 §2.1) instead of any other `Authorization`.
    ///
    /// # Errors
    /// [`HttpFault::Header`] when the token is empty or has characters no header may have.
    pub fn bearer(&mut self, token: &Secret<String>) -> Result<&mut Self, HttpFault> {
        let fault = |reason| HttpFault::Header { name: "authorization".to_owned(), reason };
        if token.expose().trim().is_empty() {
            return Err(fault("has an empty token"));
        }
        let value = format!("Bearer {}", token.expose().trim());
        let value = HeaderValue::from_str(&value);
        let value = value.map_err(|_| fault("has a token with characters no header may have"))?;
        self.set(header::AUTHORIZATION, value);
        Ok(self)
    }

    /// A program, run without a shell, that prints a JSON object of headers; its environment is
    /// `command`'s. Headers set here win over its. It runs before the first request, and once more
    /// after a 401 or 403.
    pub fn headers_helper(&mut self, command: StdioCommand) -> &mut Self {
        self.helper = Some(command);
        self
    }

    /// Who gives the credentials of each request, instead of headers that stay the same; see
    /// [`Authorizer`]. Default: nobody.
    pub fn authorizer(&mut self, authorizer: Arc<dyn Authorizer>) -> &mut Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// Whether to keep a GET stream open for what a legacy server says by itself, when it says that
    /// its tool list may change. Default: yes. A program that makes one call has no use for it.
    pub fn server_stream(&mut self, wanted: bool) -> &mut Self {
        self.server_stream = wanted;
        self
    }

    /// The URL, with its query.
    #[must_use]
    pub fn url(&self) -> &http::Uri {
        self.target.uri()
    }

    /// The URL, fit to show.
    #[must_use]
    pub fn shown_url(&self) -> String {
        self.target.to_string()
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        self.target.origin()
    }

    fn set(&mut self, name: HeaderName, mut value: HeaderValue) {
        self.secrets.add(&name, &value);
        value.set_sensitive(true);
        self.headers.insert(name, value);
    }
}

impl fmt::Debug for HttpEndpoint {
    /// Names of headers, never their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        f.debug_struct("HttpEndpoint")
            .field("url", &self.shown_url())
            .field("headers", &names)
            .field("helper", &self.helper)
            .field("authorizer", &self.authorizer)
            .field("server_stream", &self.server_stream)
            .finish()
    }
}
