//! `plenipo login` and `plenipo logout`.

mod browser;
mod device;
mod listener;
mod page;
mod status;

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use http::{Request, header};
use plenipo_config::{OAuthConfig, StartContext, TransportSettings};
use plenipo_connect::oauth::{OAuthNetwork, OAuthSettings, Wish, stored};
use plenipo_connect::{HttpClient, HttpEndpoint, ServerName};
use plenipo_credentials::{Record, Vault};
use plenipo_oauth::{
    Asked, ClientRegistration, Demand, ErrorKind, HttpClient as _, Issuer, OAuthError,
    OutgoingRequest, RegistrationSource, Revoked, Scopes, ServerMetadata, SignIn, SignedIn,
    TokenEndpoint, revoke,
};
use plenipo_redact::Secret;

use crate::arguments::{Global, LoginArguments};
use crate::failure::{Code, Failure, with_sources};
use crate::serve::runtime;
use crate::settings::Settings;
use crate::{credentials, env, terminal};
use listener::Listener;

pub(crate) use status::run as status;

/// A person who does not come back in this time has left.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server to sign in to.
struct Target {
    name: ServerName,
    config: OAuthConfig,
    settings: OAuthSettings,
    network: OAuthNetwork,
}

/// Signs in to a server.
pub(crate) fn login(global: &Global, login: &LoginArguments) -> Result<ExitCode, Failure> {
    let mut target = Target::find(global, &login.server)?;
    if let Some(scopes) = &login.scopes {
        let scopes = Scopes::parse(scopes)
            .map_err(|fault| Failure::usage(format!("the scopes of --scopes {fault}")))?;
        target.settings.scopes = Some(scopes);
    }
    let vault = credentials::vault()?;
    runtime()?.block_on(async {
        let asked = target.challenge().await?;
        let registered = target.registered(&vault)?;
        let mut wish = Wish::new(&target.settings, &target.network, &asked);
        wish.registered = &registered;
        let signed_in = match login.device {
            true => device::sign_in(&target, wish).await?,
            false => target.with_browser(wish, login).await?,
        };
        target.keep(&vault, &signed_in)
    })
}

/// Gives the tokens of a server back, and forgets them.
pub(crate) fn logout(global: &Global, server: &str) -> Result<ExitCode, Failure> {
    let target = Target::find(global, server)?;
    let vault = credentials::vault()?;
    let records = target.records(&vault)?;
    if records.is_empty() {
        terminal::tell(&format!("nobody is signed in to `{}`", target.name));
        return Ok(ExitCode::SUCCESS);
    }
    runtime()?.block_on(async {
        for record in records {
            // Forgotten first: whatever the issuer says, this program has it no longer.
            vault.sign_out(&record.key).map_err(|error| target.store_failed(&error))?;
            if let Err(error) = target.give_back(&record).await {
                terminal::warn(&format!(
                    "the token was forgotten here, but not revoked: {}",
                    with_sources(&error)
                ));
            }
            terminal::tell(&format!("signed out of `{}` at {}", target.name, record.key.issuer));
        }
        Ok(ExitCode::SUCCESS)
    })
}

impl Target {
    fn find(global: &Global, name: &str) -> Result<Self, Failure> {
        let settings = Settings::load(global.config.as_deref())?;
        for warning in settings.warnings() {
            terminal::warn(warning);
        }
        if let Some(refusal) = settings.refused_server(name) {
            return Err(refusal);
        }
        let (name, config) = settings
            .server(name)
            .ok_or_else(|| Failure::usage(format!("there is no server `{name}`")))?;
        let config = config?;
        let TransportSettings::Http(http) = &config.transport else {
            return Err(Failure::usage(format!(
                "server `{name}` is started here: its credentials come from its environment"
            )));
        };
        if !http.may_sign_in() {
            return Err(Failure::usage(format!(
                "server `{name}` has credentials in its configuration, which go before a sign-in"
            )));
        }
        let lookup = |name: &str| env::variable(name);
        let home = env::home();
        let mut context = StartContext::new(&lookup);
        context.home = home.as_deref();
        let endpoint: HttpEndpoint = http.endpoint(&context)?;
        let settings = credentials::settings(&name, &endpoint, &http.oauth)?.ok_or_else(|| {
            Failure::usage(format!(
                "server `{name}` is at {}, where no token may go: only https, or http on loopback",
                endpoint.origin()
            ))
        })?;
        let client = HttpClient::new(env::http_client_options());
        let network = OAuthNetwork::new(client, settings.server.clone());
        Ok(Self { name, config: (*http.oauth).clone(), settings, network })
    }

