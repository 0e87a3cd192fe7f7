//! `plenipo login` and `plenipo logout`, and the offer to sign in where a command needs it.

mod browser;
mod device;
pub(crate) mod identity;
mod listener;
mod page;
mod pasted;
mod status;
mod target;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use plenipo_connect::oauth::Wish;
use plenipo_credentials::{Record, Vault};
use plenipo_oauth::Scopes;
use serde::Serialize;

use crate::arguments::{Global, LoginArguments, LogoutArguments};
use crate::credentials;
use crate::failure::{Code, Failure, with_sources};
use crate::person::Person;
use crate::serve::runtime;
use crate::settings::Settings;
use crate::terminal;
use pasted::Pasted;
use target::Target;

pub(crate) use status::run as status;

/// One sign-in that was given up.
#[derive(Debug, Serialize)]
struct SignedOut {
    server: String,
    issuer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// Whether the issuer took its tokens back; it may not be able to.
    revoked: bool,
}

/// Signs in to a server.
pub(crate) fn login(global: &Global, login: &LoginArguments) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    warn_about(&settings);
    let mut target = Target::enabled(&settings, &login.server)?;
    if let Some(scopes) = &login.scopes {
        let scopes = Scopes::parse(scopes)
            .map_err(|fault| Failure::usage(format!("the scopes of --scopes {fault}")))?;
        target.settings.scopes = Some(scopes);
    }
    let vault = credentials::vault(&settings);
    // With --json the answer alone is on standard output.
    let way = match (login.device, login.no_browser) {
        (true, _) => Way::Device,
        (false, true) if !global.json => Way::PrintedPage,
        (false, silent) => Way::Browser { open: !silent },
    };
    runtime()?.block_on(async {
        let record = sign_in(&target, &vault, way, Pasted::stdin()).await?;
        match global.json {
            true => {
                terminal::print_json(&status::of_sign_in(&record, target.name.as_str(), &vault))?
            }
            false => target.tell_signed_in(&record, &vault),
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// How a person gets to the page.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// On another device.
    Device,
    /// The address alone on standard output.
    PrintedPage,
    /// The address on the terminal, and opened where it can be.
    Browser { open: bool },
}

/// Asks the server what it wants, a person to sign in, and keeps what comes of it.
async fn sign_in(
    target: &Target,
    vault: &Vault,
    way: Way,
    pasted: Pasted<'_>,
) -> Result<Record, Failure> {
    // A store that fails is better known before a person signs in.
    let registered = target.registered(vault)?;
    let asked = target.challenge().await?;
    let mut wish = Wish::new(&target.settings, &target.network, &asked);
    wish.registered = &registered;
    let signed_in = match way {
        Way::Device => device::sign_in(target, wish).await?,
        _ => target.with_browser(wish, way, pasted).await?,
    };
    target.keep(vault, &signed_in)
}

/// Offers a sign-in to the person at the terminal whose command failed for want of one; whether there
/// is one now.
pub(crate) async fn offer(
    settings: &Settings,
    person: &Arc<Person>,
    server: &str,
    failure: &Failure,
) -> Result<bool, Failure> {
    let Ok(mut target) = Target::enabled(settings, server) else { return Ok(false) };
    if let Some(scopes) = failure.scopes() {
        target.settings.scopes = Some(scopes.clone());
    }
    let vault = credentials::vault(settings);
    let mut talk = person.talk().await;
    talk.say(&format!("{} {}", terminal::stderr().yellow("sign-in needed:"), failure.message()));
    let question = format!("Sign in to `{}` now? [Y]es, [n]o: ", target.name);
    if talk.choose(&question, &["yes", "no"], Some("yes")).await != Some("yes") {
        return Ok(false);
    }
    let way = Way::Browser { open: true };
    let record = sign_in(&target, &vault, way, Pasted::of(talk)).await?;
    target.tell_signed_in(&record, &vault);
    Ok(true)
}

/// Gives the tokens of a server back, and forgets them.
pub(crate) fn logout(global: &Global, logout: &LogoutArguments) -> Result<ExitCode, Failure> {
    let settings = Settings::load(global.config.as_deref())?;
    warn_about(&settings);
    let mut target = Target::find(&settings, &logout.server)?;
    target.settings.account.clone_from(&logout.account);
    let vault = credentials::vault(&settings);
    let found = target.found(&vault)?;
    // One that is not known to be another server's is left behind only where this one's was found.
    let left = found.unread.or(found.perhaps.filter(|_| found.records.is_empty()));
    if found.records.is_empty() && left.is_none() && !global.json {
        terminal::tell(&format!("nobody is signed in to `{}`", target.name));
    }
    let mut done = Vec::new();
    runtime()?.block_on(async {
        for record in found.records {
            // Forgotten first: whatever the issuer says, this program has it no longer.
            vault.sign_out(&record.key).map_err(|error| store_failed(&error))?;
            let given_back = target.give_back(&record).await;
            if let Err(error) = &given_back {
                terminal::warn(&format!(
                    "the token was forgotten here, but not revoked: {}",
                    with_sources(error)
                ));
            }
            if !global.json {
                let issuer = &record.key.issuer;
                terminal::tell(&format!("signed out of `{}` at {issuer}", target.name));
            }
            done.push(SignedOut {
                server: target.name.to_string(),
                issuer: record.key.issuer.to_string(),
                account: status::account(&record),
                revoked: matches!(given_back, Ok(true)),
            });
        }
        Ok::<_, Failure>(())
    })?;
    if global.json {
        terminal::print_json(&done)?;
    }
    match left {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(store_failed(&error)
            .about(&format!("failed to sign out of server `{}` wholly", target.name))),
    }
}

fn warn_about(settings: &Settings) {
    for warning in settings.warnings() {
        terminal::warn(warning);
    }
}

fn store_failed(error: &plenipo_credentials::StoreError) -> Failure {
    let code = match error.kind() {
        plenipo_credentials::ErrorKind::Transient => Code::Transport,
        _ => Code::Usage,
    };
    Failure::new(code, with_sources(error)).with_optional_hint(error.hint())
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
