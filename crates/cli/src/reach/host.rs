//! What a program that starts servers has for all of them.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plenipo_config::{HttpSettings, IdentityProviderConfig, Inherit};
use plenipo_connect::approval::ApprovalDecision;
use plenipo_connect::memory::Memory;
use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::{
    ConnectOptions, HttpClient, HttpEndpoint, LauncherProvider, ServerName, StdioCommand,
    environment,
};
use plenipo_credentials::Vault;
use plenipo_keeper::Keeper;

use crate::arguments::Global;
use crate::credentials::enterprise::Company;
use crate::failure::{Code, Failure};
use crate::memory::Files;
use crate::settings::Settings;
use crate::{authority, credentials, env, terminal};

/// What every start needs.
pub(crate) struct Host<'a> {
    global: &'a Global,
    settings: &'a Settings,
    launcher: Arc<LauncherProvider>,
    /// One pool for all of them.
    http: HttpClient,
    /// Where tokens are kept; opened when one is needed.
    vault: Vault,
    /// The company's, for servers that it manages.
    provider: Option<IdentityProviderConfig>,
    /// Whose tokens, where there are several people's.
    account: Option<String>,
    /// What earlier runs learnt about configured servers.
    memory: Option<Arc<dyn Memory>>,
    /// Where servers start.
    directory: PathBuf,
    /// What the operator passes on to the built-in server's commands beside the usual.
    environment: Vec<(OsString, OsString)>,
    /// Made when the first local server is about to start.
    keeper: OnceCell<Option<Keeper>>,
    /// Who said that the call may be made.
    decided: Arc<OnceLock<ApprovalDecision>>,
}

impl<'a> Host<'a> {
    /// `directory` is where the call's profile applies.
    pub(crate) fn new(global: &'a Global, settings: &'a Settings, directory: &Path) -> Self {
        let launcher = match authority::launcher(settings) {
            Ok(source) => LauncherProvider::new(source),
            Err(reason) => {
                terminal::warn(&format!("no launcher is sent: {reason}"));
                LauncherProvider::none()
            }
        };
        let http = HttpClient::new(env::http_client_options());
        let policy = settings.environment_policy();
        let environment = policy
            .filter(|policy| policy.inherit == Some(Inherit::All))
            .map(|policy| policy.apply(env::variables(), false))
            .unwrap_or_default();
        let memory =
            env::data_directory().map(|data| Arc::new(Files::below(&data)) as Arc<dyn Memory>);
        let directory = directory.to_path_buf();
        let (launcher, keeper) = (Arc::new(launcher), OnceCell::new());
        let (decided, vault, account) = (Arc::default(), credentials::vault(settings), None);
        Self {
            global,
            settings,
            launcher,
            http,
            vault,
            provider: settings.identity_provider().cloned(),
            account,
            memory,
            directory,
            environment,
            keeper,
            decided,
        }
    }

    /// Lets a server behind a URL have a token, by the one way that its configuration has.
    pub(super) fn authorize(
        &self,
        name: &ServerName,
        endpoint: &mut HttpEndpoint,
        settings: &HttpSettings,
    ) -> Result<(), Failure> {
        let person = self.account.as_deref();
        let Some(enterprise) = &settings.enterprise else {
            let how = (&self.http, &self.vault, person);
            return credentials::authorize(name, endpoint, settings, how);
        };
        let company = Company {
            provider: self.provider.as_ref(),
            http: &self.http,
            vault: &self.vault,
            person,
        };
        credentials::enterprise::authorize(name, endpoint, (settings, enterprise), &company)
    }

    pub(super) fn settings(&self) -> &'a Settings {
        self.settings
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.global.verbose
    }

    /// Where servers start.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn memory(&self) -> Option<Arc<dyn Memory>> {
        self.memory.clone()
    }

    /// With the tokens of this person.
    #[must_use]
    pub(crate) fn acting_as(mut self, account: Option<&str>) -> Self {
        self.account = account.map(str::to_owned);
        self
    }

    /// Nothing that a local server starts is left when this program ends, however it ends.
    pub(super) fn keep(&self, options: &mut ConnectOptions) {
        if let Some(keeper) = self.keeper.get_or_init(start_keeper) {
            if let Some(data) = env::data_directory() {
                keeper.take_turns_in(data.join("ending"));
            }
            options.spawner = Arc::new(keeper.clone());
        }
    }

    /// With a keeper that was started already, or could not be.
    #[must_use]
    pub(crate) fn kept_by(mut self, keeper: Option<Option<Keeper>>) -> Self {
        self.keeper = keeper.map(OnceCell::from).unwrap_or_default();
        self
    }

    /// Where the first decision about a call is kept.
    #[must_use]
    pub(crate) fn deciding(mut self, decided: &Arc<OnceLock<ApprovalDecision>>) -> Self {
        self.decided = Arc::clone(decided);
        self
    }

    pub(super) fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        let decided = Arc::clone(&self.decided);
        options.observer = Arc::new(Voice { verbose: self.global.verbose, decided });
        options.launcher = Arc::clone(&self.launcher);
        options.http = self.http.clone();
        options
    }

    /// This very program as the built-in server.
    pub(super) fn own_server(&self) -> Result<StdioCommand, Failure> {
        let executable = env::executable().map_err(|error| {
            let message = format!("failed to find this program's own file: {error}");
            Failure::new(Code::Transport, message)
        })?;
        let mut command = StdioCommand::new(executable);
        if let Some(file) = self.configuration() {
            command.args([OsStr::new("--config"), file.as_os_str()]);
        }
        command.args(["server", "workspace"]);
        let lookup = |name: &str| env::variable(name);
        let mut variables = environment::build(&lookup, &[], &BTreeMap::new());
        let present = |name: &OsStr| variables.iter().any(|(present, _)| present == name);
        let more: Vec<_> =
            self.environment.iter().filter(|(name, _)| !present(name)).cloned().collect();
        variables.extend(more);
        command.environment(variables);
        Ok(command)
    }

    /// The built-in server gets a short environment, so a configuration that was named in this one is named to it.
    fn configuration(&self) -> Option<PathBuf> {
        let named = self.global.config.clone();
        let named = named.or_else(|| env::variable("PLENIPO_CONFIG").map(Into::into));
        let usual = || {
            let file = env::configuration_directory()?.join("plenipo.toml");
            file.is_file().then_some(file)
        };
        named.and_then(|file| std::path::absolute(file).ok()).or_else(usual)
    }
}

/// Before anything starts a thread.
pub(super) fn start_keeper() -> Option<Keeper> {
    match Keeper::start() {
        Ok(keeper) => Some(keeper),
        Err(error) => {
            terminal::warn(&format!("servers may outlive this program: {error}"));
            None
        }
    }
}

/// What a connection has to say, on stderr.
struct Voice {
    verbose: bool,
    decided: Arc<OnceLock<ApprovalDecision>>,
}

impl Observer for Voice {
    fn event(&self, event: &Event<'_>) {
        let dim = |text: String| terminal::tell(&terminal::stderr().dim(&text));
        match event {
            Event::Warning { server, text } => {
                terminal::warn(&format!("server `{server}`: {text}"))
            }
            Event::Approval { decision, .. } => {
                self.decided.get_or_init(|| *decision);
            }
            Event::Stderr { server, line } if self.verbose => dim(format!("[{server}] {line}")),
            Event::Log { server, params } if self.verbose => {
                dim(format!("[{server}] {}", params.get()))
            }
            _ => {}
        }
    }
}
