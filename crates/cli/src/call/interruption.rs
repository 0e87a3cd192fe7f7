//! Ctrl-C and its like.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Code, Failure};

/// SIGINT, SIGTERM and SIGHUP end a call in good order: the server is told, and nothing is left running.
pub(super) struct Interruption {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Interruption {
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Code::Transport, format!("failed to listen for signals: {error}"))
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    pub(super) async fn wait(&mut self) -> Code {
        tokio::select! {
            _ = self.interrupt.recv() => Code::Interrupted,
            _ = self.terminate.recv() => Code::Terminated,
            _ = self.hang_up.recv() => Code::HungUp,
        }
    }
}

pub(super) fn interrupted(code: Code) -> Failure {
    Failure::new(code, "interrupted; the call was cancelled")
}
