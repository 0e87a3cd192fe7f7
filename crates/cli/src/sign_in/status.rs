//! `plenipo auth status`: who is signed in where; never a secret.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use plenipo_config::{StartContext, TransportSettings};
use plenipo_connect::oauth::OAuthSettings;
use plenipo_credentials::{Owner, Record, Unread, Vault};
use serde::Serialize;

use super::{from_now, store_failed};
use crate::arguments::Global;
use crate::failure::{Code, Failure, with_sources};
use crate::settings::Settings;
use crate::{credentials, env, terminal};

/// One credential.
#[derive(Debug, Serialize)]
struct Row {
    /// Configured servers that it is used for.
    servers: Vec<String>,
    resource: String,
    issuer: String,
    client_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    scopes: Vec<String>,
    /// Seconds since 1970; absent: the issuer did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    /// Whether it is refreshed without a person.
    refreshable: bool,
    /// Where it is kept.
    store: String,
}

pub(crate) fn run(global: &Global) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    let vault = credentials::vault(&settings);
    let survey = vault.survey().map_err(|error| store_failed(&error))?;
    survey.unread.iter().for_each(warn_of);
    warn_about(&survey.strays);
    let (servers, store) = (servers(&settings), store(&vault));
    let signed_in = survey.records.iter().filter(|record| record.grant.is_some());
    let rows: Vec<_> = signed_in.filter_map(|record| row(record, &servers, &store)).collect();
    match global.json {
        true => terminal::print_json(&rows)?,
        false => {
            let mut lines = lines(&rows, &survey.unread);
            let explained = super::identity::explain(&settings, &vault);
            lines.extend(explained.iter().flat_map(super::identity::Explained::lines));
            terminal::print_lines(&lines)?;
        }
    }
    let is_lost = !survey.unread.is_empty() || rows.iter().any(Row::is_over);
    Ok(if is_lost { Code::SignIn.into() } else { ExitCode::SUCCESS })
}

impl Row {
    /// Whether nothing but a sign-in makes a token of it.
    fn is_over(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        !self.refreshable && self.expires_at.is_some_and(|ends| ends <= now)
    }
}

/// The kind of store, where it is, and whether who reads it there reads tokens.
pub(super) fn store(vault: &Vault) -> String {
    let store = vault.store();
    let sealed = if store.is_encrypted() { "" } else { ", not encrypted" };
    format!("{}: {}{sealed}", store.kind().as_str(), store.place())
}

/// Says what is a credential and cannot be used.
pub(super) fn warn_of(unread: &Unread) {
    let error = &unread.error;
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let of = whose(unread);
    terminal::warn(&format!("{of} is left out: {}{hint}", with_sources(error)));
}

fn whose(unread: &Unread) -> String {
    match &unread.owner {
        Owner::Server(key) => {
            format!("the credential for {}", terminal::harmless(&key.to_string()))
        }
        Owner::NoServer => "the record of a sign-in at an identity provider".to_owned(),
        _ => "a credential".to_owned(),
    }
}

/// Says what is in the store and does not belong there.
pub(super) fn warn_about(strays: &[String]) {
    for stray in strays {
        let stray = terminal::harmless(stray).replace('\n', " ");
        terminal::warn(&format!("{stray} is no credential and should not be there"));
    }
}

/// Who signed in, in words a person knows.
pub(super) fn account(record: &Record) -> Option<String> {
    let shown = record.grant.as_ref().and_then(|grant| grant.account.clone());
    shown.or_else(|| record.key.subject.clone())
}

/// A sign-in of this moment, as it is listed.
pub(super) fn of_sign_in(record: &Record, server: &str, vault: &Vault) -> impl Serialize {
    let row = row(record, &[], &store(vault));
    row.map(|row| Row { servers: vec![server.to_owned()], ..row })
}

/// What each configured server's credentials would be.
fn servers(settings: &Settings) -> Vec<(String, OAuthSettings)> {
    let lookup = |name: &str| env::variable(name);
    let home = env::home();
    let mut context = StartContext::new(&lookup);
    context.home = home.as_deref();
    let mut names: Vec<_> = settings.server_names().collect();
    names.sort();
    names.dedup();
    let found = names.into_iter().filter_map(|name| {
        let (name, config) = settings.server(name.as_str())?;
        let config = config.ok()?;
        let TransportSettings::Http(http) = &config.transport else { return None };
        let endpoint = http.endpoint(&context).ok().filter(|_| http.may_sign_in())?;
        let settings = credentials::settings(&name, &endpoint, &http.oauth).ok()??;
        Some((name.to_string(), settings))
    });
    found.collect()
}

fn row(record: &Record, servers: &[(String, OAuthSettings)], store: &str) -> Option<Row> {
    let grant = record.grant.as_ref()?;
    let used = servers.iter().filter(|(_, settings)| settings.covers(record));
    let expires_at = grant.expires_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let scopes = grant.scopes.as_ref();
    Some(Row {
        servers: used.map(|(name, _)| name.clone()).collect(),
        resource: record.key.resource.to_string(),
        issuer: record.key.issuer.to_string(),
        client_id: record.key.client_id.clone(),
        account: account(record),
        scopes: scopes.map(|scopes| scopes.iter().map(str::to_owned).collect()).unwrap_or_default(),
        expires_at: expires_at.map(|at| at.as_secs()),
        refreshable: grant.refresh_token.is_some(),
        store: store.to_owned(),
    })
}

fn lines(rows: &[Row], unread: &[Unread]) -> Vec<String> {
    if rows.is_empty() && unread.is_empty() {
        return vec!["nobody is signed in".to_owned()];
    }
    let mut lines = Vec::new();
    for row in rows {
        let name = match row.servers.as_slice() {
            [] => row.resource.clone(),
            servers => servers.join(", "),
        };
        lines.push(terminal::harmless(&name));
        let mut tell = |what: &str, text: &str| {
            lines.push(format!("  {what:<8} {}", terminal::harmless(text)));
        };
        tell("resource", &row.resource);
        tell("issuer", &row.issuer);
        if let Some(account) = &row.account {
            tell("account", account);
        }
        if !row.scopes.is_empty() {
            tell("scopes", &row.scopes.join(" "));
        }
        let expiry = row.expires_at.map_or("unknown".to_owned(), |at| {
            from_now(UNIX_EPOCH + std::time::Duration::from_secs(at))
        });
        let refreshed = match row.refreshable {
            true => ", then refreshed",
            false if row.is_over() => ": sign in again",
            false => "",
        };
        tell("expires", &format!("{expiry}{refreshed}"));
        tell("kept in", &row.store);
    }
    for unread in unread {
        lines.push(whose(unread));
        let why = terminal::harmless(&with_sources(&unread.error));
        lines.push(format!("  {:<8} {why}", "not used"));
    }
    lines
}
