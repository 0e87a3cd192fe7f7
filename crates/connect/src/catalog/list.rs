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

/// How much a list may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListLimits {
    /// For all pages together.
    pub(crate) time: Duration,
    pub(crate) tools: usize,
    pub(crate) pages: usize,
}

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

/// Lists all pages.
pub(crate) async fn list(
    peer: &Peer,
    modern: Option<&ModernMeta>,
    limits: ListLimits,
) -> Result<Listed, RequestFault> {
    let end = Instant::now() + limits.time;
    let mut pages = ToolPages { peer, modern, limits, end, listed: Listed::default() };
    paging::walk(&mut pages).await?;
    Ok(pages.listed)
}

struct ToolPages<'a> {
    peer: &'a Peer,
    modern: Option<&'a ModernMeta>,
    limits: ListLimits,
    end: Instant,
    listed: Listed,
}

impl Pages for ToolPages<'_> {
    fn most(&self) -> usize {
        self.limits.pages
    }

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
            RequestFault::Silence => silence(self.limits.time),
            other => other,
        })
    }

    fn take(&mut self, page: &RawValue) -> Result<Option<String>, Fault> {
        let next = self.listed.take(page, self.modern.is_some())?;
        let limit = self.limits.tools;
        match self.listed.tools.len().saturating_add(self.listed.dropped.len()) > limit {
            true => Err(Fault::Listing(ListingFault::TooManyTools { limit })),
            false => Ok(next),
        }
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
