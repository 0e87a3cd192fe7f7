//! One HTTP request to its response head: who sends it, where it goes, and what a refusal means.

use std::sync::PoisonError;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use plenipo_authorizer::{AuthorizeRequest, Challenge, Operation, Verdict};
use plenipo_http::{Received, Target};

use super::headers;
use super::helper::Made;
use super::link::HttpLink;
use super::post::challenge;
use crate::error::{HttpFault, REDIRECTED_TOO_OFTEN};

const REDIRECTIONS: usize = 5;
/// Repetitions of a request that an authorizer may ask for: a nonce, a refresh, another nonce, more
/// scopes.
const REPETITIONS: u32 = 4;

/// What is sent, but for the credentials.
pub(super) struct Delivery<'a> {
    pub(super) method: Method,
    pub(super) operation: Operation<'a>,
    /// The session's headers and the configured ones.
    pub(super) base: &'a HeaderMap,
    /// Those of this request.
    pub(super) own: &'a [(HeaderName, HeaderValue)],
    pub(super) body: Bytes,
}

/// A response, and what it answers.
struct Landed {
    response: Response<Received>,
    target: Target,
    /// Of the authorization that was sent.
    generation: u64,
}

impl<'a> Delivery<'a> {
    /// As an authorizer is asked about it, after so many refusals.
    fn request<'b>(&'b self, target: &'b Target, attempt: u32) -> AuthorizeRequest<'b>
    where
        'a: 'b,
    {
        AuthorizeRequest::new((&self.method, target.uri()), &self.body, self.operation, attempt)
    }
}

impl HttpLink {
    /// Sends with the credentials. Those of a helper are renewed once when they are refused; an
    /// authorizer decides by itself.
    pub(super) async fn deliver(
        &self,
        delivery: &Delivery<'_>,
    ) -> Result<Response<Received>, HttpFault> {
        let mut made = match &self.helper {
            Some(helper) => Some(helper.headers().await?),
            None => None,
        };
        let (mut may_renew, mut refused) = (true, 0);
        loop {
            let landed = self.follow(delivery, made.as_ref(), refused).await?;
            if !matches!(landed.response.status().as_u16(), 401 | 403) {
                return Ok(landed.response);
            }
            if let (Some(helper), Some(current)) = (&self.helper, &made)
                && may_renew
                && is_refusal(&landed.response)
            {
                may_renew = false;
                if let Some(renewed) = helper.renew(current.number).await? {
                    landed.response.into_body().let_end();
                    made = Some(renewed);
                    continue;
                }
            }
            if refused >= REPETITIONS || !self.may_repeat(delivery, &landed, refused).await? {
                return Ok(landed.response);
            }
            refused += 1;
            landed.response.into_body().let_end();
        }
    }

    /// Asks the authorizer what a refusal means.
    async fn may_repeat(
        &self,
        delivery: &Delivery<'_>,
        landed: &Landed,
        attempt: u32,
    ) -> Result<bool, HttpFault> {
        let Some(authorizer) = &self.authorizer else { return Ok(false) };
        let request = delivery.request(&landed.target, attempt);
        let refusal = (landed.response.status(), landed.response.headers());
        let challenge = Challenge::of(&request, refusal, landed.generation);
        let verdict = authorizer.challenged(&challenge).await?;
        Ok(verdict == Verdict::Retry)
    }

    /// The session's headers, the configured ones, the message's, and those of a helper.
    fn compose(&self, delivery: &Delivery<'_>, made: Option<&Made>) -> HeaderMap {
        let mut headers = delivery.base.clone();
        headers.extend(delivery.own.iter().cloned());
        if let Some(made) = made {
            self.add_made(&mut headers, made);
        }
        headers
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

    /// Adds what the authorizer gives for this very request; tells its generation.
    async fn authorize(
        &self,
        delivery: &Delivery<'_>,
        (target, attempt): (&Target, u32),
        headers: &mut HeaderMap,
    ) -> Result<u64, HttpFault> {
        let Some(authorizer) = &self.authorizer else { return Ok(0) };
        let request = delivery.request(target, attempt);
        let authorization = authorizer.authorize(&request).await?;
        for (name, value) in &authorization.headers {
            headers::check_name(name)?;
            self.secrets().remember(name, value);
            let mut value = value.clone();
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(authorization.generation)
    }

    /// Sends, and sends again to where the same origin redirects.
    async fn follow(
        &self,
        delivery: &Delivery<'_>,
        made: Option<&Made>,
        attempt: u32,
    ) -> Result<Landed, HttpFault> {
        let mut target = self.target();
        for _ in 0..=REDIRECTIONS {
            let mut headers = self.compose(delivery, made);
            let generation = self.authorize(delivery, (&target, attempt), &mut headers).await?;
            let mut request = Request::new(Full::new(delivery.body.clone()));
            *request.method_mut() = delivery.method.clone();
            *request.uri_mut() = target.uri().clone();
            *request.headers_mut() = headers;
            let response = self.client.send(&target, request).await?;
            if let Some(authorizer) = &self.authorizer {
                let (status, headers) = (response.status(), response.headers());
                authorizer.answered(target.uri(), delivery.operation, status, headers);
            }
            let Some(next) = redirection(&target, &delivery.method, &response)? else {
                return Ok(Landed { response, target, generation });
            };
            let status = response.status();
            response.into_body().let_end();
            if matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::PERMANENT_REDIRECT) {
                *self.target.lock().unwrap_or_else(PoisonError::into_inner) = next.clone();
            }
            target = next;
        }
        Err(HttpFault::Redirect { to: target.to_string(), reason: REDIRECTED_TOO_OFTEN })
    }
}

/// Where a response sends its request, when that may be followed. The method and body stay what
/// they are, as no message makes sense otherwise.
fn redirection(
    target: &Target,
    method: &Method,
    response: &Response<Received>,
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
fn is_refusal(response: &Response<Received>) -> bool {
    match response.status() {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => !challenge(response.headers()).contains("insufficient_scope"),
        _ => false,
    }
}
