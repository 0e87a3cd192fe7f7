//! One editor of a directory's files at a time.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::failure::{Code, Failure};

/// An edit takes milliseconds; longer than this nobody waits.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// Held until dropped; the system releases it when the process ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl Lock {
    /// Locks the directory itself, so that no file is left behind.
    pub(super) fn take(directory: &Path) -> Result<Self, Failure> {
        let failed = |reason: &str| {
            let message = format!("failed to lock {}: {reason}", directory.display());
            Failure::new(Code::Transport, message)
        };
        let file = File::open(directory).map_err(|error| failed(&error.to_string()))?;
        let end = Instant::now() + PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => {
                    std::thread::sleep(PAUSE);
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(failed("another program has been editing it for 10 s"));
                }
                Err(error) => return Err(failed(&error.to_string())),
            }
        }
    }
}
