//! Which era a server is of, and what it can do.
//!
//! *Modern* (2026-07-28): `server/discover` is answered, every request carries its revision and
//! capabilities. *Legacy* (2024-11-05 to 2025-11-25): `initialize` comes first. The probe is
//! `server/discover`; any answer that is not a modern one, silence for a bounded time, and the
//! death of the process mean legacy.

use std::time::Duration;

use plenipo_wire::encode::ObjectWriter;
use plenipo_wire::protocol::{
    LATEST_LEGACY_VERSION, LEGACY_VERSIONS, MODERN_VERSION, error_code, meta, methods,
};
use plenipo_wire::views::{DiscoverResult, Implementation, InitializeResult};
use plenipo_wire::{Fragment, RawValue, object};
use tokio::time::{Instant, timeout};

use crate::error::{Fault, PeerError};
use crate::input::InputOffer;
use crate::options::ClientIdentity;
use crate::peer::{Peer, RequestFault};
use crate::pending::Answer;

/// The era and, for legacy, the revision agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Era {
    /// 2026-07-28.
    Modern,
    /// 2024-11-05 to 2025-11-25.
    Legacy {
        /// The server's choice.
        version: String,
    },
}

/// What is known about a server's era from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EraHint {
    /// Probe.
    #[default]
    Unknown,
    /// Discover; when that fails, initialize.
    Modern,
    /// Initialize, without a probe.
    Legacy,
}

/// Name and version a server gives itself. For display: never used for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerIdentity {
    /// Empty when the server gave none.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// Empty when the server gave none.
    pub version: String,
}

/// What was agreed.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub(crate) era: Era,
    pub(crate) capabilities: Fragment,
    pub(crate) identity: ServerIdentity,
    pub(crate) instructions: Option<String>,
}

/// What a probe found.
#[derive(Debug)]
pub(crate) enum Probe {
    Modern(Agreement),
    Legacy,
    /// No answer so far.
    Silent(LateProbe),
    /// The process is gone: start it again and initialize.
    Died,
    Refused(Fault),
    /// The server refuses the revision that was asked for and offers it in the same breath.
    Again(PeerError),
}

/// A probe that may still be answered.
#[derive(Debug)]
pub(crate) struct LateProbe {
    pub(crate) id: i64,
    answer: Answer,
}

/// The `_meta` members of each request to a modern peer.
#[derive(Debug)]
pub(crate) struct ModernMeta {
    pub(crate) version: Fragment,
    pub(crate) capabilities: Fragment,
    pub(crate) client: Fragment,
}

impl Era {
    /// The revision, for example `2025-06-18`.
    #[must_use]
    pub fn version(&self) -> &str {
        match self {
            Self::Modern => MODERN_VERSION,
            Self::Legacy { version } => version,
        }
    }

    /// What to remember for the next start.
    #[must_use]
    pub fn hint(&self) -> EraHint {
        match self {
            Self::Modern => EraHint::Modern,
            Self::Legacy { .. } => EraHint::Legacy,
        }
    }
}

impl Agreement {
    /// Whether the server says that its tool list may change.
    pub(crate) fn announces_changes(&self) -> bool {
        let tools = object::member(self.capabilities.as_raw(), "tools");
        tools.and_then(|tools| object::member(tools, "listChanged")).and_then(object::boolean)
            == Some(true)
    }
}

impl ModernMeta {
    /// `offer` is what the connection's own handler answers; a call may have another.
    /// `extension` is one that every request declares.
    pub(crate) fn new(client: &ClientIdentity, offer: InputOffer, extension: Option<&str>) -> Self {
        Self {
            version: Fragment::string(MODERN_VERSION),
            capabilities: offer.capabilities_with(extension),
            client: Fragment::object(|object| write_client(object, client)),
        }
    }

    /// The entries; `capabilities` stand for the connection's own where a request has others.
    pub(crate) fn entries<'a>(
        &'a self,
        capabilities: Option<&'a Fragment>,
    ) -> [(&'static str, &'a Fragment); 3] {
        [
            (meta::PROTOCOL_VERSION, &self.version),
            (meta::CLIENT_INFO, &self.client),
            (meta::CLIENT_CAPABILITIES, capabilities.unwrap_or(&self.capabilities)),
        ]
    }

    /// Adds `_meta` to the parameters of a request other than `tools/call`.
    pub(crate) fn write(&self, params: &mut ObjectWriter<'_>) {
        params.object("_meta", |object| {
            for (name, value) in self.entries(None) {
                object.fragment(name, value);
            }
        });
    }
}

