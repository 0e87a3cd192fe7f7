//! One HTTP request to its response head: headers, credentials, redirections.

use std::sync::PoisonError;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use plenipo_wire::protocol::{MODERN_VERSION, methods};

use super::body::let_end;
use super::headers;
use super::helper::Made;
use super::link::{HttpLink, is_repeatable};
use super::session::Session;
use super::target::Target;
use crate::error::HttpFault;

const REDIRECTIONS: usize = 5;
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
    pub(super) body: Bytes,
}

impl HttpLink {
    /// Posts one message.
    pub(super) async fn post(
        &self,
        session: &Session,
        message: Message<'_>,
    ) -> Result<Response<Incoming>, HttpFault> {
        let Message { method, name, ref body } = message;
        let probes = method == methods::DISCOVER;
        let write = |headers: &mut HeaderMap| {
            headers.insert(header::ACCEPT, ACCEPT_BOTH);
            headers.insert(header::CONTENT_TYPE, JSON);
            if probes {
                headers.insert(headers::VERSION, HeaderValue::from_static(MODERN_VERSION));
            }
            if probes || session.is_modern() {
                headers.insert(headers::METHOD, headers::encoded(method));
                if let Some(name) = name {
                    headers.insert(headers::NAME, headers::encoded(name));
                }
            }
        };
        match self.deliver(Method::POST, session, write, body.clone()).await {
            // A kept connection that the server was just closing.
            Err(HttpFault::Broken(_)) if is_repeatable(method) => {
                self.deliver(Method::POST, session, write, body.clone()).await
            }
            response => response,
        }
    }

    /// Opens an event stream, after the event `last` if there is one.
    pub(super) async fn open_stream(
        &self,
        session: &Session,
        last: Option<&str>,
    ) -> Result<Response<Incoming>, HttpFault> {
        let last = last.and_then(|last| HeaderValue::from_str(last).ok());
        let write = |headers: &mut HeaderMap| {
            headers.insert(header::ACCEPT, ACCEPT_STREAM);
            if let Some(last) = &last {
                headers.insert(headers::LAST_EVENT_ID, last.clone());
            }
        };
        self.deliver(Method::GET, session, write, Bytes::new()).await
    }

    /// Sends with the credentials; those of a helper are renewed once when they are refused.
    pub(super) async fn deliver(
        &self,
        method: Method,
        session: &Session,
        write: impl Fn(&mut HeaderMap),
        body: Bytes,
    ) -> Result<Response<Incoming>, HttpFault> {
        let compose = |made: Option<&Made>| {
            let mut headers = HeaderMap::with_capacity(16);
            write(&mut headers);
            session.write(&mut headers);
            for (name, value) in &self.own {
                headers.insert(name.clone(), value.clone());
            }
            if let Some(made) = made {
                self.add_made(&mut headers, made);
            }
            headers
        };
        let Some(helper) = &self.helper else {
            return self.follow(&method, || compose(None), body).await;
        };
        let made = helper.headers().await?;
        let response = self.follow(&method, || compose(Some(&made)), body.clone()).await?;
        if !is_refusal(&response) {
            return Ok(response);
        }
        match helper.renew(made.number).await? {
            None => Ok(response),
            Some(renewed) => {
                let_end(response.into_body());
                self.follow(&method, || compose(Some(&renewed)), body).await
            }
        }
    }

    /// The configuration's own headers win.
    fn add_made(&self, headers: &mut HeaderMap, made: &Made) {
        self.secrets().extend(&made.secrets);
        for (name, value) in &made.headers {
            if !self.own.contains_key(name) || name == header::USER_AGENT {
                headers.insert(name.clone(), value.clone());
            }
        }
    }

    /// Sends, and sends again to where the same origin redirects.
    async fn follow(
        &self,
        method: &Method,
        headers: impl Fn() -> HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, HttpFault> {
        let mut target = self.target();
        for _ in 0..=REDIRECTIONS {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = target.uri().clone();
            *request.headers_mut() = headers();
            let response = self.client.send(&target, request).await?;
            let Some(next) = redirection(&target, method, &response)? else { return Ok(response) };
            let status = response.status();
            let_end(response.into_body());
            if matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT) {
                *self.target.lock().unwrap_or_else(PoisonError::into_inner) = next.clone();
            }
            target = next;
        }
        Err(HttpFault::Redirect { to: target.to_string(), reason: "after 5 other redirections" })
    }
}

/// Where a response sends its request, when that may be followed. The method and body stay what
/// they are, as no message makes sense otherwise.
fn redirection(
    target: &Target,
    method: &Method,
    response: &Response<Incoming>,
) -> Result<Option<Target>, HttpFault> {
    let status = response.status();
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(header::LOCATION);
    let Some(location) = location.and_then(|location| location.to_str().ok()) else {
        return Ok(None);
    };
    let refused = |to: String, reason| Err(HttpFault::Redirect { to, reason });
    let Ok(next) = target.join(location) else {
        return refused(
            crate::text::shown(&plenipo_redact::redacted_url(location)),
            "which cannot be followed",
        );
    };
    if !next.is_same_origin(target) {
        return refused(next.to_string(), "which is another origin");
    }
    if status == StatusCode::SEE_OTHER && method != Method::GET {
        return refused(next.to_string(), "asking for a GET instead of a POST");
    }
    Ok(Some(next))
}

/// The credentials are refused; missing scopes are another matter, which new ones do not mend.
fn is_refusal(response: &Response<Incoming>) -> bool {
    match response.status() {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => !challenge(response.headers()).contains("insufficient_scope"),
        _ => false,
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
