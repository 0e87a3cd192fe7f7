//! Servers that know nothing of sandboxes and run inside one: the launcher starts the server itself, under a profile.
//!
//! The process keeps the policy that it was started with; another profile means another process.

use std::ffi::OsStr;
use std::path::Path;

use plenipo_authority::MAXIMUM_ARGUMENT_BYTES;
use plenipo_connect::{Connection, ServerName, StdioCommand};
use plenipo_launch::Rung;
use plenipo_policy::{PermissionProfile, State, WorkspaceRoots};

use crate::failure::{Code, Failure};
use crate::settings::Settings;
use crate::{authority, env, guard};

/// The launcher with `server` as its command, under `profile` in the directory where the server starts.
pub(crate) fn command(
    settings: &Settings,
    name: &ServerName,
    profile: &str,
    server: &StdioCommand,
) -> Result<StdioCommand, Failure> {
    let chosen = |roots: &WorkspaceRoots| Ok(settings.profile(Some(profile), roots)?.1);
    let state = state(settings, server.directory(), chosen)?;
    inside(settings, (name, profile), &state, server)
}

/// The launcher with `server` as its command, under a state that comes from the profile.
pub(crate) fn inside(
    settings: &Settings,
    (name, profile): (&ServerName, &str),
    state: &str,
    server: &StdioCommand,
) -> Result<StdioCommand, Failure> {
    if state.len() > MAXIMUM_ARGUMENT_BYTES {
        let message = format!(
            "failed to confine server `{name}`: profile `{profile}` is {} bytes long, one argument of a program \
             takes {MAXIMUM_ARGUMENT_BYTES}",
            state.len()
        );
        return Err(Failure::new(Code::Refused, message));
    }
    let launcher = match settings.launcher() {
        Some(path) => path.to_path_buf(),
        None => env::executable().map_err(|error| {
            let message = format!("failed to find this program's own file: {error}");
            Failure::new(Code::Refused, message)
        })?,
    };
    let mut confined = StdioCommand::new(launcher);
    confined.args(["sandbox", "--sandbox-state-json", state, "--"].map(OsStr::new));
    confined.args([server.program()]).args(server.arguments()).environment(server.variables());
    if let Some(directory) = server.directory() {
        confined.current_dir(directory);
    }
    confined.standing_for(server);
    Ok(confined)
}

/// The state of a profile in the directory where a server starts. A home directory is no workspace of a server that
/// happens to start there.
pub(crate) fn state(
    settings: &Settings,
    directory: Option<&Path>,
    profile: impl FnOnce(&WorkspaceRoots) -> Result<PermissionProfile, Failure>,
) -> Result<String, Failure> {
    let cwd = authority::working_directory(directory)?;
    let home = env::real_home()?;
    let roots = WorkspaceRoots::new(&cwd, home.as_deref(), false).map_err(Failure::from)?;
    let mut state = State::new(profile(&roots)?, &cwd);
    guard::protect(settings, &mut state)?;
    Ok(state.to_json())
}

/// A confined server that asks for policies would build sandboxes inside its own, which only the rung `landlock` can.
pub(crate) fn check_nesting(settings: &Settings, connection: &Connection) -> Result<(), Failure> {
    if !connection.sandbox_opt_in() || settings.minimum_rung() == Rung::Landlock {
        return Ok(());
    }
    let message = "the server is confined and launches sandboxed commands itself: a sandbox inside a sandbox needs \
                   `sandbox.minimum_rung = \"landlock\"`";
    Err(Failure::new(Code::Refused, message).with_hint(
        "set `sandbox = \"off\"` for this server: its commands are sandboxed one by one",
    ))
}
