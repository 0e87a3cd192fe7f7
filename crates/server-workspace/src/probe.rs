//! Which options a launcher has beyond the launcher contract: reporting, and restricting further.
//!
//! A launcher is asked once, by `sandbox --help`, and its answer is kept with the identity of its file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plenipo_authority::SandboxedCommand;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::output::Stream;
use crate::spawn::start_program;

pub(crate) const REPORT: &str = "--report-fd";
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const HELP_BYTES: usize = 64 * 1024;
/// Launchers remembered; a host has one, or two around an upgrade.
const REMEMBERED: usize = 16;

/// Path, then device, inode, size, mtime and ctime (seconds, nanoseconds each).
type Identity = (OsString, [i128; 7]);

/// What is known about launchers. A launcher that did not answer in 2 s counts as one without any
/// option, until its file changes.
#[derive(Debug, Default)]
pub(crate) struct Probes(Mutex<HashMap<Identity, Arc<OnceCell<Help>>>>);

/// What a launcher says of itself.
#[derive(Debug, Default, Clone)]
pub(crate) struct Help(Arc<[u8]>);

impl Probes {
    /// The help of `command`'s launcher. Calls that ask at the same time share one probe.
    pub(crate) async fn help(&self, command: &SandboxedCommand) -> Help {
        let Some(identity) = identity(command) else { return Help::default() };
        let answer = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= REMEMBERED && !known.contains_key(&identity) {
                known.clear();
            }
            Arc::clone(known.entry(identity).or_default())
        };
        answer.get_or_init(|| ask(command)).await.clone()
    }
}

impl Help {
    /// Whether it has the option as a word of its own.
    pub(crate) fn lists(&self, option: &str) -> bool {
        self.0
            .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')
            .any(|word| word == option.as_bytes())
    }
}

fn identity(command: &SandboxedCommand) -> Option<Identity> {
    let program = command.program();
    let file = fs::metadata(Path::new(program)).ok()?;
    let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    let [mtime, mtime_nsec, ctime, ctime_nsec] = times.map(i128::from);
    let numbers = [file.dev(), file.ino(), file.size()];
    let [device, inode, size] = numbers.map(i128::from);
    Some((program.to_owned(), [device, inode, size, mtime, mtime_nsec, ctime, ctime_nsec]))
}

async fn ask(command: &SandboxedCommand) -> Help {
    let args = ["sandbox", "--help"].map(AsRef::as_ref);
    let Ok(mut started) = start_program(command.program(), &args, command.environment()) else {
        return Help::default();
    };
    // Reading it all keeps a launcher from failing on a closed pipe; the group ends with `started`.
    let mut help = Stream::new(started.stdout.take(), HELP_BYTES);
    let mut noise = Stream::new(started.stderr.take(), 0);
    let reading = async {
        while !help.is_closed() {
            tokio::select! {
                _ = help.more() => {}
                _ = noise.more() => {}
            }
        }
    };
    match timeout(PROBE_TIMEOUT, reading).await {
        Ok(()) => Help(help.into_captured().beginning().into()),
        Err(_) => Help::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_option_counts() {
        for help in ["  --report-fd <FD>", "[--report-fd=N]", "x\n\t--report-fd"] {
            assert!(Help(help.as_bytes().into()).lists(REPORT), "{help}");
        }
        for help in ["", "--report-fds", "--report", "--no--report-fd", "report-fd"] {
            assert!(!Help(help.as_bytes().into()).lists(REPORT), "{help}");
        }
    }
}
