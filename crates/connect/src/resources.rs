//! Resources: what a server has to read.
//!
//! Everything in them is the server's, and untrusted. What is listed keeps its whole text; a view
//! of it is made on demand. To be told when one changes: [`Connection::subscribe`], in both eras.

use plenipo_wire::protocol::{extensions, methods};
use plenipo_wire::views::{ReadResult, ResourceTemplateView, ResourceView};
use plenipo_wire::{Fragment, RawValue, ViewError, object};

use crate::connection::Connection;
use crate::error::{ConnectError, Fault, Operation};
use crate::paging::{Entry, Listed};
use crate::peer::RequestFault;
use crate::request::{Ask, RequestOptions};

/// A resource as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    uri: String,
    raw: Fragment,
}

/// A template of URIs as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTemplate {
    uri_template: String,
    raw: Fragment,
}

/// What `resources/read` gave, as sent.
#[derive(Debug, Clone)]
pub struct ResourceRead {
    result: Box<RawValue>,
}

impl Resource {
    /// What [`Connection::read_resource`] takes.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The whole entry, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &Fragment {
        &self.raw
    }

    /// A view of the entry.
    ///
    /// # Errors
    /// None in practice: it was read once before.
    pub fn view(&self) -> Result<ResourceView<'_>, ViewError> {
        ResourceView::from_raw(self.raw.as_raw())
    }
}

impl ResourceTemplate {
    /// An RFC 6570 template. Filling it in is for the host.
    #[must_use]
    pub fn uri_template(&self) -> &str {
        &self.uri_template
    }

    /// The whole entry, unknown members included.
    #[must_use]
    pub fn raw(&self) -> &Fragment {
        &self.raw
    }

    /// A view of the entry.
    ///
    /// # Errors
    /// None in practice: it was read once before.
    pub fn view(&self) -> Result<ResourceTemplateView<'_>, ViewError> {
        ResourceTemplateView::from_raw(self.raw.as_raw())
    }
}

impl Entry for Resource {
    const METHOD: &'static str = methods::RESOURCES_LIST;
    const MEMBER: &'static str = "resources";
    const CAPABILITY: &'static str = "resources";

    fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let uri = ResourceView::from_raw(raw)?.uri.into_owned();
        Ok(Self { uri, raw: Fragment::from_raw(raw) })
    }
}

impl Entry for ResourceTemplate {
    const METHOD: &'static str = methods::RESOURCE_TEMPLATES_LIST;
    const MEMBER: &'static str = "resourceTemplates";
    const CAPABILITY: &'static str = "resources";

    fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let uri_template = ResourceTemplateView::from_raw(raw)?.uri_template.into_owned();
        Ok(Self { uri_template, raw: Fragment::from_raw(raw) })
    }
}

impl ResourceRead {
    /// The whole result, unknown members included.
    #[must_use]
    pub fn result(&self) -> &RawValue {
        &self.result
    }

    /// A view of the result.
    ///
    /// # Errors
    /// None in practice: it was read once before.
    pub fn view(&self) -> Result<ReadResult<'_>, ViewError> {
        ReadResult::from_raw(&self.result)
    }
}

impl Connection {
    /// Every resource that the server lists; none when it does not have the capability.
    ///
    /// ```no_run
    /// # use plenipo_connect::{Connection, RequestOptions};
    /// # async fn f(connection: &Connection) -> Result<(), plenipo_connect::ConnectError> {
    /// for resource in connection.resources(&RequestOptions::default()).await?.items {
    ///     println!("{}", resource.uri());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`].
    pub async fn resources(
        &self,
        options: &RequestOptions,
    ) -> Result<Listed<Resource>, ConnectError> {
        self.list_all(options).await
    }

    /// Every template of URIs that the server lists.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`].
    pub async fn resource_templates(
        &self,
        options: &RequestOptions,
    ) -> Result<Listed<ResourceTemplate>, ConnectError> {
        self.list_all(options).await
    }

    /// What is directly below a directory (skills extension, `directoryRead`); directories in it
    /// have the media type `inode/directory`.
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`]; [`Fault::NotOffered`] when the server does not
    /// say that it can.
    pub async fn directory(
        &self,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<Listed<Resource>, ConnectError> {
        let method = methods::DIRECTORY_READ;
        let setting = self.setting(extensions::SKILLS);
        let can = setting.and_then(|setting| object::member(setting, "directoryRead"));
        if can.and_then(object::boolean) != Some(true) {
            return Err(self.not_offered(method, Some(uri), "skills.directoryRead"));
        }
        self.list_below(method, Some(uri), options).await
    }

    /// Reads a resource, listed or not.
    ///
    /// ```no_run
    /// # use plenipo_connect::{Connection, RequestOptions};
    /// # async fn f(connection: &Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let read = connection.read_resource("file:///notes.txt", &RequestOptions::default()).await?;
    /// for contents in read.view()?.contents {
    ///     println!("{}", contents.text.as_deref().unwrap_or("(not text)"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] with [`Operation::Request`]; a resource that is not there is
    /// [`Fault::Peer`], see [`is_resource_missing`](crate::PeerError::is_resource_missing).
    pub async fn read_resource(
        &self,
        uri: &str,
        options: &RequestOptions,
    ) -> Result<ResourceRead, ConnectError> {
        let params =
            |params: &mut plenipo_wire::encode::ObjectWriter<'_>| params.string("uri", uri);
        let method = methods::RESOURCES_READ;
        let ask = Ask { method, subject: Some(uri), params: &params, options };
        self.ask(ask, |result| {
            ReadResult::from_raw(&result)?;
            Ok(ResourceRead { result })
        })
        .await
    }

    /// Nothing is asked of a server that does not offer it.
    pub(crate) fn not_offered(
        &self,
        method: &'static str,
        subject: Option<&str>,
        capability: &'static str,
    ) -> ConnectError {
        let operation = Operation::Request { method, subject: subject.map(str::to_owned) };
        self.error(operation, RequestFault::Fault(Fault::NotOffered { capability }))
    }
}
