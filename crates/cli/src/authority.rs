//! The authority of a typed call: from the profile in force to the state that travels.

use std::path::{Path, PathBuf};

use plenipo_authority::{SandboxState, VerifiedLauncher};
use plenipo_connect::LauncherSource;
use plenipo_policy::{
    Access, Entry, EntryPath, FileSystem, PermissionProfile, ResolveContext, State, WorkspaceRoots,
};

use crate::env;
use crate::failure::{Code, Failure};
use crate::settings::Settings;

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
    let home = env::home().and_then(|home| std::fs::canonicalize(home).ok());
    let explicit = choice.directory.is_some();
    let refused = |error: plenipo_policy::ConfigError| Failure::from(error);
    let roots = WorkspaceRoots::new(&cwd, home.as_deref(), explicit).map_err(refused)?;
    let (name, profile) = settings.profile(choice.name, &roots)?;
    let mut state = State::new(profile, &cwd);
    protect_configuration(settings, &mut state)?;
    Ok(InForce { profile: name, state })
}

/// The policy that the launcher will make of the state, in a context of this process.
pub(crate) fn context(state: &State) -> ResolveContext {
    let mut context = state.resolve_context();
    context.tmpdir = env::temporary_directory();
    context.home = env::passwd_home();
    context
}

fn working_directory(directory: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = match directory {
        Some(path) => path.to_path_buf(),
        None => env::current_directory().map_err(|error| {
            Failure::usage(format!("failed to find the current directory: {error}")).with_hint(
                "it may have been deleted; change to one that exists, or name one with -C",
            )
        })?,
    };
    let real = std::fs::canonicalize(&path).map_err(|error| {
        Failure::usage(format!("failed to use the directory {}: {error}", path.display()))
    })?;
    if real.is_dir() {
        return Ok(real);
    }
    Err(Failure::usage(format!("{} is not a directory", path.display())))
}

/// A configuration file or the audit file inside a writable root is made read-only: a command may not configure the
/// next one, nor rewrite what is known of earlier ones.
fn protect_configuration(settings: &Settings, state: &mut State) -> Result<(), Failure> {
    let policy = state
        .profile
        .resolve(&context(state))
        .map_err(|error| Failure::new(Code::Refused, error.to_string()))?;
    let PermissionProfile::Managed { file_system: FileSystem::Restricted(restricted), .. } =
        &mut state.profile
    else {
        return Ok(());
    };
    let files = settings.files().chain(settings.audit_file());
    let files = files.filter_map(|file| std::fs::canonicalize(file).ok());
    // What a person trusts is kept there, whether or not it exists yet.
    let data = env::data_directory().map(|path| std::fs::canonicalize(&path).unwrap_or(path));
    for file in files.chain(data) {
        if policy.access(&file) != Some(Access::Write) {
            continue;
        }
        let Some(path) = file.to_str() else {
            let message =
                format!("the file {} cannot be protected: its path is not UTF-8", file.display());
            return Err(Failure::new(Code::Refused, message));
        };
        restricted.entries.push(Entry::new(EntryPath::Path(path.to_owned()), Access::Read));
    }
    Ok(())
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
