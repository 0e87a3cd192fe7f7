//! The server that a sign-in is about.

use std::time::Duration;

use http::{Request, header};
use plenipo_config::{GrantKind, OAuthConfig, StartContext, TransportSettings};
use plenipo_connect::oauth::{OAuthNetwork, OAuthSettings, Wish, stored};
use plenipo_connect::{HttpClient, HttpEndpoint, ServerName};
use plenipo_credentials::{Record, StoreError, Survey, Vault};
use plenipo_oauth::{
    Asked, ClientRegistration, Demand, ErrorKind, HttpClient as _, Issuer, OAuthError,
    OutgoingRequest, RegistrationSource, Revoked, ServerMetadata, SignIn, SignedIn, TokenEndpoint,
    revoke,
};
use plenipo_redact::Secret;

use super::listener::{self, Listener};
use super::pasted::Pasted;
use super::{Way, browser, status, store_failed};
use crate::failure::{Code, Failure, with_sources};
use crate::reach::Reachable;
use crate::settings::Settings;
use crate::{credentials, env, terminal};

/// A person who does not come back in this time has left.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server to sign in to.
pub(super) struct Target {
    pub(super) name: ServerName,
    pub(super) settings: OAuthSettings,
    pub(super) network: OAuthNetwork,
    config: OAuthConfig,
}

/// What is stored for a server.
pub(super) struct Found {
    pub(super) records: Vec<Record>,
    /// One of its own that cannot be used.
    pub(super) unread: Option<StoreError>,
    /// One that cannot be used and may be its own.
    pub(super) perhaps: Option<StoreError>,
}

impl Target {
    /// A server that may be reached: nobody signs in to one that is switched off or not wholly understood.
    pub(super) fn enabled(settings: &Settings, name: &str) -> Result<Self, Failure> {
        match Reachable::find(settings, name) {
            Some(Err(why)) => Err(why.into_failure(name)),
            _ => Self::find(settings, name),
        }
    }

