//! Rungs `full`, `full-privileged` and `no-proc`: one forked process that builds everything itself.

use std::os::fd::OwnedFd;

use plenipo_policy::Network;
use rustix::process::Signal;

use super::Attempt;
use crate::PROXY_PORT;
use crate::egress::{Inside as Listening, Way};
use crate::enter::{Confinement, Ids, Proc, enter};
use crate::error::LaunchError;
use crate::handshake::{self, ToLauncher};
use crate::network::Elsewhere;
use crate::plan::{LaunchPlan, plan};
use crate::rung::Rung;
use crate::supervise::reap;
use crate::sys::{self, Fork, Namespaces};
use crate::terminal::{Inside, Terminal};

/// What builds the sandbox around the forked process; tests have one that makes mistakes.
type Enter<'a> = &'a dyn Fn(&LaunchPlan, &Confinement<'_>) -> Result<(), LaunchError>;

/// Runs the command to its end, or says why the sandbox cannot be built.
pub(super) fn attempt(
    attempt: &Attempt<'_>,
    report: &mut Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    attempt_by(&enter, attempt, report)
}

fn attempt_by(
    enter: Enter<'_>,
    attempt: &Attempt<'_>,
    report: &mut Option<OwnedFd>,
) -> Result<u8, LaunchError> {
    let (answers, launcher) = handshake::pair(report.is_some())?;
    let privileged = attempt.rung == Rung::FullPrivileged
        || attempt.unavailable.iter().any(|tried| tried.rung == Rung::FullPrivileged);
    let user = !privileged || attempt.rung == Rung::Full;
    // Asked for before the fork: a user namespace without maps has no ids.
    let ids =
        user.then(|| Ids { user: rustix::process::getuid(), group: rustix::process::getgid() });
    let elsewhere = Elsewhere::of(attempt)?;
    let network = attempt.request.policy.network != Network::Enabled && elsewhere.is_none();
    let namespaces = Namespaces { user, network };
    let way = Way::of(attempt)?;
    let terminal = attempt.wants_terminal().then(Terminal::new).transpose()?;
    match sys::fork_into(namespaces).map_err(|error| cannot_fork(error, namespaces))? {
        Fork::Child => {
            drop((answers, report.take())); // the launcher's to write and to close
            let inside = terminal.map(Terminal::inside);
            let networks = (way, elsewhere);
            let confined = confine(enter, attempt, ids, &launcher, inside.as_ref(), networks);
            let news = inside.map(Inside::into_news);
            sys::exit_now(i32::from(attempt.go_on(confined, launcher, news)))
        }
        Fork::Parent(child) => {
            drop(launcher);
            if let Some(elsewhere) = elsewhere {
                elsewhere.make(child, user);
            }
            if let Some(Err(error)) = way.map(|way| way.serve(attempt)) {
                reap(child); // it ends with the channel
                return Err(error);
            }
            attempt.follow(child, answers, report, terminal.map(Terminal::outside))
        }
    }
}

fn cannot_fork(error: std::io::Error, namespaces: Namespaces) -> LaunchError {
    let code = error.raw_os_error();
    let what = if namespaces.user { "make a user namespace" } else { "make namespaces" };
    if code == Some(libc::EAGAIN) {
        // Not what the machine lacks: no other rung would do better.
        return LaunchError::step(what, error).with_hint(
            "this user may start no more processes (ulimit -u, a cgroup's pids.max): end some, or raise the limit",
        );
    }
    let error = LaunchError::unsupported(what, error);
    match code {
        Some(libc::ENOSYS) => error.with_hint(
            "this process is in a sandbox already, which allows no other inside, or in a container whose filter \
             refuses clone3",
        ),
        Some(libc::ENOSPC) => error.with_hint(
            "too many namespaces, or nested too deeply (sysctl user.max_user_namespaces and its neighbours)",
        ),
        _ if namespaces.user => error.with_hint(
            "user namespaces are not available to this user (sysctl user.max_user_namespaces, AppArmor, a container's \
             own filter); `plenipo doctor` says more",
        ),
        _ => error.with_hint("this container's own filter refuses new namespaces"),
    }
}

fn confine(
    enter: Enter<'_>,
    attempt: &Attempt<'_>,
    ids: Option<Ids>,
    launcher: &ToLauncher,
    terminal: Option<&Inside>,
    (way, elsewhere): (Option<Way>, Option<Elsewhere>),
) -> Result<(), LaunchError> {
    launcher.die_with_launcher(Signal::KILL)?;
    let listening = way.map(Way::listen).transpose()?;
    let landlock_abi = attempt.prepared.landlock_abi;
    let elsewhere = elsewhere.map(|elsewhere| elsewhere.inside(landlock_abi)).transpose()?;
    let network = attempt.request.policy.network == Network::Enabled;
    let resolved = &attempt.prepared.resolved;
    let steps = plan(&resolved.tree, &resolved.links, &resolved.cwd);
    let proxied = listening.is_some();
    let filter =
        if proxied { plenipo_filter::build_proxied() } else { plenipo_filter::build(network) };
    let confinement = Confinement {
        ids,
        proc: if attempt.rung == Rung::NoProc { Proc::Outer } else { Proc::Fresh },
        network,
        elsewhere: elsewhere.as_ref(),
        proxy_port: proxied.then_some(PROXY_PORT),
        landlock_abi,
        filter: &filter,
        descriptor_limit: attempt.prepared.descriptor_limit,
        terminal,
    };
    enter(&steps, &confinement)?;
    if let Some(elsewhere) = &elsewhere {
        elsewhere.verify()?;
    }
    // Nothing is left to fail but the report.
    listening.map_or(Ok(()), Listening::hand_out)
}

#[cfg(test)]
mod tests;
