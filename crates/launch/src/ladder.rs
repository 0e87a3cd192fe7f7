//! The ladder: the best rung that this machine has, never one below the minimum.
//!
//! A rung is not guessed at, it is built. What the machine does not permit shows while that is done, before the command
//! exists; then the next rung is tried. Any other failure (a path that changed, a rule that is not in force) ends the
//! launch, whatever rungs there are below.

pub(crate) mod bwrap;
mod landlock;
mod namespaces;

use std::os::fd::OwnedFd;

use plenipo_policy::Network;
use rustix::process::Pid;
use rustix::thread::CapabilitySet;

use crate::describe::describe;
use crate::error::{ErrorKind, Lack, LaunchError};
use crate::handshake::{Answer, FromFirst, Gate, ToLauncher, ended_early};
use crate::init;
use crate::launcher::LaunchRequest;
use crate::prepare::Prepared;
use crate::report::{EnforcementReport, write_line};
use crate::rung::{Rung, RungAttempt, order};
use crate::supervise::{reap, supervise};
use crate::sys::{self, SignalMask};
use crate::terminal::{News, Outside, relay};

/// Whether the command is run in the sandbox, or the sandbox just built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Run,
    Try,
}

/// One launch on its way through the rungs.
pub(crate) struct Climb<'a> {
    request: &'a LaunchRequest,
    prepared: &'a Prepared,
    purpose: Purpose,
    /// This process.
    launcher: Pid,
    /// Of the caller.
    mask: SignalMask,
    unavailable: Vec<RungAttempt>,
    lack: Option<Lack>,
}

/// One launch on one rung.
pub(crate) struct Attempt<'a> {
    pub(crate) request: &'a LaunchRequest,
    pub(crate) prepared: &'a Prepared,
    pub(crate) purpose: Purpose,
    pub(crate) rung: Rung,
    /// Better rungs that are not to be had.
    pub(crate) unavailable: &'a [RungAttempt],
    pub(crate) mask: &'a SignalMask,
    /// The process that all of this is forked from.
    pub(crate) launcher: Pid,
}

impl<'a> Climb<'a> {
    pub(crate) fn new(
        request: &'a LaunchRequest,
        prepared: &'a Prepared,
        purpose: Purpose,
    ) -> Result<Self, LaunchError> {
        sys::restore_child_signal();
        let mask =
            sys::block_signals().map_err(|error| LaunchError::step("block signals", error))?;
        let launcher = rustix::process::getpid();
        Ok(Self { request, prepared, purpose, launcher, mask, unavailable: Vec::new(), lack: None })
    }

    /// Runs the command on the best rung.
    pub(crate) fn run(mut self, report: &mut Option<OwnedFd>) -> Result<u8, LaunchError> {
        for rung in self.rungs() {
            if let Some((code, _)) = self.try_rung(rung, report)? {
                return Ok(code);
            }
        }
        Err(self.no_rung())
    }

    /// Builds the best rung's sandbox, and says what it enforces.
    pub(crate) fn explain(mut self) -> Result<EnforcementReport, LaunchError> {
        let outcome = self.find_report();
        sys::restore_signals(&self.mask).map_err(|e| LaunchError::step("restore signals", e))?;
        outcome
    }

    fn find_report(&mut self) -> Result<EnforcementReport, LaunchError> {
        for rung in self.rungs() {
            let Some((_, report)) = self.try_rung(rung, &mut None)? else { continue };
            if rung.suffices(self.request.minimum_rung) {
                return Ok(report);
            }
            let minimum = self.request.minimum_rung.name();
            self.unavailable.push(RungAttempt {
                rung,
                why: format!("it works here, and is weaker than the minimum rung {minimum}"),
                fix: Some(format!("sandbox.minimum_rung = \"{}\" in your configuration, if what it lacks is acceptable", rung.name())),
            });
            break;
        }
        Err(self.no_rung())
    }

    /// Those that may be tried: to explain, even the ones that may not be used.
    fn rungs(&self) -> Vec<Rung> {
        let capable = rustix::thread::capabilities(None)
            .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
        let minimum = match self.purpose {
            Purpose::Run => self.request.minimum_rung,
            Purpose::Try => Rung::Landlock,
        };
        order(capable).iter().copied().filter(|rung| rung.suffices(minimum)).collect()
    }

