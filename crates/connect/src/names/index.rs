//! All tools of many servers, to be looked up by any of their names.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use super::{ModelName, NameRules, model_names, namespaces};
use crate::catalog::{Catalog, Tool};
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::server_name::ServerName;

/// The tools of many servers at one moment. A look-up takes the same time however many there are.
///
/// It holds the servers' catalogs as they were; build another after a list changed.
#[derive(Debug)]
pub struct ToolIndex {
    servers: Vec<Server>,
    positions: HashMap<ServerName, usize>,
    entries: Vec<Entry>,
    by_model_name: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Server {
    name: ServerName,
    catalog: Arc<Catalog>,
    /// Where its tools are in the index.
    entries: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Entry {
    server: usize,
    /// Place in the server's catalog.
    place: usize,
    model_name: ModelName,
}

/// A tool and who has it.
#[derive(Debug, Clone, Copy)]
pub struct IndexedTool<'a> {
    server: &'a ServerName,
    tool: &'a Tool,
    model_name: &'a ModelName,
}

impl ToolIndex {
    /// Indexes catalogs in the order given; of a server given twice the first counts.
    #[must_use]
    pub fn new(
        catalogs: impl IntoIterator<Item = (ServerName, Arc<Catalog>)>,
        rules: &NameRules,
    ) -> Self {
        let mut servers: Vec<(ServerName, Arc<Catalog>)> = Vec::new();
        let mut positions = HashMap::new();
        for (name, catalog) in catalogs {
            if !positions.contains_key(&name) {
                positions.insert(name.clone(), servers.len());
                servers.push((name, catalog));
            }
        }
        let names: Vec<&str> = servers.iter().map(|(name, _)| name.as_str()).collect();
        let spaces = namespaces(&names, rules);
        let mut placed: Vec<(usize, usize, Arc<str>)> = Vec::new();
        let mut parts = Vec::new();
        for (server, ((name, catalog), space)) in servers.iter().zip(&spaces).enumerate() {
            for (place, tool) in catalog.places() {
                placed.push((server, place, Arc::clone(tool.shared_name())));
                parts.push((space.as_str(), name.as_str(), tool.name()));
            }
        }
        let model_names = model_names(&parts, rules);
        drop(parts);
        let mut index = Self {
            positions,
            by_model_name: HashMap::with_capacity(placed.len()),
            entries: Vec::with_capacity(placed.len()),
            servers: servers.into_iter().map(Server::new).collect(),
        };
        for ((server, place, name), model_name) in placed.into_iter().zip(model_names) {
            index.add(Entry { server, place, model_name }, name);
        }
        index
    }

    /// Indexes what connections list, all at once, and tells which could not.
    pub async fn of<'c>(
        connections: impl IntoIterator<Item = &'c Connection>,
        rules: &NameRules,
    ) -> (Self, Vec<ConnectError>) {
        let (mut catalogs, mut failed) = (Vec::new(), Vec::new());
        let listing = connections.into_iter().map(|connection| async move {
            connection.catalog().await.map(|catalog| (connection.name().clone(), catalog))
        });
        for listed in all(listing).await {
            match listed {
                Ok(named) => catalogs.push(named),
                Err(error) => failed.push(error),
            }
        }
        (Self::new(catalogs, rules), failed)
    }

    fn add(&mut self, entry: Entry, name: Arc<str>) {
        let at = self.entries.len();
        if let Some(server) = self.servers.get_mut(entry.server) {
            server.entries.insert(name, at);
        }
        self.by_model_name.insert(entry.model_name.shared(), at);
        self.entries.push(entry);
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All tools, in the order of servers and of their lists.
    pub fn tools(&self) -> impl Iterator<Item = IndexedTool<'_>> {
        self.entries.iter().filter_map(|entry| self.tool(entry))
    }

    /// The tool that a model means by `namespace__name`.
    #[must_use]
    pub fn by_model_name(&self, name: &str) -> Option<IndexedTool<'_>> {
        self.at(*self.by_model_name.get(name)?)
    }

    /// The tool by its server and the server's own spelling.
    #[must_use]
    pub fn by_server(&self, server: &str, tool: &str) -> Option<IndexedTool<'_>> {
        let server = self.servers.get(*self.positions.get(server)?)?;
        self.at(*server.entries.get(tool)?)
    }

    /// The tool that a person means by `server.tool`. Both names may have dots: of the servers that
    /// have such a tool, the one with the longest name counts.
    #[must_use]
    pub fn by_qualified_name(&self, name: &str) -> Option<IndexedTool<'_>> {
        let dots = name.rmatch_indices('.').map(|(at, _)| name.split_at(at));
        dots.filter_map(|(server, rest)| self.by_server(server, rest.strip_prefix('.')?)).next()
    }

    fn at(&self, index: usize) -> Option<IndexedTool<'_>> {
        self.tool(self.entries.get(index)?)
    }

    fn tool<'a>(&'a self, entry: &'a Entry) -> Option<IndexedTool<'a>> {
        let server = self.servers.get(entry.server)?;
        let tool = server.catalog.at(entry.place)?;
        Some(IndexedTool { server: &server.name, tool, model_name: &entry.model_name })
    }
}

impl Server {
    fn new((name, catalog): (ServerName, Arc<Catalog>)) -> Self {
        Self { name, catalog, entries: HashMap::new() }
    }
}

impl<'a> IndexedTool<'a> {
    /// Whose it is.
    #[must_use]
    pub fn server(&self) -> &'a ServerName {
        self.server
    }

    /// As listed; its name is what a call has to say.
    #[must_use]
    pub fn tool(&self) -> &'a Tool {
        self.tool
    }

    /// What a model calls it.
    #[must_use]
    pub fn model_name(&self) -> &'a ModelName {
        self.model_name
    }

    /// `server.tool`, for people.
    #[must_use]
    pub fn qualified(&self) -> String {
        format!("{}.{}", self.server, self.tool.name())
    }
}

/// Every output, in the order given.
async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut places: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut waits = false;
        for (future, output) in &mut places {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    places.into_iter().filter_map(|(_, output)| output).collect()
}
