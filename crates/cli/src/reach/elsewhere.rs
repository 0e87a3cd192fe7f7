//! What is said of servers in environments.

use plenipo_config::EnvironmentSettings;
use plenipo_connect::environment::BindFault;
use plenipo_connect::{ConnectError, Fault, ServerName};

use crate::failure::Failure;

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
pub(super) fn not_bound(server: &ServerName, fault: &BindFault) -> Failure {
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