/// Asks `server/discover` and waits at most `limit`; twice when the server refuses the revision that
/// it offers.
pub(crate) async fn probe(peer: &Peer, modern: &ModernMeta, limit: Duration) -> Probe {
    match probe_once(peer, modern, limit).await {
        Probe::Again(_) => probe_once(peer, modern, limit).await.settled(),
        probed => probed,
    }
}

async fn probe_once(peer: &Peer, modern: &ModernMeta, limit: Duration) -> Probe {
    let asked = peer.enqueue(methods::DISCOVER, |params| modern.write(params));
    let (outgoing, mut answer) = match asked {
        Ok(asked) => asked,
        Err(RequestFault::Fault(fault)) => return Probe::Refused(fault),
        Err(_) => return Probe::Died,
    };
    let exchange = async {
        // A broken pipe is not an answer.
        peer.send().ok();
        (&mut answer).await
    };
    match timeout(limit, exchange).await {
        Ok(Ok(reply)) => judge(reply.into_result()),
        Ok(Err(_)) => Probe::Died,
        Err(_) => Probe::Silent(LateProbe { id: outgoing.id, answer }),
    }
}

/// [`probe`] over HTTP, where a legacy server may refuse in many ways and none of them kills it:
/// [`Probe::Died`] stands for silence.
pub(crate) async fn probe_http(peer: &Peer, modern: &ModernMeta, limit: Duration) -> Probe {
    match probe_http_once(peer, modern, limit).await {
        Probe::Again(_) => probe_http_once(peer, modern, limit).await.settled(),
        probed => probed,
    }
}

async fn probe_http_once(peer: &Peer, modern: &ModernMeta, limit: Duration) -> Probe {
    let asked = peer.request(methods::DISCOVER, limit, |params| modern.write(params)).await;
    match asked {
        Err(RequestFault::Fault(Fault::Http(fault))) if fault.may_be_legacy() => Probe::Legacy,
        other => judge(other),
    }
}

impl Probe {
    /// There is no third time.
    fn settled(self) -> Self {
        match self {
            Self::Again(error) => Self::Refused(Fault::Peer(error)),
            other => other,
        }
    }
}

impl LateProbe {
    /// What was agreed, when the answer came meanwhile and is a modern one.
    pub(crate) fn modern(&mut self) -> Option<Agreement> {
        match judge(self.answer.try_take()?.into_result()) {
            Probe::Modern(agreement) => Some(agreement),
            _ => None,
        }
    }
}

fn judge(answer: Result<Box<RawValue>, RequestFault>) -> Probe {
    match answer {
        Ok(result) => discovered(&result),
        Err(RequestFault::Peer(error)) => refused(&error),
        Err(RequestFault::Fault(fault)) => Probe::Refused(fault),
        Err(_) => Probe::Died,
    }
}

fn discovered(result: &RawValue) -> Probe {
    let Ok(view) = DiscoverResult::from_raw(result) else { return Probe::Legacy };
    let offers = |wanted: &str| view.supported_versions.iter().any(|version| version == wanted);
    if offers(MODERN_VERSION) {
        return Probe::Modern(Agreement {
            era: Era::Modern,
            capabilities: capabilities(view.capabilities),
            identity: ServerIdentity::from_view(&view.server_info),
            instructions: view.instructions.map(Into::into),
        });
    }
    if view.supported_versions.is_empty() || LEGACY_VERSIONS.into_iter().any(offers) {
        return Probe::Legacy;
    }
    let offered = view.supported_versions.iter().map(|version| shown_version(version)).collect();
    Probe::Refused(Fault::UnsupportedVersion { offered })
}

/// Only errors that the modern revision defines keep a server modern; whatever else means legacy.
fn refused(error: &PeerError) -> Probe {
    match error.code {
        error_code::UNSUPPORTED_PROTOCOL_VERSION if offers_modern(error) => {
            Probe::Again(error.clone())
        }
        error_code::UNSUPPORTED_PROTOCOL_VERSION => match no_legacy_offer(error) {
            Some(offered) => Probe::Refused(Fault::UnsupportedVersion { offered }),
            None => Probe::Legacy,
        },
        error_code::MISSING_REQUIRED_CLIENT_CAPABILITY | error_code::HEADER_MISMATCH => {
            Probe::Refused(Fault::Peer(error.clone()))
        }
        _ => Probe::Legacy,
    }
}

