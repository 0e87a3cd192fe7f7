//! The seam between requests and credentials: what a connection asks, and what it tells.
//!
//! A connection knows neither OAuth nor tokens. It has an [`Authorizer`], or none, which is asked for headers before each
//! HTTP request and told of each refusal:
//!
//! ```text
//!   request ──> authorize(method, url, body) ──> headers ──> sent
//!                    ▲                                        │ 401, 403
//!                    └── Verdict::Retry ── challenged(…) <────┘
//!                        Verdict::Fail ───────────────────────┴──> the request fails: sign-in needed
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use plenipo_authority::CredentialPin;

use crate::error::AuthorizeError;

/// What a method of an [`Authorizer`] returns.
pub type Authorizing<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthorizeError>> + Send + 'a>>;

/// What [`Authorizer::withdrawn`] returns.
pub type Withdrawal<'a> = Pin<Box<dyn Future<Output = AuthorizeError> + Send + 'a>>;

/// Makes the credentials of requests, and decides what a refusal means.
///
/// One is made for one server under one credential, and stays that for its life: another account or
/// OAuth client is another authorizer and another connection. It is shared by all requests of the
/// connection, which run at the same time: many may be refused because of one stale token, and it is
/// for the authorizer to refresh that once ([`Challenge::generation`] tells which one was refused).
///
/// What holds on this side:
///
/// - it is asked for every HTTP request of the connection (POST, GET of a stream, DELETE of a session),
///   repetitions and same-origin redirections included, with the bytes that are sent;
/// - only for URLs of the endpoint's own origin: a redirection to another is refused before;
/// - what it returns is neither logged nor shown, and taken out of what the server echoes;
/// - after a refusal at most four repetitions are made of a request. It is the same JSON-RPC request
///   with the same id: a server that answers 401 or 403 did not process it.
///
/// Time spent here counts towards the request's limits, and dropping the request drops the future:
/// work that must not be lost half-way, such as a refresh that rotates a token, belongs into a task.
///
/// ```
/// use bytes::Bytes;
/// use http::{HeaderMap, HeaderValue, header};
/// use plenipo_authorizer::{
///     Authorization, AuthorizeError, AuthorizeRequest, Authorizer, Authorizing, Challenge, Verdict,
/// };
///
/// /// Always the same, and nothing to be done about a refusal.
/// #[derive(Debug)]
/// struct Fixed;
///
/// impl Authorizer for Fixed {
///     fn authorize<'a>(
///         &'a self,
///         _request: &'a AuthorizeRequest<'a>,
///     ) -> Authorizing<'a, Authorization> {
///         Box::pin(async {
///             let mut headers = HeaderMap::new();
///             headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Basic dTpw"));
///             Ok(Authorization::new(headers, 0))
///         })
///     }
///
///     fn challenged<'a>(&'a self, _challenge: &'a Challenge<'a>) -> Authorizing<'a, Verdict> {
///         Box::pin(async { Ok(Verdict::Fail) })
///     }
/// }
/// ```
pub trait Authorizer: Send + Sync + fmt::Debug {
    /// The headers to send with a request: usually `Authorization`, with DPoP its proof (RFC 9449
    /// §4) as well. They replace configured headers of the same name. None at all is fine: a server
    /// whose needs are not known yet is asked without credentials, and its challenge tells.
    ///
    /// Headers that HTTP or MCP sets itself (`Host`, `Content-…`, `Mcp-…`) fail the request.
    ///
    /// # Errors
    /// [`AuthorizeError`]: the request is not sent and fails with its kind and hint.
    fn authorize<'a>(&'a self, request: &'a AuthorizeRequest<'a>)
    -> Authorizing<'a, Authorization>;

    /// A 401 or 403. [`Verdict::Retry`] asks [`authorize`](Self::authorize) again and sends again;
    /// [`Verdict::Fail`] gives the refusal to the caller.
    ///
    /// A 403 comes here whatever it means: a missing scope, a nonce, a policy, a JSON-RPC error.
    ///
    /// # Errors
    /// [`AuthorizeError`]: the request fails with its kind and hint instead.
    fn challenged<'a>(&'a self, challenge: &'a Challenge<'a>) -> Authorizing<'a, Verdict>;

    /// Any response's head, before its body is read: a `DPoP-Nonce` may come with every one of them
    /// (RFC 9449 §8.2), and an `operation` that went through needs no further scopes. Called on the request's
    /// task: return quickly, never block.
    fn answered(
        &self,
        url: &Uri,
        operation: Operation<'_>,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        let _ = (url, operation, status, headers);
    }

    /// Waits until the credentials are withdrawn. Then requests and streams that are under way are
    /// dropped, which cancels them at the server, and fail with what this returns; `authorize` is to
    /// fail from then on. Default: never.
    fn withdrawn(&self) -> Withdrawal<'_> {
        Box::pin(std::future::pending())
    }

    /// The extension of MCP that this way to a token is, which every request to a modern server
    /// declares then. Default: none.
    fn extension(&self) -> Option<&'static str> {
        None
    }

    /// Names the credential's source and OAuth client; never token bytes. It goes into the authority
    /// captured for each call, and does not change in the authorizer's life.
    fn pin(&self) -> Option<CredentialPin> {
        None
    }

    /// For whom the server answers: part of the key under which what it says is kept between
    /// connections. Stable from one run to the next, different for different people, no secret.
    /// Default: the [`pin`](Self::pin).
    fn principal(&self) -> Option<String> {
        self.pin().map(|pin| pin.as_str().to_owned())
    }
}