    /// A server whatever its state: what is kept for one that is switched off can still be given up.
    pub(super) fn find(settings: &Settings, name: &str) -> Result<Self, Failure> {
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
        if http.enterprise.is_some() {
            let text = format!("server `{name}` is the company's: nobody signs in to it alone");
            return Err(Failure::usage(text).with_hint(
                "run `plenipo enterprise login`; `plenipo enterprise logout` signs out",
            ));
        }
        if !http.may_sign_in() {
            return Err(Failure::usage(format!(
                "server `{name}` has credentials in its configuration, which go before a sign-in"
            )));
        }
        if http.oauth.grant != GrantKind::AuthorizationCode {
            return Err(Failure::usage(format!(
                "server `{name}` is configured with an `oauth.grant` that needs no sign-in: a token is got for each run"
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
    pub(super) async fn challenge(&self) -> Result<Asked, Failure> {
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
    pub(super) async fn with_browser(
        &self,
        wish: Wish<'_>,
        way: Way,
        mut pasted: Pasted<'_>,
    ) -> Result<SignedIn, Failure> {
        let refused = wish.asked.refused;
        let listener = self.listen(wish.registered).await?;
        let redirect_uri = listener.redirect_uri();
        let options = wish.options(&redirect_uri).map_err(|error| self.oauth_failed(error))?;
        let http = self.network.http();
        let sign_in = match SignIn::begin(&http, &options).await {
            Err(OAuthError::Missing { .. }) if !refused => return Err(self.asks_for_nothing()),
            begun => begun.map_err(|error| self.oauth_failed(error))?,
        };
        self.show(&sign_in, way)?;
        let waiting = listener.answer(&sign_in.pending, &mut pasted);
        let (answer, visitor) = match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(answer) => answer.map_err(|error| self.failed(&error.to_string()))?,
            Err(_) => {
                let text = format!("nobody came back within {} s", PATIENCE.as_secs());
                return Err(Failure::new(Code::Timeout, self.sentence(&text)));
            }
        };
        let finished = sign_in.finish(&http, answer.expose()).await;
        if let Some(visitor) = visitor {
            let told = finished.as_ref().map(drop).map_err(|error| with_sources(error));
            visitor.tell(self.name.as_str(), told).await;
        }
        finished.map_err(|error| self.oauth_failed(error))
    }

    fn show(&self, sign_in: &SignIn, way: Way) -> Result<(), Failure> {
        if sign_in.prepared.discovered.metadata.assumed {
            terminal::warn(&format!(
                "server `{}` publishes nothing about signing in: these are the addresses that MCP of 2025-03-26 has for such servers",
                self.name
            ));
        }
        match way {
            Way::PrintedPage => terminal::print(&format!("{}\n", sign_in.url.expose()))?,
            _ => {
                terminal::tell(&format!("sign in to `{}` on this page:", self.name));
                terminal::tell(sign_in.url.expose());
            }
        }
        if matches!(way, Way::Browser { open: true }) {
            browser::open(&sign_in.url);
        }
        terminal::tell(
            "waiting; or paste the address that the browser is sent to, and press Enter",
        );
        Ok(())
    }

    /// The configured address, else one that a client was registered with, else any.
    async fn listen(&self, registered: &[ClientRegistration]) -> Result<Listener, Failure> {
        let url = self.config.callback_url.as_ref();
        let of_url = url.filter(|url| url.is_loopback()).map(|url| url.port());
        if let Some(port) = self.config.callback_port.or(of_url) {
            let listener = Listener::bind(port).await.map_err(|error| {
                let text =
                    format!("port {port} of the configured callback cannot be used: {error}");
                Failure::new(Code::Transport, self.sentence(&text))
                    .with_hint("end what uses it, or set another port")
            })?;
            return Ok(listener.at(url));
        }
        let ports = registered.iter().flat_map(|client| &client.redirect_uris);
        for port in ports.filter_map(|uri| listener::port_of(uri)) {
            if let Ok(listener) = Listener::bind(port).await {
                return Ok(listener.at(url));
            }
        }
        let any = Listener::bind(0).await;
        let any = any.map_err(|error| self.failed(&format!("no port can be listened on: {error}")));
        Ok(any?.at(url))
    }

    /// Keeps a sign-in.
    pub(super) fn keep(&self, vault: &Vault, signed_in: &SignedIn) -> Result<Record, Failure> {
        let (key, grant) = stored(signed_in, &self.network);
        vault.sign_in(&key, grant).map_err(|error| store_failed(&error))
    }

    pub(super) fn tell_signed_in(&self, record: &Record, vault: &Vault) {
        let grant = record.grant.as_ref();
        let who = status::account(record).map(|who| format!(" as {}", terminal::harmless(&who)));
        let scopes = grant.and_then(|grant| grant.scopes.as_ref());
        let scopes = scopes.map(|scopes| format!(", scopes: {scopes}")).unwrap_or_default();
        let (name, issuer) = (&self.name, &record.key.issuer);
        terminal::tell(&format!(
            "signed in to `{name}`{} at {issuer}{scopes}",
            who.unwrap_or_default()
        ));
        terminal::tell(&format!("kept in {}", status::store(vault)));
    }

    /// Stored credentials of this server. What cannot be used is said.
    pub(super) fn found(&self, vault: &Vault) -> Result<Found, Failure> {
        let Survey { records, unread, strays, .. } =
            vault.survey().map_err(|error| store_failed(&error))?;
        let fits = |record: &Record| record.grant.is_some() && self.settings.covers(record);
        let records = records.into_iter().filter(fits).collect();
        let mut found = Found { records, unread: None, perhaps: None };
        for unread in unread {
            let is_of = unread.is_of(|key| self.settings.covers_key(key));
            if is_of == Some(true) {
                found.unread = Some(unread.error);
                continue;
            }
            status::warn_of(&unread);
            found.perhaps = found.perhaps.or(is_of.is_none().then_some(unread.error));
        }
        status::warn_about(&strays);
        Ok(found)
    }

    /// Clients that were registered for this server before, the newest first.
    pub(super) fn registered(&self, vault: &Vault) -> Result<Vec<ClientRegistration>, Failure> {
        let found = self.found(vault)?;
        // It could not be replaced after the sign-in either.
        if let Some(error) = &found.unread {
            return Err(store_failed(error));
        }
        let mut grants: Vec<_> =
            found.records.into_iter().filter_map(|record| record.grant).collect();
        grants.sort_by_key(|grant| std::cmp::Reverse(grant.obtained_at));
        let clients = grants.into_iter().map(|grant| grant.client);
        Ok(clients.filter(|client| client.source == RegistrationSource::Dynamic).collect())
    }

    /// Gives a sign-in back to its issuer; whether that can take it.
    pub(super) async fn give_back(&self, record: &Record) -> Result<bool, OAuthError> {
        let Some(grant) = &record.grant else { return Ok(false) };
        let http = self.network.http();
        let issuer: &Issuer = &record.key.issuer;
        if grant.endpoints_assumed {
            return Ok(false);
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
        revoke(&http, &endpoint, token, which).await
    }

    pub(super) fn oauth_failed(&self, error: OAuthError) -> Failure {
        let code = match error.kind() {
            ErrorKind::Config => Code::Usage,
            ErrorKind::Transient => Code::Transport,
            ErrorKind::PeerMisbehaved | ErrorKind::Unsupported => Code::Protocol,
            _ => Code::SignIn,
        };
        let hint = error.hint();
        Failure::new(code, self.sentence(&with_sources(&error))).with_optional_hint(hint)
    }

    /// Nothing is registered anywhere for a server that never asked.
    fn asks_for_nothing(&self) -> Failure {
        let text = "it does not ask for a token, and publishes nothing about one";
        Failure::new(Code::Protocol, self.sentence(text))
            .with_hint(format!("call its tools as they are: `plenipo tools {}`", self.name))
    }

    fn failed(&self, text: &str) -> Failure {
        Failure::new(Code::SignIn, self.sentence(text))
    }

    fn sentence(&self, text: &str) -> String {
        format!("failed to sign in to server `{}`: {text}", self.name)
    }
}
