//! What a host decides about a connection.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plenipo_authority::EnvironmentId;
use plenipo_wire::DEFAULT_MAX_MESSAGE_BYTES;

use crate::approval::Approvals;
use crate::cache::ResultCache;
use crate::catalog::ToolFilter;
use crate::input::{InputHandler, InputOffer};
use crate::launcher::LauncherProvider;
use crate::memory::Memory;
use crate::negotiate::EraHint;
use crate::observer::{Observer, Silent};
use crate::restart::RestartPolicy;
use crate::transport::http::HttpClient;
use crate::transport::stdio::{Grace, ProcessGroups, Spawner};

/// Choices for one connection.
///
/// | field | default |
/// |---|---|
/// | `start_timeout` | 30 s: start, probe and handshake together; again for listing the tools |
/// | `probe_timeout` | 2 s, and never more than a third of `start_timeout`; over HTTP that third |
/// | `tool_timeout` | 300 s without an answer or progress |
/// | `tool_timeouts` | `tool_timeout` for every tool |
/// | `tool_total_timeout` | four times the idle limit of the call |
/// | `restart` | on failure, for a [`Server`](crate::Server) |
/// | `max_message_bytes` | 16 MiB a line, body or event |
/// | `max_error_bytes` | 64 KiB of the body of an HTTP error |
/// | `max_tools` | 2,048 in a server's list |
/// | `max_list_items` | 16,384 in any other list |
/// | `max_list_pages` | 100 of one list |
/// | `grace` | 2 s and 2 s |
/// | `shutdown` | in the background, for [`leave`](crate::Connection::leave) |
/// | `era` | unknown: probe |
/// | `filter` | every tool |
/// | `launcher` | none |
/// | `environment` | `local` |
/// | `client` | `plenipo` and this crate's version |
/// | `http` | direct, the system's certificate authorities |
/// | `input` | nobody answers what servers ask |
/// | `max_input_rounds` | 10 a call |
/// | `max_questions` | 64 a round |
/// | `cache` | its own |
/// | `spawner` | [`ProcessGroups`]: local servers are children of this process |
/// | `memory` | none: everything is asked anew |
/// | `approvals` | none: the host decides before it calls |
/// | `observer` | silent |
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Limit of start, probe and handshake together, and of one listing.
    pub start_timeout: Duration,
    /// How long a local server's silence on `server/discover` is waited out.
    pub probe_timeout: Duration,
    /// Default limit of a call.
    pub tool_timeout: Duration,
    /// The same for tools that have their own.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// Default limit of a call whatever its progress.
    pub tool_total_timeout: Option<Duration>,
    /// Whether a [`Server`](crate::Server) starts it again.
    pub restart: RestartPolicy,
    /// Bound of one message.
    pub max_message_bytes: usize,
    /// How much of the body of an HTTP error is read; it may hold a JSON-RPC error.
    pub max_error_bytes: usize,
    /// How many tools a server may list.
    pub max_tools: usize,
    /// How many items any other of its lists may have.
    pub max_list_items: usize,
    /// In how many pages a list may come.
    pub max_list_pages: usize,
    /// Patience of the shutdown ladder.
    pub grace: Grace,
    /// Who waits for the server's end when the connection is left.
    pub shutdown: ShutdownPolicy,
    /// What is known about the server's era from before.
    pub era: EraHint,
    /// Which tools exist for this host.
    pub filter: ToolFilter,
    /// Where the launcher for sandboxed commands comes from; share one among connections.
    pub launcher: Arc<LauncherProvider>,
    /// Where the server runs.
    pub environment: EnvironmentId,
    /// Who we say we are.
    pub client: ClientIdentity,
    /// Connections to servers behind URLs; share one among the servers of a host.
    pub http: HttpClient,
    /// Who answers what the server asks; a call may bring another one.
    pub input: Option<Arc<dyn InputHandler>>,
    /// How many times a call may be sent again with answers to the server's questions.
    pub max_input_rounds: u32,
    /// How many questions a server may ask at once.
    pub max_questions: usize,
    /// What servers allow to be kept; share one to let connections to the same URL share what is
    /// public.
    pub cache: Arc<ResultCache>,
    /// Who starts local servers, and how far their end reaches.
    pub spawner: Arc<dyn Spawner>,
    /// What earlier connections learnt.
    pub memory: Option<Arc<dyn Memory>>,
    /// Which calls somebody has to approve; `None` leaves that to the host, before it calls.
    pub approvals: Option<Approvals>,
    /// Who hears about warnings and stderr.
    pub observer: Arc<dyn Observer>,
}

/// What other clients allow too.
const DEFAULT_INPUT_ROUNDS: u32 = 10;
const DEFAULT_QUESTIONS: usize = 64;
const DEFAULT_TOOLS: usize = 2_048;
const DEFAULT_ITEMS: usize = 16_384;
const DEFAULT_ERROR_BYTES: usize = 64 * 1024;
const DEFAULT_PAGES: usize = 100;

/// Who waits for a local server's end when its connection is [left](crate::Connection::leave).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ShutdownPolicy {
    /// Who keeps it and outlives this program.
    #[default]
    Background,
    /// Whoever leaves it: the server is gone afterwards, and with it what only one process may hold.
    Wait,
}

/// Name and version a client gives itself; for display on the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientIdentity {
    /// Machine-readable name.
    pub name: String,
    /// For people.
    pub title: String,
    /// Version.
    pub version: String,
}

impl Default for ClientIdentity {
    fn default() -> Self {
        Self {
            name: "plenipo".to_owned(),
            title: "Plenipo".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(30),
            probe_timeout: Duration::from_secs(2),
            tool_timeout: Duration::from_secs(300),
            tool_timeouts: BTreeMap::new(),
            tool_total_timeout: None,
            restart: RestartPolicy::default(),
            max_message_bytes: DEFAULT_MAX_MESSAGE_BYTES,
            max_error_bytes: DEFAULT_ERROR_BYTES,
            max_tools: DEFAULT_TOOLS,
            max_list_items: DEFAULT_ITEMS,
            max_list_pages: DEFAULT_PAGES,
            grace: Grace::default(),
            shutdown: ShutdownPolicy::default(),
            era: EraHint::Unknown,
            filter: ToolFilter::default(),
            launcher: Arc::new(LauncherProvider::none()),
            environment: EnvironmentId::local(),
            client: ClientIdentity::default(),
            http: HttpClient::default(),
            input: None,
            approvals: None,
            max_input_rounds: DEFAULT_INPUT_ROUNDS,
            max_questions: DEFAULT_QUESTIONS,
            cache: Arc::default(),
            spawner: Arc::new(ProcessGroups::new()),
            memory: None,
            observer: Arc::new(Silent),
        }
    }
}

impl ConnectOptions {
    /// How long a call of `tool` may be silent.
    pub(crate) fn timeout_of(&self, tool: &str) -> Duration {
        self.tool_timeouts.get(tool).copied().unwrap_or(self.tool_timeout)
    }

    /// What the connection's own handler answers.
    pub(crate) fn offers(&self) -> InputOffer {
        self.input.as_ref().map(|input| input.offers()).unwrap_or_default()
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("start_timeout", &self.start_timeout)
            .field("tool_timeout", &self.tool_timeout)
            .field("era", &self.era)
            .field("filter", &self.filter)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}
