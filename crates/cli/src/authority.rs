//! The authority of a typed call: from the profile in force to the state that travels.

use std::path::{Path, PathBuf};

use plenipo_authority::{SandboxState, VerifiedLauncher};
use plenipo_config::EnvironmentSettings;
use plenipo_connect::LauncherSource;
use plenipo_policy::{ResolveContext, State, WorkspaceRoots};

use crate::failure::{Code, Failure};
use crate::settings::Settings;
use crate::{env, guard, terminal};

/// Which profile a person asked for, and about which directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileChoice<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) directory: Option<&'a Path>,
}

/// The state in force and the name of the profile that it came from.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) profile: String,
    pub(crate) state: State,
}

/// Works out the state: `--profile`, else `default_permissions`, else `:workspace`.
pub(crate) fn in_force(settings: &Settings, choice: ProfileChoice<'_>) -> Result<InForce, Failure> {
    let cwd = working_directory(choice.directory)?;
    let home = env::real_home()?;
    let explicit = choice.directory.is_some();
    let refused = |error: plenipo_policy::ConfigError| Failure::from(error);
    let roots = WorkspaceRoots::new(&cwd, home.as_deref(), explicit).map_err(refused)?;
    let (name, profile) = settings.profile(choice.name, &roots)?;
    let mut state = State::new(profile, &cwd);
    guard::protect(settings, &mut state)?;
    Ok(InForce { profile: name, state })
}

/// The state of a server elsewhere: its own directory over there, nothing looked at from here. `None`, with a warning,
/// where there is no directory that a state can name.
pub(crate) fn in_force_elsewhere(
    settings: &Settings,
    choice: ProfileChoice<'_>,
    place: &EnvironmentSettings,
    directory: Option<&Path>,
) -> Result<Option<InForce>, Failure> {
    let cwd = choice.directory.or(directory).filter(|cwd| cwd.is_absolute());
    let Some(cwd) = cwd else {
        if let Some(name) = choice.name.or(place.permissions.as_deref()) {
            let message = format!(
                "profile `{name}` cannot go to environment `{}`: it has no `cwd` that a policy can name",
                place.id
            );
            return Err(Failure::usage(message).with_hint(format!(
                "set `cwd` in [environments.{}], or name a directory over there with -C",
                place.id
            )));
        }
        terminal::warn(&format!(
            "no sandbox policy is sent to environment `{}`: it has no `cwd` that a policy can name",
            place.id
        ));
        return Ok(None);
    };
    let roots = WorkspaceRoots::new(cwd, None, true).map_err(Failure::from)?;
    let name = choice.name.or(place.permissions.as_deref());
    let (profile, permissions) = settings.profile(name, &roots)?;
    Ok(Some(InForce { profile, state: State::new(permissions, cwd) }))
}

/// The policy that the launcher will make of the state, in a context of this process.
pub(crate) fn context(state: &State) -> ResolveContext {
    let mut context = state.resolve_context();
    context.tmpdir = env::temporary_directory();
    context.home = env::passwd_home();
    context
}

/// Where this program runs.
pub(crate) fn current_directory() -> Result<PathBuf, Failure> {
    env::current_directory().map_err(|error| {
        Failure::usage(format!("failed to find the current directory: {error}"))
            .with_hint("it may have been deleted: change to one that exists")
    })
}

pub(crate) fn working_directory(directory: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match directory {
        Some(path) => path.to_path_buf(),
        None => current_directory()?,
    };
    let real = std::fs::canonicalize(&path).map_err(|error| {
        Failure::usage(format!("failed to use the directory {}: {error}", path.display()))
    })?;
    if real.is_dir() {
        return Ok(real);
    }
    Err(Failure::usage(format!("{} is not a directory", path.display())))
}

/// The state as it travels.
pub(crate) fn capture(state: &State) -> Result<SandboxState, Failure> {
    SandboxState::capture(&state.to_json())
        .map_err(|error| Failure::new(Code::Refused, format!("failed to {error}")))
}

/// The configured launcher, else this very program; `Err` says why this program can't be one.
pub(crate) fn launcher(settings: &Settings) -> Result<LauncherSource, String> {
    if let Some(path) = settings.launcher() {
        return Ok(LauncherSource::Path(path.to_path_buf()));
    }
    let executable = env::executable().map_err(|error| error.to_string())?;
    match VerifiedLauncher::verify(&executable) {
        Ok(launcher) => Ok(LauncherSource::Verified(launcher)),
        Err(error) => Err(crate::failure::with_sources(&error)),
    }
}
