//! A connection and the calls a host makes on it.

use std::sync::Arc;

use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::{
    CallOutcome, CallRequest, Catalog, ConnectError, ConnectOptions, Connection, ServerName, Tool,
};
use plenipo_wire::Fragment;

use crate::situation::Situation;
use crate::{Outcome, auth, sample};

/// One server and the host around it.
#[derive(Debug)]
pub(crate) struct Host {
    connection: Connection,
}

/// Prints what the runtime warns about.
#[derive(Debug)]
struct Printer;

impl Observer for Printer {
    fn event(&self, event: &Event<'_>) {
        if let Event::Warning { text, .. } = event {
            eprintln!("warning: {text}");
        }
    }
}

impl Host {
    pub(crate) async fn connect(situation: &Situation) -> Outcome<Self> {
        let endpoint = auth::endpoint(situation)?;
        let name = ServerName::new("conformance").ok_or("name the server")?;
        let mut options = ConnectOptions::default();
        options.observer = Arc::new(Printer);
        let connection = Connection::connect(name, &endpoint, options).await?;
        println!("revision {}", connection.era().version());
        Ok(Self { connection })
    }

    pub(crate) async fn catalog(&self) -> Result<Arc<Catalog>, ConnectError> {
        let catalog = self.connection.catalog().await?;
        for dropped in catalog.dropped() {
            println!("dropped {}: {}", dropped.name.as_deref().unwrap_or("?"), dropped.reason);
        }
        Ok(catalog)
    }

    /// Calls a tool with what its schema asks for.
    pub(crate) async fn call_sample(&self, tool: &Tool) -> Outcome {
        let arguments = sample::arguments(tool.view()?.input_schema);
        self.call(tool.name(), arguments).await?;
        Ok(())
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Fragment,
    ) -> Result<CallOutcome, ConnectError> {
        let authority = self.connection.capture(None).await;
        let outcome =
            self.connection.call(CallRequest::new(tool, Some(arguments), authority)).await?;
        println!("{tool}: {}", outcome.result());
        Ok(outcome)
    }

    pub(crate) async fn leave(self) {
        self.connection.shut_down().await;
    }
}
