//! One connection over HTTP: what its requests share, its errands, and its end.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use plenipo_authority::{CredentialPin, SandboxOptIn};
use plenipo_authorizer::Authorizer;
use plenipo_http::{HttpClient, Secrets, Target};
use plenipo_wire::protocol::methods;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};

use super::HttpEndpoint;
use super::helper::Helper;
use super::post::Message;
use super::server_stream::Listening;
use super::session::{Protocol, Session, Sessions};
use crate::error::{Fault, HttpFault};
use crate::negotiate;
use crate::options::{ClientIdentity, ConnectOptions};
use crate::peer::{Peer, RequestFault};
use crate::pending::Closed;

/// Notices and answers on their way at the same time.
const ERRANDS: usize = 64;

/// Shared by callers, errands and the server's stream.
pub(crate) struct HttpLink {
    pub(super) client: HttpClient,
    /// As it was given.
    pub(super) configured: Target,
    /// Where requests go; a permanent redirection changes it.
    pub(super) target: Mutex<Target>,
    /// Of the configuration.
    pub(super) own: HeaderMap,
    pub(super) helper: Option<Helper>,
    pub(super) authorizer: Option<Arc<dyn Authorizer>>,
    pub(super) secrets: Mutex<Secrets>,
    pub(super) sessions: Sessions,
    pub(super) max_message_bytes: usize,
    pub(super) max_error_bytes: usize,
    renewal: AsyncMutex<()>,
    start_timeout: Duration,
    identity: ClientIdentity,
    /// What the authority of calls was captured for.
    opt_in: OnceLock<bool>,
    errands: Mutex<JoinSet<()>>,
    stream: Mutex<Option<AbortHandle>>,
    pub(super) listening: Listening,
}

impl HttpLink {
    pub(crate) fn new(endpoint: &HttpEndpoint, options: &ConnectOptions) -> Self {
        let mut own = endpoint.headers.clone();
        if let Ok(agent) =
            HeaderValue::try_from(format!("{}/{}", options.client.name, options.client.version))
        {
            own.entry(header::USER_AGENT).or_insert(agent);
        }
        Self {
            client: options.http.clone(),
            configured: endpoint.target.clone(),
            target: Mutex::new(endpoint.target.clone()),
            own,
            helper: endpoint.helper.clone().map(Helper::new),
            authorizer: endpoint.authorizer.clone(),
            secrets: Mutex::new(endpoint.secrets.clone()),
            sessions: Sessions::default(),
            max_message_bytes: options.max_message_bytes,
            max_error_bytes: options.max_error_bytes,
            renewal: AsyncMutex::default(),
            start_timeout: options.start_timeout,
            identity: options.client.clone(),
            opt_in: OnceLock::new(),
            errands: Mutex::default(),
            stream: Mutex::default(),
            listening: Listening::default(),
        }
    }

    pub(crate) fn settle(&self, protocol: Protocol) {
        self.sessions.settle(protocol);
    }

    /// What was agreed at the start; a renewed session has to agree to the same.
    pub(crate) fn pin_opt_in(&self, opt_in: bool) {
        self.opt_in.get_or_init(|| opt_in);
    }

    pub(crate) fn secrets(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which credential calls are made under.
    pub(crate) fn credential(&self) -> Option<CredentialPin> {
        self.authorizer.as_ref().and_then(|authorizer| authorizer.pin())
    }

    /// What every request declares because of its credentials.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        self.authorizer.as_ref().and_then(|authorizer| authorizer.extension())
    }

    /// Waits until there are no credentials any more.
    pub(super) async fn withdrawn(&self) -> HttpFault {
        match &self.authorizer {
            Some(authorizer) => authorizer.withdrawn().await.into(),
            None => std::future::pending().await,
        }
    }

    /// The whole URL, secrets in it included: to compare, not to show.
    pub(crate) fn address(&self) -> String {
        self.target().uri().to_string()
    }