/// An HTTP request that is about to be sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuthorizeRequest<'a> {
    /// `POST`, `GET` or `DELETE`.
    pub method: &'a Method,
    /// Where it is sent, with its query; DPoP's `htu` is this without query and fragment.
    pub url: &'a Uri,
    /// The final bytes of the body, empty for `GET` and `DELETE`. What a digest is made of is what
    /// is sent.
    pub body: &'a Bytes,
    /// What the request does.
    pub operation: Operation<'a>,
    /// How often this request was refused before.
    pub attempt: u32,
}

/// A refusal.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Challenge<'a> {
    /// 401 or 403.
    pub status: StatusCode,
    /// The response's headers; each `WWW-Authenticate` as sent (RFC 9110 §11.6.1). Untrusted.
    pub headers: &'a HeaderMap,
    /// The method of the refused request.
    pub method: &'a Method,
    /// Where it was sent.
    pub url: &'a Uri,
    /// What it was to do: scopes are asked for an operation.
    pub operation: Operation<'a>,
    /// [`Authorization::generation`] of what was refused.
    pub generation: u64,
    /// How often this request was refused, this time included: 1 at first.
    pub attempt: u32,
}

/// The JSON-RPC side of an HTTP request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Operation<'a> {
    /// The JSON-RPC method; empty when the request has none.
    pub method: &'a str,
    /// The tool, prompt or resource, where there is one.
    pub name: Option<&'a str>,
}

/// Credentials for one request.
#[derive(Clone)]
#[non_exhaustive]
pub struct Authorization {
    /// What is added to the request.
    pub headers: HeaderMap,
    /// The authorizer's own number for the credential used, given back with a challenge.
    pub generation: u64,
}

/// What to do about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Ask for headers again and send again.
    Retry,
    /// The refusal stands.
    Fail,
}

impl<'a> Operation<'a> {
    /// Of a JSON-RPC request.
    #[must_use]
    pub fn new(method: &'a str, name: Option<&'a str>) -> Self {
        Self { method, name }
    }
}

impl<'a> AuthorizeRequest<'a> {
    /// A request that was refused `attempt` times before.
    #[must_use]
    pub fn new(
        (method, url): (&'a Method, &'a Uri),
        body: &'a Bytes,
        operation: Operation<'a>,
        attempt: u32,
    ) -> Self {
        Self { method, url, body, operation, attempt }
    }
}

impl<'a> Challenge<'a> {
    /// The next refusal of `request`, which was sent with the credentials of number `generation`.
    #[must_use]
    pub fn of(
        request: &AuthorizeRequest<'a>,
        (status, headers): (StatusCode, &'a HeaderMap),
        generation: u64,
    ) -> Self {
        let &AuthorizeRequest { method, url, operation, attempt, .. } = request;
        let attempt = attempt.saturating_add(1);
        Self { status, headers, method, url, operation, generation, attempt }
    }
}

impl Authorization {
    /// `generation` is the authorizer's own to choose.
    #[must_use]
    pub fn new(headers: HeaderMap, generation: u64) -> Self {
        Self { headers, generation }
    }
}

impl fmt::Debug for Authorization {
    /// Names of headers, never their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().collect();
        let mut shown = f.debug_struct("Authorization");
        shown.field("headers", &names).field("generation", &self.generation).finish()
    }
}
