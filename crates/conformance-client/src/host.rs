//! A connection and the calls a host makes on it.

use std::sync::Arc;

use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::{
    CallOutcome, CallRequest, Catalog, ConnectError, ConnectOptions, Connection, RequestOptions,
    ServerName, Skill, Tool,
};
use plenipo_wire::Fragment;
use tempfile::TempDir;

use crate::person::Person;
use crate::situation::Situation;
use crate::{Outcome, auth, sample};

/// One server and the host around it.
#[derive(Debug)]
pub(crate) struct Host {
    connection: Connection,
    /// Removed when dropped.
    _credentials: Option<TempDir>,
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
        let ready = auth::endpoint(situation).await?;
        let name = ServerName::new("conformance").ok_or("name the server")?;
        let mut options = ConnectOptions::default();
        options.observer = Arc::new(Printer);
        options.input = Some(Arc::new(Person));
        let connection = Connection::connect(name, &ready.endpoint, options).await?;
        println!("revision {}", connection.era().version());
        Ok(Self { connection, _credentials: ready.store })
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

    /// Lists the resources and reads each.
    pub(crate) async fn read_resources(&self) -> Outcome {
        let options = RequestOptions::default();
        for resource in self.connection.resources(&options).await?.items {
            let read = self.connection.read_resource(resource.uri(), &options).await?;
            println!("{}: {} contents", resource.uri(), read.view()?.contents.len());
        }
        Ok(())
    }

    /// Lists the prompts and fills each in.
    pub(crate) async fn fill_in_prompts(&self) -> Outcome {
        let options = RequestOptions::default();
        for prompt in self.connection.prompts(&options).await?.items {
            let view = prompt.view()?;
            let required = view.arguments.iter().filter(|argument| argument.required);
            let arguments: Vec<_> = required.map(|argument| (&*argument.name, "sample")).collect();
            let filled = self.connection.prompt(prompt.name(), &arguments, &options).await?;
            println!("{}: {} messages", prompt.name(), filled.view()?.messages.len());
        }
        Ok(())
    }

    pub(crate) async fn skills(&self) -> Result<Vec<Skill>, ConnectError> {
        let listed = self.connection.skills(&RequestOptions::default()).await?;
        for fault in &listed.dropped {
            println!("dropped: {fault}");
        }
        Ok(listed.items)
    }

    /// Loads a skill and reads the rest of its files.
    pub(crate) async fn use_skill(&self, skill: &Skill) -> Outcome {
        let options = RequestOptions::default();
        let loaded = self.connection.load_skill(skill, &options).await?;
        let files = skill.view()?.files.unwrap_or_default();
        for file in files.iter().filter(|file| file.uri != skill.uri()) {
            let bytes = self.connection.read_skill_file(&loaded, &file.uri, &options).await?;
            println!("{}: {} bytes", file.uri, bytes.len());
        }
        Ok(())
    }

    pub(crate) async fn leave(self) {
        self.connection.shut_down().await;
    }
}