    pub(super) fn target(&self) -> Target {
        self.target.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether credentials go over the network unprotected.
    pub(crate) fn exposes_credentials(&self) -> bool {
        let target = self.target();
        let has_some = self.helper.is_some()
            || self.authorizer.is_some()
            || self.own.values().any(HeaderValue::is_sensitive);
        has_some && !target.is_tls() && !target.is_loopback()
    }

    /// Posts a notification and waits until it is taken. A server that has something against it will
    /// say so again when it is asked something.
    pub(crate) async fn notify(&self, method: &str, body: Bytes) -> Result<(), RequestFault> {
        let session = self.sessions.current();
        let message = Message { method, name: None, mirrored: &[], body };
        let response = self.post(&session, message).await?;
        let fault = super::post::status_fault(response.status());
        response.into_body().let_end();
        match fault {
            Some(fault) => Err(RequestFault::Fault(Fault::Http(fault))),
            None => Ok(()),
        }
    }

    /// Posts something that nobody waits for; false when there is too much of that already. A
    /// modern server gets nothing but requests.
    pub(crate) fn post_later(self: &Arc<Self>, body: Bytes) -> bool {
        let session = self.sessions.current();
        if session.is_modern() {
            return true;
        }
        let Ok(runtime) = Handle::try_current() else { return false };
        let link = Arc::clone(self);
        let mut errands = self.errands.lock().unwrap_or_else(PoisonError::into_inner);
        while errands.try_join_next().is_some() {}
        if errands.len() >= ERRANDS {
            return false;
        }
        let errand = async move {
            let message = Message { method: "", name: None, mirrored: &[], body };
            // What becomes of it concerns nobody: the request it belongs to tells more.
            if let Ok(response) = link.post(&session, message).await {
                response.into_body().let_end();
            }
        };
        errands.spawn_on(errand, &runtime);
        true
    }

    /// The session is gone: agrees anew, once for everybody who noticed.
    pub(super) async fn renew(&self, peer: &Peer, stale: &Session) -> Result<(), RequestFault> {
        let _only_one = self.renewal.lock().await;
        if self.sessions.current().number != stale.number {
            return Ok(());
        }
        let deadline = Instant::now() + self.start_timeout;
        let limit = self.start_timeout;
        let agreed = negotiate::initialize(peer, &self.identity, deadline, limit).await;
        let agreement = agreed.map_err(refused)?;
        let opt_in = SandboxOptIn::from_capabilities(agreement.capabilities.as_raw()).advertised;
        if self.opt_in.get().is_some_and(|pinned| *pinned != opt_in) {
            let fault = Fault::AuthorityChanged {
                captured: "a server as it was before its session ended".to_owned(),
                actual: "another opt-in to the sandbox state".to_owned(),
            };
            let repeated = fault.repeat();
            peer.close(Closed { fault, stderr_tail: Vec::new() });
            return Err(RequestFault::Fault(repeated));
        }
        peer.lists_changed();
        Ok(())
    }

    /// Aborts what runs by itself.
    pub(crate) fn stop(&self) {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stream) = stream {
            stream.abort();
        }
    }

    pub(super) fn hold_stream(&self, stream: AbortHandle) {
        let mut held = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = held.replace(stream) {
            other.abort();
        }
    }

    /// Lets errands end and gives the session back, each within `limit`.
    pub(crate) async fn shut_down(&self, limit: Duration) {
        self.stop();
        let mut errands =
            std::mem::take(&mut *self.errands.lock().unwrap_or_else(PoisonError::into_inner));
        timeout(limit, async { while errands.join_next().await.is_some() {} }).await.ok();
        let session = self.sessions.end();
        if session.is_legacy() && session.id.is_some() {
            let deleted = self.bodiless(Method::DELETE, &session, HeaderMap::new());
            // 405 means that the server ends sessions by itself; any other answer does as well.
            timeout(limit, deleted).await.ok();
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLink").field("target", &self.target()).finish_non_exhaustive()
    }
}

/// A server that refuses `initialize` may be of another era by now.
fn refused(fault: RequestFault) -> RequestFault {
    match fault {
        RequestFault::Peer(error) => HttpFault::SessionRefused { why: error.to_string() }.into(),
        RequestFault::Fault(Fault::Http(fault)) if fault.may_be_legacy() => {
            HttpFault::SessionRefused { why: fault.to_string() }.into()
        }
        other => other,
    }
}

/// Requests that a second try cannot make happen twice.
pub(super) fn is_repeatable(method: &str) -> bool {
    matches!(
        method,
        methods::DISCOVER
            | methods::INITIALIZE
            | methods::TOOLS_LIST
            | methods::RESOURCES_LIST
            | methods::RESOURCE_TEMPLATES_LIST
            | methods::RESOURCES_READ
            | methods::DIRECTORY_READ
            | methods::PROMPTS_LIST
            | methods::PROMPTS_GET
            | methods::COMPLETE
            | methods::SKILLS_LIST
            | methods::SKILLS_GET
            | methods::TASKS_GET
    )
}
