//! `tools/list`, page by page.

use std::collections::HashSet;
use std::time::Duration;

use plenipo_wire::protocol::methods;
use plenipo_wire::views::{ResultType, ToolPage};
use plenipo_wire::{RawValue, object};
use tokio::time::Instant;

use super::{DroppedTool, Tool};
use crate::error::{Fault, ListingFault};
use crate::negotiate::ModernMeta;
use crate::peer::{Peer, RequestFault};

const PAGES: usize = 100;
const TOOLS: usize = 2_048;
const CURSOR: usize = 64 * 1024;

/// Everything a server lists.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    pub(crate) dropped: Vec<DroppedTool>,
    /// How long the server says that this stays so: the least that a page says.
    pub(crate) ttl: Option<Duration>,
}

/// Lists all pages within `limit`.
pub(crate) async fn list(
    peer: &Peer,
    modern: Option<&ModernMeta>,
    limit: Duration,
) -> Result<Listed, RequestFault> {
    let end = Instant::now() + limit;
    let mut listed = Listed::default();
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let left = end.saturating_duration_since(Instant::now());
        let page =
            ask(peer, modern, left, cursor.as_deref()).await.map_err(|fault| match fault {
                RequestFault::Silence => RequestFault::Fault(Fault::NoAnswer {
                    method: methods::TOOLS_LIST,
                    limit,
                    language_server_framing: false,
                }),
                other => other,
            })?;
        cursor = listed.take(&page).map_err(RequestFault::Fault)?;
        match &cursor {
            None => return Ok(listed),
            Some(next) if !seen.insert(next.clone()) => {
                return Err(broken(ListingFault::RepeatedCursor));
            }
            Some(_) => {}
        }
    }
    Err(broken(ListingFault::TooManyPages { limit: PAGES }))
}

async fn ask(
    peer: &Peer,
    modern: Option<&ModernMeta>,
    limit: Duration,
    cursor: Option<&str>,
) -> Result<Box<RawValue>, RequestFault> {
    peer.request(methods::TOOLS_LIST, limit, |params| {
        if let Some(cursor) = cursor {
            params.string("cursor", cursor);
        }
        if let Some(modern) = modern {
            modern.write(params);
        }
    })
    .await
}

impl Listed {
    /// Adds a page; gives the next cursor.
    fn take(&mut self, result: &RawValue) -> Result<Option<String>, Fault> {
        match ResultType::of(result) {
            Some(ResultType::InputRequired) => {
                return Err(Fault::ResultType { found: "input_required".to_owned() });
            }
            Some(ResultType::Unknown(found)) => {
                return Err(Fault::ResultType { found: crate::text::shown(&found) });
            }
            _ => {}
        }
        let page = ToolPage::from_raw(result)
            .map_err(|source| Fault::BadAnswer { method: methods::TOOLS_LIST, source })?;
        let ttl = object::member(result, "ttlMs").and_then(object::integer);
        let ttl = Duration::from_millis(ttl.and_then(|ttl| u64::try_from(ttl).ok()).unwrap_or(0));
        self.ttl = Some(self.ttl.map_or(ttl, |least| least.min(ttl)));
        for tool in &page.tools {
            match tool {
                Ok(view) => self.tools.push(Tool::from_view(view)),
                Err(fault) => self
                    .dropped
                    .push(DroppedTool { name: fault.item.clone(), reason: fault.to_string() }),
            }
        }
        if self.tools.len().saturating_add(self.dropped.len()) > TOOLS {
            return Err(Fault::Listing(ListingFault::TooManyTools { limit: TOOLS }));
        }
        match page.next_cursor {
            Some(next) if next.len() > CURSOR => {
                let bytes = next.len();
                Err(Fault::Listing(ListingFault::CursorTooLong { bytes, limit: CURSOR }))
            }
            next => Ok(next.map(Into::into)),
        }
    }
}

/// The listing took too long.
pub(crate) fn silence(limit: Duration) -> RequestFault {
    RequestFault::Fault(Fault::NoAnswer {
        method: methods::TOOLS_LIST,
        limit,
        language_server_framing: false,
    })
}

fn broken(fault: ListingFault) -> RequestFault {
    RequestFault::Fault(Fault::Listing(fault))
}
