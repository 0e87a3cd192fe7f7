//! How the servers of the configuration are reached: what `call`, `tools` and `servers` have in common.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plenipo_config::{
    EnvironmentSettings, HttpSettings, IdentityProviderConfig, Inherit, ServerConfig, ServerState,
    StartContext, TransportSettings,
};
use plenipo_connect::approval::ApprovalDecision;
use plenipo_connect::environment::BindFault;
use plenipo_connect::memory::Memory;
use plenipo_connect::observer::{Event, Observer};
use plenipo_connect::{
    ConnectError, ConnectOptions, Endpoint, EraHint, Fault, HttpClient, HttpEndpoint,
    LauncherProvider, Member, ServerName, ShutdownPolicy, StdioCommand, environment,
};
use plenipo_credentials::Vault;
use plenipo_keeper::Keeper;

use crate::arguments::Global;
use crate::credentials::enterprise::Company;
use crate::failure::{Code, Failure};
use crate::memory::Files;
use crate::settings::Settings;
use crate::{authority, confined, credentials, env, terminal};

/// A server that may be started.
pub(crate) struct Reachable {
    pub(crate) name: ServerName,
    /// Absent for the built-in server.
    config: Option<ServerConfig>,
}

/// Why a server may not be started.
pub(crate) enum Unreachable {
    /// Switched off, with the reason.
    Disabled(String),
    /// Its configuration is wrong.
    Faulty(Failure),
}

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

impl Reachable {
    /// The built-in server.
    pub(crate) fn workspace() -> Self {
        Self { name: ServerName::workspace(), config: None }
    }

    /// A server by its name; `None` if nothing has that name.
    pub(crate) fn find(settings: &Settings, name: &str) -> Option<Result<Self, Unreachable>> {
        if name == ServerName::WORKSPACE {
            return Some(Ok(Self::workspace()));
        }
        let (name, config) = settings.server(name)?;
        Some(match config {
            Ok(config) => match &config.state {
                ServerState::Disabled { reason } => Err(Unreachable::Disabled(reason.clone())),
                _ => Ok(Self { name, config: Some(config) }),
            },
            Err(error) => Err(Unreachable::Faulty(error.into())),
        })
    }

    /// Every server, the configured ones by name and then the built-in one.
    pub(crate) fn all(settings: &Settings) -> Vec<(ServerName, Result<Self, Unreachable>)> {
        let mut names: Vec<&ServerName> = settings.server_names().collect();
        names.sort();
        names.dedup();
        let configured = names
            .into_iter()
            .filter_map(|name| Some((name.clone(), Self::find(settings, name.as_str())?)));
        configured.chain([(ServerName::workspace(), Ok(Self::workspace()))]).collect()
    }