    /// `None`: this machine does not have the rung.
    fn try_rung(
        &mut self,
        rung: Rung,
        report: &mut Option<OwnedFd>,
    ) -> Result<Option<(u8, EnforcementReport)>, LaunchError> {
        let attempt = Attempt {
            request: self.request,
            prepared: self.prepared,
            purpose: self.purpose,
            rung,
            unavailable: &self.unavailable,
            mask: &self.mask,
            launcher: self.launcher,
        };
        let tried = match rung {
            Rung::Full | Rung::FullPrivileged => namespaces::attempt(&attempt, report),
            Rung::Bwrap | Rung::Landlock if attempt.wants_terminal() => Err(LaunchError::new(
                ErrorKind::Unsupported,
                "it has no terminal of its own to give (--tty)",
            )),
            Rung::Bwrap | Rung::Landlock if attempt.limits_network() => Err(LaunchError::new(
                ErrorKind::Unsupported,
                "it cannot limit the network to hosts",
            )),
            Rung::NoProc | Rung::Landlock if self.prepared.resolved.denies_processes => {
                Err(LaunchError::new(
                    ErrorKind::Unsupported,
                    "the policy denies a process's files in /proc, which would be visible",
                ))
            }
            Rung::NoProc if self.lack == Some(Lack::FreshProc) => {
                namespaces::attempt(&attempt, report)
            }
            Rung::NoProc => Err(LaunchError::new(
                ErrorKind::Unsupported,
                "it would not help: a fresh /proc is not what is missing",
            )),
            Rung::Bwrap if self.lack == Some(Lack::FreshProc) => Err(LaunchError::new(
                ErrorKind::Unsupported,
                "the kernel would refuse it a fresh /proc as well",
            )),
            Rung::Bwrap => bwrap::attempt(&attempt, report),
            Rung::Landlock => landlock::attempt(&attempt, report),
            Rung::None => Err(LaunchError::new(ErrorKind::Unsupported, "it enforces nothing")),
        };
        match tried {
            Ok(code) => Ok(Some((code, describe(&attempt)))),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                self.lack = self.lack.or(error.lack());
                let fix = error.hint().map(str::to_owned);
                self.unavailable.push(RungAttempt { rung, why: error.in_one_line(), fix });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn no_rung(&mut self) -> LaunchError {
        let minimum = self.request.minimum_rung.name();
        let tried: Vec<String> = self
            .unavailable
            .iter()
            .map(|attempt| format!("{}: {}", attempt.rung.name(), attempt.why))
            .collect();
        let message =
            format!("build a sandbox of rung {minimum} or better here; {}", tried.join("; "));
        let hint = self.unavailable.iter().find_map(|attempt| attempt.fix.clone());
        let error = LaunchError::of_rungs(message, std::mem::take(&mut self.unavailable));
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl Attempt<'_> {
    fn wants_terminal(&self) -> bool {
        self.request.terminal && self.purpose == Purpose::Run
    }

    /// Writes the report and closes it, then lets the command start.
    fn open(&self, gate: Gate, report: &mut Option<OwnedFd>) -> Result<(), LaunchError> {
        if let Some(report) = report.take() {
            write_line(report, &describe(self).to_line())
                .map_err(|error| LaunchError::step("write the enforcement report", error))?;
        }
        gate.open();
        Ok(())
    }

    fn limits_network(&self) -> bool {
        matches!(self.request.policy.network, Network::Limited(_))
    }

    /// The launcher's side of a fork: waits for the sandbox to be complete, then for its end.
    fn follow(
        &self,
        child: Pid,
        answers: FromFirst,
        report: &mut Option<OwnedFd>,
        terminal: Option<Outside>,
    ) -> Result<u8, LaunchError> {
        match answers.wait() {
            Answer::Started(gate) => {
                if let Err(error) = self.open(gate, report) {
                    reap(child);
                    return Err(error);
                }
                match terminal {
                    Some(terminal) => relay(terminal, child),
                    None => supervise(child, child),
                }
            }
            Answer::Refused(error) => {
                reap(child);
                Err(error)
            }
            Answer::Nothing => {
                reap(child);
                Err(ended_early())
            }
        }
    }

    /// The forked side, once it is confined or has failed to be. Its return value becomes the exit code of the sandbox's
    /// first process.
    fn go_on(
        &self,
        confined: Result<(), LaunchError>,
        launcher: ToLauncher,
        news: Option<News>,
    ) -> u8 {
        if let Err(error) = confined.and_then(|()| may_close()) {
            launcher.refuse(&error);
            return u8::MAX;
        }
        if !launcher.started() {
            return u8::MAX;
        }
        if self.purpose == Purpose::Try {
            return 0;
        }
        // The launcher holds and removes the placeholders; here only this process's copies of their descriptors go.
        let closed = match &news {
            Some(news) => sys::close_all_but(news.descriptor(), 3),
            None => sys::close_from(3),
        };
        if closed.is_err() {
            return u8::MAX;
        }
        let payload = &self.prepared.payload;
        match self.rung {
            Rung::Landlock => init::run_alone(payload, self.mask, self.launcher),
            _ => init::run(payload, self.mask, news),
        }
    }
}

/// Asked before the launcher hears that all is well: a command may not start with descriptors that are not its own.
pub(crate) fn may_close() -> Result<(), LaunchError> {
    sys::may_close().map_err(|error| {
        LaunchError::unsupported("close inherited descriptors (close_range(2))", error).with_hint(
            "the filter of this container refuses a system call of Linux 5.9; let it pass, or use a newer container runtime",
        )
    })
}
