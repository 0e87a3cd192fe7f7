//! Lists that come in pages.
//!
//! A cursor is the server's own text: passed back as it came, an empty one too. A server that no
//! longer knows its cursor answers `-32602`; the list is then begun anew, once, and nothing of the
//! first attempt is kept. Bounds: as many pages and items as the connection's options allow, and cursors of
//! 64 KiB.

use std::collections::HashSet;
use std::future::Future;

use plenipo_wire::protocol::error_code;
use plenipo_wire::views::Page as PageView;
use plenipo_wire::{Fragment, RawValue, ViewError, object};

use crate::connection::Connection;
use crate::error::{ConnectError, Fault, ListingFault, Operation};
use crate::peer::RequestFault;
use crate::request::{Ask, RequestOptions};

const CURSOR: usize = 64 * 1024;

/// Something that a server lists. A host may have lists of its own extensions.
pub trait Entry: Sized + Send + Sync {
    /// The method that lists it.
    const METHOD: &'static str;
    /// The member of a page that holds it.
    const MEMBER: &'static str;
    /// The capability of a server that has any; an extension's is below `extensions`.
    const CAPABILITY: &'static str;

    /// Reads one.
    ///
    /// # Errors
    /// [`ViewError`] when it lacks what makes it one; it is then dropped alone.
    fn read(raw: &RawValue) -> Result<Self, ViewError>;
}

/// A whole list.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Listed<T> {
    /// In the server's order.
    pub items: Vec<T>,
    /// What could not be read, each with why.
    pub dropped: Vec<ViewError>,
}

/// One page of a list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<T> {
    /// In the server's order.
    pub items: Vec<T>,
    /// What could not be read, each with why.
    pub dropped: Vec<ViewError>,
    /// Where the next page starts; an empty string is a cursor.
    pub next_cursor: Option<String>,
    /// The whole page, as sent.
    pub result: Fragment,
}

/// Where pages come from, and where they go.
pub(crate) trait Pages {
    /// How many there may be.
    fn most(&self) -> usize;

    /// Asks for the page at `cursor`.
    fn ask(
        &self,
        cursor: Option<&str>,
    ) -> impl Future<Output = Result<Box<RawValue>, RequestFault>> + Send;

    /// Takes a page in; tells where the next starts.
    fn take(&mut self, page: &RawValue) -> Result<Option<String>, Fault>;

    /// Forgets every page.
    fn clear(&mut self);
}

/// Asks for every page, from the first to the last.
pub(crate) async fn walk(pages: &mut impl Pages) -> Result<(), RequestFault> {
    match attempt(pages).await {
        Err(Stop::CursorGone) => {
            pages.clear();
            attempt(pages).await.map_err(|stop| match stop {
                Stop::CursorGone => broken(ListingFault::CursorRefused),
                Stop::Fault(fault) => fault,
            })
        }
        Err(Stop::Fault(fault)) => Err(fault),
        Ok(()) => Ok(()),
    }
}

enum Stop {
    /// The server does not know the cursor that it gave itself.
    CursorGone,
    Fault(RequestFault),
}

async fn attempt(pages: &mut impl Pages) -> Result<(), Stop> {
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    let most = pages.most();
    for _ in 0..most {
        let page = pages.ask(cursor.as_deref()).await.map_err(|fault| match fault {
            RequestFault::Peer(error)
                if cursor.is_some() && error.code == error_code::INVALID_PARAMS =>
            {
                Stop::CursorGone
            }
            fault => Stop::Fault(fault),
        })?;
        cursor = pages.take(&page).map_err(|fault| Stop::Fault(RequestFault::Fault(fault)))?;
        match &cursor {
            None => return Ok(()),
            Some(next) if next.len() > CURSOR => {
                let bytes = next.len();
                return Err(stop(ListingFault::CursorTooLong { bytes, limit: CURSOR }));
            }
            Some(next) if !seen.insert(next.clone()) => {
                return Err(stop(ListingFault::RepeatedCursor));
            }
            Some(_) => {}
        }
    }
    Err(stop(ListingFault::TooManyPages { limit: most }))
}

fn broken(fault: ListingFault) -> RequestFault {
    RequestFault::Fault(Fault::Listing(fault))
}

fn stop(fault: ListingFault) -> Stop {
    Stop::Fault(broken(fault))
}