/// The legacy handshake, until `deadline`.
pub(crate) async fn initialize(
    peer: &Peer,
    client: &ClientIdentity,
    deadline: Instant,
    limit: Duration,
) -> Result<Agreement, RequestFault> {
    let first = ask_initialize(peer, client, deadline, LATEST_LEGACY_VERSION).await;
    let result = match first {
        Err(RequestFault::Peer(error)) => match mutual(&error) {
            Some(version) => ask_initialize(peer, client, deadline, version).await,
            None => Err(RequestFault::Peer(error)),
        },
        other => other,
    };
    let result = result.map_err(|fault| match fault {
        RequestFault::Silence => RequestFault::Fault(Fault::NoAnswer {
            method: methods::INITIALIZE,
            limit,
            language_server_framing: peer.warnings.language_server_framing(),
        }),
        other => other,
    })?;
    let agreement = initialized(&result).map_err(RequestFault::Fault)?;
    peer.settle_protocol(&agreement.era);
    peer.notify(methods::INITIALIZED).await?;
    Ok(agreement)
}

async fn ask_initialize(
    peer: &Peer,
    client: &ClientIdentity,
    deadline: Instant,
    version: &str,
) -> Result<Box<RawValue>, RequestFault> {
    let left = deadline.saturating_duration_since(Instant::now());
    peer.request(methods::INITIALIZE, left, |params| {
        params.string("protocolVersion", version);
        params.object("capabilities", |object| peer.asks.offers().write(object));
        params.object("clientInfo", |object| write_client(object, client));
    })
    .await
}

fn initialized(result: &RawValue) -> Result<Agreement, Fault> {
    let view = InitializeResult::from_raw(result)
        .map_err(|source| Fault::BadAnswer { method: methods::INITIALIZE, source })?;
    if !LEGACY_VERSIONS.contains(&&*view.protocol_version) {
        let offered = vec![shown_version(&view.protocol_version)];
        return Err(Fault::UnsupportedVersion { offered });
    }
    Ok(Agreement {
        era: Era::Legacy { version: view.protocol_version.into_owned() },
        capabilities: capabilities(view.capabilities),
        identity: ServerIdentity::from_view(&view.server_info),
        instructions: view.instructions.map(Into::into),
    })
}

/// What a server offers that refuses our revision, when no legacy one is among it.
pub(crate) fn no_legacy_offer(error: &PeerError) -> Option<Vec<String>> {
    let offered = supported(error);
    let legacy = |version: &String| LEGACY_VERSIONS.contains(&version.as_str());
    (!offered.is_empty() && !offered.iter().any(legacy)).then_some(offered)
}

/// A server that refuses our revision and offers it.
pub(crate) fn offers_modern(error: &PeerError) -> bool {
    supported(error).iter().any(|version| version == MODERN_VERSION)
}

/// The newest legacy revision that an error says the server supports, other than the one asked.
/// Servers that have no list in the error's data have it in its text.
fn mutual(error: &PeerError) -> Option<&'static str> {
    let mut offered = supported(error);
    if offered.is_empty() {
        let words = error.message.split(|inner: char| !inner.is_ascii_digit() && inner != '-');
        offered = words.map(str::to_owned).collect();
    }
    LEGACY_VERSIONS
        .into_iter()
        .rev()
        .find(|version| *version != LATEST_LEGACY_VERSION && offered.iter().any(|o| o == version))
}

fn supported(error: &PeerError) -> Vec<String> {
    let list = error.data.as_ref().and_then(|data| object::member(data.as_raw(), "supported"));
    let items = list.and_then(object::items).unwrap_or_default();
    items.into_iter().filter_map(object::text).map(|version| shown_version(&version)).collect()
}

fn shown_version(version: &str) -> String {
    crate::text::shown(version)
}

fn capabilities(raw: Option<&RawValue>) -> Fragment {
    raw.map_or_else(Fragment::object_empty, Fragment::from_raw)
}

fn write_client(object: &mut ObjectWriter<'_>, client: &ClientIdentity) {
    object.string("name", &client.name);
    object.string("title", &client.title);
    object.string("version", &client.version);
}

impl ServerIdentity {
    fn from_view(view: &Implementation<'_>) -> Self {
        Self {
            name: view.name.clone().into_owned(),
            title: view.title.clone().map(Into::into),
            version: view.version.clone().into_owned(),
        }
    }
}