    /// The host fails when this server does.
    pub(crate) fn is_required(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.required)
    }

    /// `stdio`, `http` or `built-in`.
    pub(crate) fn transport(&self) -> &'static str {
        match &self.config {
            None => "built-in",
            Some(config) => match config.transport {
                TransportSettings::Http(_) => "http",
                _ => "stdio",
            },
        }
    }

    /// Whether it is a process of this machine, of somebody else's program.
    pub(crate) fn is_local(&self) -> bool {
        self.config.as_ref().is_some_and(|config| {
            config.environment_id.is_none()
                && matches!(config.transport, TransportSettings::Stdio(_))
        })
    }

    /// Where it runs, if that is not this machine.
    pub(crate) fn environment<'s>(
        &self,
        settings: &'s Settings,
    ) -> Result<Option<&'s EnvironmentSettings>, Failure> {
        let local = match &self.config {
            None => true,
            Some(config) => matches!(config.transport, TransportSettings::Stdio(_)),
        };
        let Some(id) = self.config.as_ref().and_then(|config| config.environment_id.as_ref())
        else {
            if local && !settings.has_local_environment()? {
                let message = format!(
                    "server `{}` requires a local environment, which is switched off",
                    self.name
                );
                return Err(Failure::usage(message).with_hint(
                    "`environments.local.enabled = false` stands in the configuration",
                ));
            }
            return Ok(None);
        };
        match settings.environment(id) {
            Some(found) => Ok(Some(found?)),
            None => {
                let message =
                    format!("server `{}` references unknown environment id `{id}`", self.name);
                Err(Failure::usage(message).with_hint(format!(
                    "define [environments.{id}] in your own or the managed configuration"
                )))
            }
        }
    }

    /// The same server outside of any sandbox, whatever its configuration says.
    #[must_use]
    pub(crate) fn unconfined(mut self) -> Self {
        if let Some(config) = &mut self.config {
            config.sandbox = Some(ServerConfig::UNCONFINED.to_owned());
        }
        self
    }

    /// Names of the variables that its configuration sets.
    pub(crate) fn variables_set(&self) -> impl Iterator<Item = &str> {
        let stdio = self.config.iter().filter_map(|config| match &config.transport {
            TransportSettings::Stdio(stdio) => Some(stdio),
            _ => None,
        });
        stdio.flat_map(|stdio| stdio.env.keys().chain(&stdio.env_vars)).map(String::as_str)
    }

    /// The profile that the server itself runs under. The built-in server and servers elsewhere have none.
    pub(crate) fn confinement<'s>(&'s self, settings: &'s Settings) -> Option<&'s str> {
        let config = self.config.as_ref().filter(|config| config.environment_id.is_none())?;
        let TransportSettings::Stdio(_) = config.transport else { return None };
        let profile = config.sandbox.as_deref().or_else(|| settings.sandbox_of_servers());
        profile.filter(|profile| *profile != ServerConfig::UNCONFINED)
    }

    /// The server's own directory over there, else the environment's.
    pub(crate) fn directory_in(
        &self,
        place: &EnvironmentSettings,
    ) -> Result<Option<PathBuf>, Failure> {
        let own = match self.config.as_ref().map(|config| &config.transport) {
            Some(TransportSettings::Stdio(stdio)) => stdio.cwd.as_ref(),
            _ => None,
        };
        let home = env::home();
        let lookup = |name: &str| env::variable(name);
        let mut context = StartContext::new(&lookup);
        context.home = home.as_deref();
        let own = own.map(|cwd| cwd.expand(&context)).transpose()?;
        Ok(own.or_else(|| place.cwd.clone()).map(PathBuf::from))
    }

    /// Its keeper, when it will be a process of this machine: started early, it is ready when it is needed.
    pub(crate) fn start_keeper(&self) -> Option<Option<Keeper>> {
        (self.transport() != "http").then(start_keeper)
    }

    /// The server with everything filled in that its start needs.
    pub(crate) fn member(&self, host: &Host<'_>) -> Result<Member, Failure> {
        let mut options = host.options();
        let place = self.environment(host.settings)?;
        if let Some(place) = place {
            place.apply_to(&mut options);
        }
        let Some(config) = &self.config else {
            options.era = EraHint::Legacy; // both are spoken; this one takes no probe
            host.keep(&mut options);
            return Ok(Member::new(self.name.clone(), host.own_server()?, options));
        };
        config.apply_to(&mut options);
        if host.global.verbose {
            // Its last words are wanted, too.
            options.shutdown = ShutdownPolicy::Wait;
        }
        options.memory = host.memory.clone();
        let lookup = |name: &str| env::variable(name);
        let home = env::home();
        let mut context = StartContext::new(&lookup);
        context.home = home.as_deref();
        context.directory = Some(&host.directory);
        for warning in &config.warnings {
            terminal::warn(&warning.to_string());
        }
        let mut endpoint = match (place, &config.transport) {
            (Some(place), TransportSettings::Stdio(stdio)) => {
                let bound = place.environment(&context)?.bind(&stdio.command_elsewhere(&context)?);
                Endpoint::from(bound.map_err(|fault| not_bound(&self.name, &fault))?)
            }
            _ => config.endpoint(&context)?,
        };
        if let (Some(profile), Endpoint::Stdio(command)) =
            (self.confinement(host.settings), &endpoint)
        {
            endpoint =
                Endpoint::from(confined::command(host.settings, &self.name, profile, command)?);
        }
        match &mut endpoint {
            // Nothing is listened for between a command's few requests.
            Endpoint::Http(http) => {
                http.server_stream(false);
                if let TransportSettings::Http(settings) = &config.transport {
                    host.authorize(&self.name, http, settings)?;
                }
            }
            _ => host.keep(&mut options),
        }
        Ok(Member::new(self.name.clone(), endpoint, options))
    }
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
    fn authorize(
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

    /// With the tokens of this person.
    #[must_use]
    pub(crate) fn acting_as(mut self, account: Option<&str>) -> Self {
        self.account = account.map(str::to_owned);
        self
    }

    /// Nothing that a local server starts is left when this program ends, however it ends.
    fn keep(&self, options: &mut ConnectOptions) {
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

    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        let decided = Arc::clone(&self.decided);
        options.observer = Arc::new(Voice { verbose: self.global.verbose, decided });
        options.launcher = Arc::clone(&self.launcher);
        options.http = self.http.clone();
        options
    }

    /// This very program as the built-in server.
    fn own_server(&self) -> Result<StdioCommand, Failure> {
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

/// Of a connection to a server in `place`: what ended, or is missing, is the command that leads there, or something
/// over there. Nothing of this machine's environment would help.
pub(crate) fn failed_in_place(error: ConnectError, place: Option<&EnvironmentSettings>) -> Failure {
    let Some(EnvironmentSettings { id, .. }) = place else { return error.into() };
    let hint = match error.fault() {
        Fault::ProgramNotFound { .. } | Fault::InterpreterMissing { .. } => {
            format!("check `command` of [environments.{id}]")
        }
        Fault::Exited { how } => match how.code() {
            Some(126) => format!(
                "over there the `cwd` is missing, or the program cannot be run: see `cwd` of the server and of \
                 [environments.{id}]"
            ),
            Some(127) => {
                "over there the program was not found: give its whole path in `command`".to_owned()
            }
            Some(255) => format!(
                "255 is how ssh says that it failed itself; run the `command` of [environments.{id}] by hand, with \
                 `true` at its end"
            ),
            _ => format!(
                "what leads to environment `{id}`, or the server over there, ended: run the `command` of \
                 [environments.{id}] by hand, with the server's at its end"
            ),
        },
        Fault::OutputClosed => format!("run the `command` of [environments.{id}] by hand"),
        _ => return error.into(),
    };
    Failure::from(error).with_hint(hint)
}

/// A server that cannot be brought to its environment.
fn not_bound(server: &ServerName, fault: &BindFault) -> Failure {
    let failure = Failure::usage(format!("failed to start server `{server}`: {fault}"));
    match fault {
        BindFault::CannotForward { .. } => failure.with_hint(
            "set `forward_env` and `{env}` if the command can pass variables on by name, or set \
             them over there",
        ),
        BindFault::OfThePrefix { .. } => failure.with_hint("set it over there"),
        _ => failure,
    }
}

/// Before anything starts a thread.
fn start_keeper() -> Option<Keeper> {
    match Keeper::start() {
        Ok(keeper) => Some(keeper),
        Err(error) => {
            terminal::warn(&format!("servers may outlive this program: {error}"));
            None
        }
    }
}

impl Unreachable {
    /// As a failure of a command that needs this very server.
    pub(crate) fn into_failure(self, name: &str) -> Failure {
        match self {
            Self::Disabled(reason) => {
                Failure::usage(format!("server `{name}` is disabled: {reason}"))
            }
            Self::Faulty(failure) => failure,
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