    /// What the server says to one who is not signed in. Nothing, if it does not mind.
    async fn challenge(&self) -> Result<Asked, Failure> {
        const PROBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}"#;
        let message = Request::post(self.settings.server.uri())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Secret::new(PROBE.as_bytes().to_vec()));
        let message = message.map_err(|error| self.failed(&error.to_string()))?;
        let mut request = OutgoingRequest::new(message, self.network.addresses());
        request.timeout = Duration::from_secs(10);
        let response = match self.network.send(request).await {
            Ok(response) => response,
            // A stream without end is an answer as well; one that cannot be reached is none.
            Err(error) => {
                let error = format!("the server cannot be reached: {}", with_sources(&error));
                return Err(Failure::new(Code::Transport, self.sentence(&error)));
            }
        };
        match Demand::of(response.status(), response.headers()) {
            Some(Demand::Token(asked) | Demand::MoreScopes(asked)) => Ok(asked),
            _ => Ok(Asked::default()),
        }
    }

    /// With a page in the browser, which sends it back to a listener here; or its address is pasted.
    async fn with_browser(
        &self,
        wish: Wish<'_>,
        login: &LoginArguments,
    ) -> Result<SignedIn, Failure> {
        let listener = self.listen(wish.registered).await?;
        let redirect_uri = listener.redirect_uri();
        let options = wish.options(&redirect_uri).map_err(|error| self.oauth_failed(error))?;
        let http = self.network.http();
        let begun = SignIn::begin(&http, &options).await;
        let sign_in = begun.map_err(|error| self.oauth_failed(error))?;
        if login.no_browser {
            terminal::print(&format!("{}\n", sign_in.url.expose()))?;
        } else {
            terminal::tell(&format!("sign in to `{}` on this page:", self.name));
            terminal::tell(sign_in.url.expose());
            browser::open(&sign_in.url);
        }
        terminal::tell(
            "waiting; or paste the address that the browser is sent to, and press Enter",
        );
        let answered = tokio::time::timeout(PATIENCE, listener.answer(&sign_in.pending)).await;
        let (answer, visitor) = match answered {
            Ok(answer) => answer.map_err(|error| self.failed(&error.to_string()))?,
            Err(_) => {
                let text = format!("nobody came back within {} s", PATIENCE.as_secs());
                return Err(Failure::new(Code::Timeout, self.sentence(&text)));
            }
        };
        let finished = sign_in.finish(&http, answer.expose()).await;
        if let Some(visitor) = visitor {
            let told = finished.as_ref().map(drop).map_err(with_sources_of);
            visitor.tell(&self.name, told).await;
        }
        finished.map_err(|error| self.oauth_failed(error))
    }

    /// The configured port, else one that a client was registered with, else any.
    async fn listen(&self, registered: &[ClientRegistration]) -> Result<Listener, Failure> {
        if let Some(port) = self.config.callback_port {
            return Listener::bind(port).await.map_err(|error| {
                let text = format!("port {port} of `oauth.callback_port` cannot be used: {error}");
                Failure::new(Code::Transport, self.sentence(&text))
                    .with_hint("end what uses it, or set another port")
            });
        }
        let ports = registered.iter().flat_map(|client| &client.redirect_uris);
        for port in ports.filter_map(|uri| listener::port_of(uri)) {
            if let Ok(listener) = Listener::bind(port).await {
                return Ok(listener);
            }
        }
        let any = Listener::bind(0).await;
        any.map_err(|error| self.failed(&format!("no port can be listened on: {error}")))
    }

    fn keep(&self, vault: &Vault, signed_in: &SignedIn) -> Result<ExitCode, Failure> {
        let (key, grant) = stored(signed_in, &self.network);
        let kept = vault.sign_in(&key, grant).map_err(|error| self.store_failed(&error))?;
        let who = kept.grant.as_ref().and_then(|grant| grant.account.clone());
        let who = who.map(|who| format!(" as {who}")).unwrap_or_default();
        let scopes = signed_in.scopes.as_ref().map(|scopes| format!(", scopes: {scopes}"));
        terminal::tell(&format!(
            "signed in to `{}`{who} at {}{}",
            self.name,
            key.issuer,
            scopes.unwrap_or_default()
        ));
        Ok(ExitCode::SUCCESS)
    }

    /// Stored credentials of this server.
    fn records(&self, vault: &Vault) -> Result<Vec<Record>, Failure> {
        let records = vault.records().map_err(|error| self.store_failed(&error))?;
        let fits = |record: &Record| record.grant.is_some() && self.settings.covers(record);
        Ok(records.into_iter().filter(fits).collect())
    }

    /// Clients that were registered for this server before, the newest first.
    fn registered(&self, vault: &Vault) -> Result<Vec<ClientRegistration>, Failure> {
        let mut grants: Vec<_> =
            self.records(vault)?.into_iter().filter_map(|record| record.grant).collect();
        grants.sort_by_key(|grant| std::cmp::Reverse(grant.obtained_at));
        let clients = grants.into_iter().map(|grant| grant.client);
        Ok(clients.filter(|client| client.source == RegistrationSource::Dynamic).collect())
    }

    async fn give_back(&self, record: &Record) -> Result<(), OAuthError> {
        let Some(grant) = &record.grant else { return Ok(()) };
        let http = self.network.http();
        let issuer: &Issuer = &record.key.issuer;
        if grant.endpoints_assumed {
            return Ok(());
        }
        let metadata = ServerMetadata::discover(&http, issuer).await?;
        let mut client = grant.client.clone();
        if let Some(configured) = &self.settings.client {
            client.credential = configured.credential.clone();
        }
        let endpoint = TokenEndpoint::new(metadata.into(), client)?;
        let (token, which) = match &grant.refresh_token {
            Some(token) => (token, Revoked::RefreshToken),
            None => (&grant.access_token, Revoked::AccessToken),
        };
        revoke(&http, &endpoint, token, which).await.map(drop)
    }

    fn oauth_failed(&self, error: OAuthError) -> Failure {
        let code = match error.kind() {
            ErrorKind::Config => Code::Usage,
            ErrorKind::Transient => Code::Transport,
            ErrorKind::PeerMisbehaved | ErrorKind::Unsupported => Code::Protocol,
            _ => Code::SignIn,
        };
        let hint = error.hint();
        Failure::new(code, self.sentence(&with_sources(&error))).with_optional_hint(hint)
    }

    fn store_failed(&self, error: &plenipo_credentials::StoreError) -> Failure {
        Failure::usage(with_sources(error)).with_optional_hint(error.hint())
    }

    fn failed(&self, text: &str) -> Failure {
        Failure::new(Code::SignIn, self.sentence(text))
    }

    fn sentence(&self, text: &str) -> String {
        format!("failed to sign in to server `{}`: {text}", self.name)
    }
}

fn with_sources_of(error: &OAuthError) -> String {
    with_sources(error)
}

/// `in 59 min`, `3 h ago`: the nearest whole unit.
fn from_now(time: SystemTime) -> String {
    let now = SystemTime::now();
    let rough = |span: Duration| match span.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    };
    match time.duration_since(now) {
        Ok(ahead) => format!("in {}", rough(ahead)),
        Err(behind) => format!("{} ago", rough(behind.duration())),
    }
}
