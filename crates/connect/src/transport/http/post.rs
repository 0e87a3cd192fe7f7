//! What each kind of HTTP request carries beside credentials.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use plenipo_authorizer::Operation;
use plenipo_http::Received;
use plenipo_wire::protocol::{MODERN_VERSION, methods};

use super::delivery::Delivery;
use super::headers;
use super::link::{HttpLink, is_repeatable};
use super::session::Session;
use crate::error::HttpFault;

const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const ACCEPT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// One JSON-RPC message and what its headers repeat of it.
#[derive(Debug, Clone)]
pub(super) struct Message<'a> {
    /// Empty for a response.
    pub(super) method: &'a str,
    /// The tool, prompt or resource it is about.
    pub(super) name: Option<&'a str>,
    pub(super) mirrored: &'a [(HeaderName, HeaderValue)],
    pub(super) body: Bytes,
}

impl HttpLink {
    /// Posts one message.
    pub(super) async fn post(
        &self,
        session: &Session,
        message: Message<'_>,
    ) -> Result<Response<Received>, HttpFault> {
        let Message { method, name, mirrored, body } = message;
        let probes = method == methods::DISCOVER;
        let base = session.posted(|| {
            let mut base = self.base(session);
            base.insert(header::ACCEPT, ACCEPT_BOTH);
            base.insert(header::CONTENT_TYPE, JSON);
            base
        });
        let mut own = Vec::new();
        if probes {
            own.push((headers::VERSION, HeaderValue::from_static(MODERN_VERSION)));
        }
        if probes || session.is_modern() {
            own.push((headers::METHOD, headers::encoded(method)));
            own.extend(name.map(|name| (headers::NAME, headers::encoded(name))));
            own.extend_from_slice(mirrored);
        }
        let operation = Operation::new(method, name);
        let delivery = Delivery { method: Method::POST, operation, base, own: &own, body };
        match self.deliver(&delivery).await {
            // A kept connection that the server was just closing.
            Err(HttpFault::Broken(_)) if is_repeatable(method) => self.deliver(&delivery).await,
            response => response,
        }
    }

    /// Opens an event stream, after the event `last` if there is one.
    pub(super) async fn open_stream(
        &self,
        session: &Session,
        last: Option<&str>,
    ) -> Result<Response<Received>, HttpFault> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, ACCEPT_STREAM);
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            headers.insert(headers::LAST_EVENT_ID, last);
        }
        self.bodiless(Method::GET, session, headers).await
    }

    /// Sends a request that carries no message.
    pub(super) async fn bodiless(
        &self,
        method: Method,
        session: &Session,
        headers: HeaderMap,
    ) -> Result<Response<Received>, HttpFault> {
        let mut base = self.base(session);
        base.extend(headers);
        let (operation, body) = (Operation::default(), Bytes::new());
        self.deliver(&Delivery { method, operation, base: &base, own: &[], body }).await
    }

    /// The session's headers and the configured ones.
    fn base(&self, session: &Session) -> HeaderMap {
        let mut base = HeaderMap::with_capacity(16);
        // HTTP/2, which is spoken over TLS only, names the host elsewhere.
        if !self.configured.is_tls() {
            base.insert(header::HOST, self.configured.host_header().clone());
        }
        session.write(&mut base);
        for (name, value) in &self.own {
            base.insert(name.clone(), value.clone());
        }
        base
    }
}

/// All `WWW-Authenticate` headers as one text; empty when there is none.
pub(super) fn challenge(headers: &HeaderMap) -> String {
    let all = headers.get_all(header::WWW_AUTHENTICATE).iter();
    let texts: Vec<_> = all.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    texts.join(", ")
}

/// The fault of a status alone, if it is one whatever was sent.
pub(super) fn status_fault(status: StatusCode) -> Option<HttpFault> {
    let fault = match status.as_u16() {
        status @ (401 | 403) => return Some(HttpFault::SignInNeeded { status, challenge: None }),
        status => HttpFault::Status { status, preview: String::new() },
    };
    Some(fault).filter(HttpFault::is_transient)
}