impl Connection {
    /// One page of a list, with its whole text; the first without a `cursor`.
    ///
    /// ```no_run
    /// # use plenipo_connect::{Connection, RequestOptions, Resource};
    /// # async fn f(connection: &Connection) -> Result<(), plenipo_connect::ConnectError> {
    /// let first = connection.page::<Resource>(None, &RequestOptions::default()).await?;
    /// println!("{} resources, more: {}", first.items.len(), first.next_cursor.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`].
    pub async fn page<T: Entry>(
        &self,
        cursor: Option<&str>,
        options: &RequestOptions,
    ) -> Result<Page<T>, ConnectError> {
        let params = write_cursor(cursor);
        let ask = Ask { method: T::METHOD, subject: None, params: &params, options };
        self.ask(ask, |result| {
            let mut list = Collected::<T>::default();
            let next_cursor = list.add(&result, T::MEMBER)?;
            let Listed { items, dropped } = list.0;
            Ok(Page { items, dropped, next_cursor, result: Fragment::from(result) })
        })
        .await
    }

    /// Every item; of a server without the capability none, and it is not asked.
    pub(crate) async fn list_all<T: Entry>(
        &self,
        options: &RequestOptions,
    ) -> Result<Listed<T>, ConnectError> {
        if !self.offers(T::CAPABILITY) {
            return Ok(Listed { items: Vec::new(), dropped: Vec::new() });
        }
        self.list_below::<T>(T::METHOD, None, options).await
    }

    /// Every item of the list that `method` gives, below `uri` if there is one.
    pub(crate) async fn list_below<T: Entry>(
        &self,
        method: &'static str,
        uri: Option<&str>,
        options: &RequestOptions,
    ) -> Result<Listed<T>, ConnectError> {
        let list = Collected::default();
        let mut pages = EntryPages { connection: self, method, uri, options, list };
        let fault = match walk(&mut pages).await {
            Ok(()) => return Ok(pages.list.0),
            Err(fault) => fault,
        };
        let operation = Operation::Request { method, subject: uri.map(str::to_owned) };
        Err(self.error(operation, fault))
    }

    /// Whether the server has the capability, or the extension.
    pub(crate) fn offers(&self, capability: &str) -> bool {
        self.setting(capability).is_some()
    }

    /// What the server says about a capability or an extension.
    pub(crate) fn setting(&self, capability: &str) -> Option<&RawValue> {
        let capabilities = self.capabilities().as_raw();
        match capability.contains('/') {
            false => object::member(capabilities, capability),
            true => object::member(object::member(capabilities, "extensions")?, capability),
        }
        .and_then(object::non_null)
    }
}

fn write_cursor(
    cursor: Option<&str>,
) -> impl Fn(&mut plenipo_wire::encode::ObjectWriter<'_>) + Sync + '_ {
    move |params| {
        if let Some(cursor) = cursor {
            params.string("cursor", cursor);
        }
    }
}

#[derive(Debug)]
struct Collected<T>(Listed<T>);

struct EntryPages<'a, T> {
    connection: &'a Connection,
    method: &'static str,
    uri: Option<&'a str>,
    options: &'a RequestOptions,
    list: Collected<T>,
}

impl<T: Entry> Pages for EntryPages<'_, T> {
    fn most(&self) -> usize {
        self.connection.options.max_list_pages
    }

    async fn ask(&self, cursor: Option<&str>) -> Result<Box<RawValue>, RequestFault> {
        let (method, subject, options) = (self.method, self.uri, self.options);
        let write_cursor = write_cursor(cursor);
        let params = |params: &mut plenipo_wire::encode::ObjectWriter<'_>| {
            if let Some(uri) = subject {
                params.string("uri", uri);
            }
            write_cursor(params);
        };
        self.connection.ask_raw(Ask { method, subject, params: &params, options }).await
    }

    fn take(&mut self, page: &RawValue) -> Result<Option<String>, Fault> {
        let next = self.list.add(page, T::MEMBER);
        let next = next.map_err(|source| Fault::BadAnswer { method: self.method, source })?;
        let limit = self.connection.options.max_list_items;
        match self.list.0.items.len().saturating_add(self.list.0.dropped.len()) > limit {
            true => Err(Fault::Listing(ListingFault::TooManyItems { limit })),
            false => Ok(next),
        }
    }

    fn clear(&mut self) {
        self.list = Collected::default();
    }
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self(Listed { items: Vec::new(), dropped: Vec::new() })
    }
}

impl<T: Entry> Collected<T> {
    /// Adds a page; tells where the next starts.
    fn add(&mut self, page: &RawValue, member: &'static str) -> Result<Option<String>, ViewError> {
        let view = PageView::from_raw(page, member)?;
        for item in view.items {
            match T::read(item) {
                Ok(item) => self.0.items.push(item),
                Err(fault) => self.0.dropped.push(fault),
            }
        }
        Ok(view.next_cursor.map(Into::into))
    }
}
