//! `plenipo enterprise` and `plenipo account`: a person at an identity provider, for the servers that
//! a company manages.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plenipo_connect::HttpClient;
use plenipo_connect::enterprise::networks;
use plenipo_credentials::Vault;
use plenipo_enterprise::{
    Condition, EnterpriseError, Identities, Identity, IdentityGrant, IdentityProvider, Kept,
    Network, Source, Wanted, select,
};
use plenipo_oauth::Subject;
use plenipo_redact::Secret;
use serde::Serialize;

use super::listener::Listener;
use super::pasted::Pasted;
use super::status::store;
use super::{browser, warn_about};
use crate::arguments::{Global, IdentityLoginArguments};
use crate::credentials::enterprise::{self, ACCOUNT, ENTERPRISE, failed};
use crate::credentials::vault;
use crate::failure::{Code, Failure, with_sources};
use crate::serve::runtime;
use crate::settings::Settings;
use crate::{env, terminal};

/// A person who does not come back in this time has left.
const PATIENCE: Duration = Duration::from_secs(300);
/// A SAML assertion is a document of some kilobytes.
const LONGEST: u64 = 256 * 1024;

/// A sign-in that is kept.
#[derive(Debug, Serialize)]
struct Row {
    source: &'static str,
    issuer: String,
    client_id: String,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    state: &'static str,
    /// Servers that it is used for.
    servers: Vec<String>,
    store: String,
}

/// Whose identity the company's servers get.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) servers: Vec<String>,
    pub(crate) outcome: Result<Kept, EnterpriseError>,
}

/// Where a person signs in.
struct Place {
    source: Source,
    provider: IdentityProvider,
    callback_port: Option<u16>,
    network: Network,
    identities: Identities,
    vault: Vault,
}

/// Signs a person in.
pub(crate) fn login(
    global: &Global,
    source: Source,
    arguments: &IdentityLoginArguments,
) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    warn_about(&settings);
    let place = Place::find(&settings, source)?;
    // A store that fails is better known before a person signs in.
    let begun =
        place.identities.begin(source, &place.provider.issuer, &place.provider.client.client_id);
    let begun = begun.map_err(|error| place.failed(&error.into()))?;
    runtime()?.block_on(async {
        let (subject, grant) = match &arguments.saml {
            Some(file) => place.with_saml(file).await?,
            None => place.with_browser(arguments.no_browser).await?,
        };
        let name = grant.name.clone().unwrap_or_else(|| subject.subject.clone());
        let kept = place.identities.sign_in(begun, &subject.subject, grant);
        kept.map_err(|error| place.failed(&error))?;
        let issuer = &place.provider.issuer;
        terminal::tell(&format!("signed in as {} at {issuer}", terminal::harmless(&name)));
        terminal::tell(&format!("kept in {}", store(&place.vault)));
        Ok(ExitCode::SUCCESS)
    })
}

