//! Proxy variables that are set here and that a server of this machine does not get.

use plenipo_config::EnvironmentSettings;
use plenipo_connect::{ConnectError, Fault};

use crate::env;
use crate::failure::Failure;
use crate::reach::{Reachable, failed_in_place};

/// Where the proxies are.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// Who is reached without one: nothing by itself.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Those that `server` has no part in: the environment of a local server is an allow-list, and they are not on it.
pub(crate) fn dropped(server: &Reachable) -> Vec<&'static str> {
    if !server.is_local() {
        return Vec::new();
    }
    let is_set = |name: &&str| env::variable(name).is_some_and(|value| !value.is_empty());
    // Programs read either spelling.
    let is_passed = |name: &&str| server.variables_set().any(|set| set.eq_ignore_ascii_case(name));
    let is_dropped = |name: &&str| is_set(name) && !is_passed(name);
    let mut dropped: Vec<_> = PROXIES.into_iter().filter(is_dropped).collect();
    if !dropped.is_empty() {
        dropped.extend(EXCEPTIONS.into_iter().filter(is_dropped));
    }
    dropped
}

/// Names without their values, which may hold passwords.
pub(crate) fn told(names: &[&str]) -> String {
    let are = if names.len() == 1 { "is" } else { "are" };
    format!("{} {are} set here", names.join(", "))
}

/// What passes them on.
pub(crate) fn key(names: &[&str]) -> String {
    let words: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("env_vars = [{}]", words.join(", "))
}

/// Of a server that was to be reached in `place`, and got none of the variables `dropped`.
pub(crate) fn failed_start(
    error: ConnectError,
    place: Option<&EnvironmentSettings>,
    dropped: &[&str],
) -> Failure {
    let may_want_more = matches!(
        error.fault(),
        Fault::Exited { .. } | Fault::OutputClosed | Fault::NoAnswer { .. }
    );
    let failure = failed_in_place(error, place);
    if !may_want_more || dropped.is_empty() {
        return failure;
    }
    let more = format!(
        "{} and not passed on: if the server needs a proxy, write {} in its table",
        told(dropped),
        key(dropped)
    );
    match failure.hint().map(|hint| format!("{hint}; {more}")) {
        Some(hint) => failure.with_hint(hint),
        None => failure.with_hint(more),
    }
}
