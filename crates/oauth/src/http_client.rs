//! HTTP as a function from request to response, and the few ways in which flows use it.
//!
//! The flows of this crate do no I/O: they build [`http::Request`]s, hand them to an [`HttpClient`]
//! and read [`http::Response`]s. The same code serves asynchronous programs, which await a flow, and
//! blocking ones, whose client's futures are ready at once and who use [`run_blocking`].

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use plenipo_redact::Secret;

use crate::address::AddressPolicy;
use crate::error::{Document, DocumentFault, OAuthError, TransportFault};
use crate::json::Json;
use crate::url::EndpointUrl;

/// The largest body that is read of any document, in bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// The time for one request and its response.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Redirections of one document.
const REDIRECTIONS: usize = 5;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// One request, and the limits it is made within. `Debug` shows neither body nor secret headers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutgoingRequest {
    /// What is sent.
    pub message: Request<Secret<Vec<u8>>>,
    /// Addresses that may be connected to.
    pub addresses: AddressPolicy,
    /// The largest body of the response. A longer one is [`TransportFault::TooLarge`].
    pub max_body_bytes: usize,
    /// For all of it: resolving, connecting, sending, reading.
    pub timeout: Duration,
}

impl OutgoingRequest {
    /// With the usual limits.
    #[must_use]
    pub fn new(message: Request<Secret<Vec<u8>>>, addresses: AddressPolicy) -> Self {
        Self { message, addresses, max_body_bytes: MAX_BODY_BYTES, timeout: TIMEOUT }
    }
}

/// A response as it came, its body read whole.
pub type IncomingResponse = Response<Secret<Vec<u8>>>;

/// What [`HttpClient::send`] returns.
pub type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<IncomingResponse, TransportFault>> + Send + 'a>>;

/// Makes one HTTP exchange, and tells the time.
///
/// An implementation follows no redirection, adds no credentials or cookies, resolves the host,
/// asks [`AddressPolicy::admits`] about every address before it connects, and holds the limits.
pub trait HttpClient: Send + Sync {
    /// Sends a request and reads its response.
    fn send(&self, request: OutgoingRequest) -> Answer<'_>;

    /// The time, for the claims of JWTs.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Runs a flow with a client whose futures are ready at once. `None` if one was not.
pub fn run_blocking<T>(flow: impl Future<Output = T>) -> Option<T> {
    match pin!(flow).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A client, and the addresses it may connect to on behalf of one server.
#[derive(Clone, Copy)]
pub struct Http<'a> {
    client: &'a dyn HttpClient,
    addresses: AddressPolicy,
}

/// A document that was fetched, or that is not there.
pub(crate) enum Fetched {
    Found(Json),
    /// Status 4xx: nothing is published at that address.
    Absent,
}

impl<'a> Http<'a> {
    /// Uses `client` within `addresses`.
    #[must_use]
    pub fn new(client: &'a dyn HttpClient, addresses: AddressPolicy) -> Self {
        Self { client, addresses }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.client.now()
    }

    /// Gets a JSON document, following redirections inside of its origin.
    pub(crate) async fn get(
        &self,
        document: Document,
        url: &EndpointUrl,
    ) -> Result<Fetched, OAuthError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTIONS {
            let mut message = Request::new(Secret::new(Vec::new()));
            *message.uri_mut() = url.uri().clone();
            message.headers_mut().insert(header::ACCEPT, JSON);
            let response = self.exchange(document, &url, message).await?;
            match response.status() {
                status if status.is_redirection() => {
                    url = redirection(document, &url, &response)?;
                }
                StatusCode::OK => return Json::read(document, &url, &response).map(Fetched::Found),
                status if is_absent(status) => return Ok(Fetched::Absent),
                status => {
                    let fault = DocumentFault::Status { status: status.as_u16() };
                    return Err(OAuthError::document(document, &url, fault));
                }
            }
        }
        let (from, to) = (url.to_string(), url.to_string());
        let reason = "after 5 other redirections";
        Err(OAuthError::Redirect { document, url: from, to, reason })
    }

    /// Posts a form. A redirection is an error: what was sent must not go anywhere else.
    pub(crate) async fn post_form(
        &self,
        document: Document,
        url: &EndpointUrl,
        headers: Vec<(http::HeaderName, HeaderValue)>,
        form: Secret<String>,
    ) -> Result<IncomingResponse, OAuthError> {
        let mut message = Request::new(form.map(String::into_bytes));
        message.headers_mut().insert(header::CONTENT_TYPE, FORM);
        message.headers_mut().extend(headers);
        self.post(document, url, message).await
    }

    /// Posts a JSON document.
    pub(crate) async fn post_json(
        &self,
        document: Document,
        url: &EndpointUrl,
        body: Vec<u8>,
    ) -> Result<IncomingResponse, OAuthError> {
        let mut message = Request::new(Secret::new(body));
        message.headers_mut().insert(header::CONTENT_TYPE, JSON);
        self.post(document, url, message).await
    }

    async fn post(
        &self,
        document: Document,
        url: &EndpointUrl,
        mut message: Request<Secret<Vec<u8>>>,
    ) -> Result<IncomingResponse, OAuthError> {
        *message.method_mut() = Method::POST;
        *message.uri_mut() = url.uri().clone();
        // Some answer with a form unless JSON is asked for.
        message.headers_mut().insert(header::ACCEPT, JSON);
        let response = self.exchange(document, url, message).await?;
        if response.status().is_redirection() {
            let to = location(&response).unwrap_or_default();
            let (url, to) = (url.to_string(), crate::text::shown_url(to));
            let reason = "which would take a secret elsewhere";
            return Err(OAuthError::Redirect { document, url, to, reason });
        }
        Ok(response)
    }

    async fn exchange(
        &self,
        document: Document,
        url: &EndpointUrl,
        message: Request<Secret<Vec<u8>>>,
    ) -> Result<IncomingResponse, OAuthError> {
        let request = OutgoingRequest::new(message, self.addresses);
        let unreachable =
            |source| OAuthError::Unreachable { document, url: url.to_string(), source };
        self.addresses.admits_literal(url.host()).map_err(unreachable)?;
        let response = self.client.send(request).await.map_err(unreachable)?;
        match response.body().expose().len() > MAX_BODY_BYTES {
            true => Err(unreachable(TransportFault::TooLarge { limit: MAX_BODY_BYTES })),
            false => Ok(response),
        }
    }
}

/// Where a redirection leads, when it may be followed: the same origin only.
fn redirection(
    document: Document,
    url: &EndpointUrl,
    response: &IncomingResponse,
) -> Result<EndpointUrl, OAuthError> {
    let location = location(response).unwrap_or_default();
    let refused = |reason| OAuthError::Redirect {
        document,
        url: url.to_string(),
        to: crate::text::shown_url(location),
        reason,
    };
    let next = match location {
        _ if location.starts_with("//") => Err(crate::error::UrlFault::NotAbsolute),
        _ if location.starts_with('/') => url.with_path(location),
        _ => EndpointUrl::parse(location),
    };
    let next = next.map_err(|_| refused("which cannot be followed"))?;
    match next.is_same_origin(url) {
        true => Ok(next),
        false => Err(refused("which is another origin")),
    }
}

fn location(response: &IncomingResponse) -> Option<&str> {
    response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok())
}

/// Statuses that say that there is no document. Others say that there may be one, and not now.
fn is_absent(status: StatusCode) -> bool {
    status.is_client_error()
        && !matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        )
}
