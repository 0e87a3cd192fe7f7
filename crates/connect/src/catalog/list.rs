//! `tools/list`, page by page.

use std::time::Duration;

use plenipo_wire::RawValue;
use plenipo_wire::protocol::methods;
use plenipo_wire::views::{ResultType, ToolPage};
use tokio::time::Instant;

use super::{DroppedTool, Tool};
use crate::cache::lifetime;
use crate::error::{Fault, ListingFault};
use crate::negotiate::ModernMeta;
use crate::paging::{self, Pages};
use crate::peer::{Peer, RequestFault};

const TOOLS: usize = 2_048;

/// Everything a server lists.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    pub(crate) dropped: Vec<DroppedTool>,
    /// How long it may be taken for current: the shortest time that a page gives itself, no time at all
    /// if one gives none. `None`: until the server says that it changed, which is all that older
    /// revisions have.
    pub(crate) lifetime: Option<Duration>,
}

/// Lists all pages within `limit`.
pub(crate) async fn list(
    peer: &Peer,
    modern: Option<&ModernMeta>,
    limit: Duration,
) -> Result<Listed, RequestFault> {
    let end = Instant::now() + limit;
    let mut pages = ToolPages { peer, modern, limit, end, listed: Listed::default() };
    paging::walk(&mut pages).await?;
    Ok(pages.listed)
}

struct ToolPages<'a> {
    peer: &'a Peer,
    modern: Option<&'a ModernMeta>,
    limit: Duration,
    end: Instant,
    listed: Listed,
}

impl Pages for ToolPages<'_> {
    async fn ask(&self, cursor: Option<&str>) -> Result<Box<RawValue>, RequestFault> {
        let left = self.end.saturating_duration_since(Instant::now());
        let page = self.peer.request(methods::TOOLS_LIST, left, |params| {
            if let Some(cursor) = cursor {
                params.string("cursor", cursor);
            }
            if let Some(modern) = self.modern {
                modern.write(params);
            }
        });
        page.await.map_err(|fault| match fault {
            RequestFault::Silence => silence(self.limit),
            other => other,
        })
    }

    fn take(&mut self, page: &RawValue) -> Result<Option<String>, Fault> {
        self.listed.take(page, self.modern.is_some())
    }

    fn clear(&mut self) {
        self.listed = Listed::default();
    }
}

impl Listed {
    /// Adds a page; gives the next cursor.
    fn take(&mut self, result: &RawValue, is_modern: bool) -> Result<Option<String>, Fault> {
        match ResultType::of(result) {
            Some(ResultType::InputRequired) => {
                return Err(Fault::ResultType { found: "input_required".to_owned() });
            }
            Some(ResultType::Unknown(found)) => {
                return Err(Fault::ResultType { found: crate::text::shown(&found) });
            }
            _ => {}
        }
        if let Some(lifetime) = lifetime(result).or(is_modern.then_some(Duration::ZERO)) {
            self.lifetime = Some(self.lifetime.map_or(lifetime, |other| other.min(lifetime)));
        }
        let page = ToolPage::from_raw(result)
            .map_err(|source| Fault::BadAnswer { method: methods::TOOLS_LIST, source })?;
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
        Ok(page.next_cursor.map(Into::into))
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
