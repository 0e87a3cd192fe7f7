//! `plenipo server workspace`.

use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::Duration;

use plenipo_config::{EnvironmentPolicy, Inherit};
use plenipo_launch::Rung;
use plenipo_server_workspace::{OperatorPolicy, Restriction, ServerOptions, serve};

use crate::arguments::Global;
use crate::env;
use crate::failure::{Code, Failure, shortage, with_sources};
use crate::settings::Settings;
use crate::terminal;

/// Serves on stdin and stdout until stdin ends.
pub(crate) fn workspace(global: &Global) -> Result<ExitCode, Failure> {
    terminal::check_stdout()?;
    // A project has no say in how commands are run.
    let settings = Settings::of_user(global.config.as_deref())?;
    let mut options = ServerOptions::default();
    give_environment(&mut options, settings.environment_policy());
    options.restrictions = restrictions(&settings);
    if settings.allow_unsandboxed() {
        options.operator = OperatorPolicy::AllowUnsandboxed;
    }
    let runtime = runtime()?;
    runtime.block_on(serve(options)).map(|()| ExitCode::SUCCESS).map_err(|error| {
        Failure::new(Code::Transport, format!("failed to {}", with_sources(&error)))
    })
}

/// What this server's configuration wants of the launcher, which reads the managed and the usual user's file alone: a file
/// that was named to this server, or is found by its environment, can ask for more and never for less.
fn restrictions(settings: &Settings) -> Vec<Restriction> {
    let mut restrictions = Vec::new();
    // At least `landlock` is what every rung is.
    if let Some(rung) = settings.asked_rung().filter(|rung| *rung != Rung::Landlock) {
        restrictions.push(Restriction::new("--minimum-rung", rung.name(), "sandbox.minimum_rung"));
    }
    if settings.strict_globs() {
        restrictions.push(Restriction::new("--deny-glob", "strict", "sandbox.deny_glob"));
    }
    restrictions
}

/// Without a policy a command gets the few variables that it needs. A policy can take some of these away, add what it
/// sets and, with `inherit = "all"`, pass on what does not look like a secret.
fn give_environment(options: &mut ServerOptions, policy: Option<&EnvironmentPolicy>) {
    let Some(policy) = policy else {
        options.inherited_environment = env::variables();
        return;
    };
    let (set, inherited): (Vec<_>, Vec<_>) = policy
        .apply(env::variables(), false)
        .into_iter()
        .partition(|(name, _)| name.to_str().is_some_and(|name| policy.set.contains_key(name)));
    if policy.inherit == Some(Inherit::All) {
        let others = inherited.iter().filter(|(name, _)| may_be_added(name));
        options.additions.extend(others.cloned());
    }
    options.inherited_environment = inherited;
    options.additions.extend(set);
}

/// What a server's operator may add, of what is just inherited: not what decides what a policy means.
fn may_be_added(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !["HOME", "TMPDIR"].iter().any(|fixed| name == *fixed)
        && !["XDG_", "PLENIPO_"].iter().any(|prefix| bytes.starts_with(prefix.as_bytes()))
}

/// One thread is enough for one person's calls, and starts fastest.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    check_descriptors()?;
    let failed = |error: std::io::Error| {
        Failure::new(Code::Transport, format!("failed to start the runtime: {error}"))
            .with_optional_hint(shortage(&error))
    };
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = built.map_err(failed)?;
    take_limit_of_files(&runtime).map_err(failed)?;
    Ok(runtime)
}

/// Beyond `ulimit -f` a write is to fail, as on a full disk, and not to end the program with an answer that nobody has seen.
/// What is started has the usual again: a handler does not outlive `exec`.
fn take_limit_of_files(runtime: &tokio::runtime::Runtime) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// Below this the runtime itself does not get what it needs, and its library does not say so in good order.
const FEWEST_DESCRIPTORS: u64 = 16;

fn check_descriptors() -> Result<(), Failure> {
    match rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        Some(most) if most < FEWEST_DESCRIPTORS => {
            let message =
                format!("failed to start the runtime: only {most} files may be open at once");
            Err(Failure::new(Code::Transport, message).with_hint("raise `ulimit -n`"))
        }
        _ => Ok(()),
    }
}

/// For an issuer to answer, when the command that asked is over: the refresh token may be replaced already.
const SETTLING: Duration = Duration::from_secs(5);

/// Runs a command's future to its end. What still blocks then, a reader that reads no more, is not waited for; a
/// token that is being refreshed is.
pub(crate) fn run_to_end<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let outcome = work.await;
        if !plenipo_credentials::refreshes_settled(SETTLING).await {
            terminal::warn("an issuer did not answer in time: a refreshed token may be lost");
        }
        outcome
    });
    runtime.shutdown_background();
    outcome
}