/// Forgets sign-ins and gives them back. Connections that use them end at once.
pub(crate) fn logout(
    global: &Global,
    source: Source,
    person: Option<&str>,
) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    warn_about(&settings);
    let place = Place::find(&settings, source)?;
    let kept = place.kept()?;
    let chosen: Vec<_> = kept.iter().filter(|kept| place.covers(kept, person)).collect();
    runtime()?.block_on(async {
        if chosen.is_empty() {
            // A sign-in that is under way comes to nothing all the same.
            place.forget(&place.nobody())?;
            terminal::tell(&format!("nobody is signed in at {}", place.provider.issuer));
        }
        for kept in chosen {
            let grant = place.forget(&kept.pin.identity)?;
            terminal::tell(&format!("signed out {}", terminal::harmless(&shown(kept))));
            let Some(grant) = grant else { continue };
            if let Err(error) = place.provider.revoke(&place.network, &grant, source).await {
                let text = with_sources(&error);
                terminal::warn(&format!("it was forgotten here, but not revoked: {text}"));
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Shows who is signed in, and what that means for the company's servers.
pub(crate) fn status(global: &Global, source: Source) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    warn_about(&settings);
    let vault = vault(&settings);
    let identities = Identities::new(Arc::clone(vault.store()));
    let kept = identities.kept(SystemTime::now()).map_err(|error| super::store_failed(&error))?;
    let explained = explain(&settings, &vault);
    let rows: Vec<_> = kept
        .iter()
        .filter(|kept| kept.pin.identity.source == source)
        .filter(|kept| kept.condition != Condition::SignedOut)
        .map(|kept| row(kept, explained.as_ref(), &vault))
        .collect();
    if global.json {
        terminal::print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = lines(&rows);
    lines.extend(explained.iter().flat_map(Explained::lines));
    terminal::print_lines(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Whose identity the company's servers get, or why nobody's; `None` without such servers.
pub(crate) fn explain(settings: &Settings, vault: &Vault) -> Option<Explained> {
    let servers = enterprise::servers(settings);
    if servers.is_empty() {
        return None;
    }
    let Some(config) = settings.identity_provider() else {
        let error = EnterpriseError::Config("no identity provider is configured");
        return Some(Explained { servers, outcome: Err(error) });
    };
    let identities = Identities::new(Arc::clone(vault.store()));
    let outcome = identities.kept(SystemTime::now()).map_err(EnterpriseError::from);
    let outcome = outcome.and_then(|kept| {
        let pin = select(Wanted::new(&config.issuer, &config.client_id), &kept)?.clone();
        let found = kept.into_iter().find(|kept| kept.pin == pin);
        found.ok_or(EnterpriseError::Changed)
    });
    Some(Explained { servers, outcome })
}

impl Explained {
    /// For a person: one line, and what to do about it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let servers = self.servers.join(", ");
        match &self.outcome {
            Ok(kept) => {
                let source = kept.pin.identity.source;
                vec![format!("{servers}: {source} sign-in of {}", terminal::harmless(&shown(kept)))]
            }
            Err(error) => {
                let text = terminal::harmless(&with_sources(error));
                let class = error.class();
                vec![
                    format!("{servers}: {}: {text}", class.as_str()),
                    format!("  why      {}", class.cause()),
                    format!("  hint     {}", error.hint()),
                ]
            }
        }
    }
}

impl Place {
    fn find(settings: &Settings, source: Source) -> Result<Self, Failure> {
        let (section, config) = match source {
            Source::Account => (ACCOUNT, settings.account()),
            _ => (ENTERPRISE, settings.identity_provider()),
        };
        let config = config.ok_or_else(|| {
            Failure::usage(format!("`{section}` is not configured"))
                .with_hint(format!("set `{section}.issuer` and `{section}.client_id`"))
        })?;
        let provider = enterprise::provider(section, config)?;
        let http = HttpClient::new(env::http_client_options());
        let (network, _) = networks(&http, &provider.issuer, provider.issuer.url());
        let vault = vault(settings);
        let identities = Identities::new(Arc::clone(vault.store()));
        let callback_port = config.callback_port;
        Ok(Self { source, provider, callback_port, network, identities, vault })
    }

    fn kept(&self) -> Result<Vec<Kept>, Failure> {
        let kept = self.identities.kept(SystemTime::now());
        kept.map_err(|error| super::store_failed(&error))
    }

    /// Whether a sign-in is one that this is about. Of accounts there is one, wherever it is.
    fn covers(&self, kept: &Kept, person: Option<&str>) -> bool {
        let Identity { source, issuer, client_id, subject, .. } = &kept.pin.identity;
        let here = *issuer == self.provider.issuer && *client_id == self.provider.client.client_id;
        *source == self.source
            && kept.condition != Condition::SignedOut
            && (here || self.source == Source::Account)
            && person.is_none_or(|person| person == subject || kept.name.as_deref() == Some(person))
    }

    fn nobody(&self) -> Identity {
        let client_id = self.provider.client.client_id.clone();
        Identity::new(self.source, self.provider.issuer.clone(), client_id, "")
    }

    fn forget(&self, identity: &Identity) -> Result<Option<IdentityGrant>, Failure> {
        self.identities.sign_out(identity).map_err(|error| failed("failed to sign out", &error))
    }

    /// With a page in the browser, which sends it back to a listener here; or its address is pasted.
    async fn with_browser(&self, no_browser: bool) -> Result<(Subject, IdentityGrant), Failure> {
        let listener = Listener::bind(self.callback_port.unwrap_or_default()).await;
        let listener = listener.map_err(|error| {
            let text = format!("failed to sign in: no port can be listened on: {error}");
            Failure::new(Code::Transport, text)
        })?;
        let redirect_uri = listener.redirect_uri();
        let sign_in = self.provider.begin(&self.network, &redirect_uri, self.source).await;
        let sign_in = sign_in.map_err(|error| self.failed(&error))?;
        if no_browser {
            terminal::print(&format!("{}\n", sign_in.url.expose()))?;
        } else {
            terminal::tell(&format!("sign in at {} on this page:", self.provider.issuer));
            terminal::tell(sign_in.url.expose());
            browser::open(&sign_in.url);
        }
        terminal::tell(
            "waiting; or paste the address that the browser is sent to, and press Enter",
        );
        let mut pasted = Pasted::stdin();
        let waiting = listener.answer(&sign_in.pending, &mut pasted);
        let (answer, visitor) = match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(answer) => answer.map_err(|error| {
                Failure::new(Code::Transport, format!("failed to sign in: {error}"))
            })?,
            Err(_) => {
                let text = format!("nobody came back within {} s", PATIENCE.as_secs());
                return Err(Failure::new(Code::Timeout, format!("failed to sign in: {text}")));
            }
        };
        let finished = sign_in.finish(&self.network, answer.expose()).await;
        if let Some(visitor) = visitor {
            let told = finished.as_ref().map(drop).map_err(|error| with_sources(error));
            visitor.tell(self.provider.issuer.as_str(), told).await;
        }
        finished.map_err(|error| self.failed(&error))
    }

    async fn with_saml(&self, file: &std::path::Path) -> Result<(Subject, IdentityGrant), Failure> {
        let read = read_assertion(file).map_err(|error| {
            Failure::usage(format!("failed to read {}: {error}", file.display()))
        })?;
        let signed_in = self.provider.sign_in_with_saml(&self.network, read, self.source).await;
        signed_in.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &EnterpriseError) -> Failure {
        failed(&format!("failed to sign in at {}", self.provider.issuer), error)
    }
}

fn read_assertion(file: &std::path::Path) -> std::io::Result<Secret<String>> {
    use std::io::Read as _;
    let mut text = String::new();
    let limit = LONGEST.saturating_add(1);
    match file.as_os_str() == "-" {
        true => std::io::stdin().lock().take(limit).read_to_string(&mut text)?,
        false => std::fs::File::open(file)?.take(limit).read_to_string(&mut text)?,
    };
    let text = text.trim();
    if text.is_empty() || u64::try_from(text.len()).unwrap_or(u64::MAX) > LONGEST {
        return Err(std::io::Error::other(format!("it is empty, or longer than {LONGEST} bytes")));
    }
    Ok(Secret::new(text.to_owned()))
}

fn shown(kept: &Kept) -> String {
    kept.name.clone().unwrap_or_else(|| kept.pin.identity.subject.clone())
}

fn row(kept: &Kept, explained: Option<&Explained>, vault: &Vault) -> Row {
    let identity = &kept.pin.identity;
    let used = explained
        .filter(|explained| explained.outcome.as_ref().is_ok_and(|chosen| chosen.pin == kept.pin));
    Row {
        source: identity.source.as_str(),
        issuer: identity.issuer.to_string(),
        client_id: identity.client_id.clone(),
        subject: identity.subject.clone(),
        name: kept.name.clone(),
        state: match kept.condition {
            Condition::Live => "live",
            Condition::Rejected => "rejected",
            _ => "expired",
        },
        servers: used.map(|explained| explained.servers.clone()).unwrap_or_default(),
        store: store(vault),
    }
}

fn lines(rows: &[Row]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["nobody is signed in".to_owned()];
    }
    let mut lines = Vec::new();
    for row in rows {
        lines.push(terminal::harmless(row.name.as_ref().unwrap_or(&row.subject)));
        let mut tell = |what: &str, text: &str| {
            lines.push(format!("  {what:<8} {}", terminal::harmless(text)));
        };
        tell("issuer", &row.issuer);
        tell("client", &row.client_id);
        tell("subject", &row.subject);
        tell("state", row.state);
        tell("kept in", &row.store);
    }
    lines
}
