//! Where the launcher for sandboxed commands comes from.
//!
//! The embedding host says which: none, its own verified executable, or a configured path. A path
//! is asked once, lazily, whether it is a launcher at all (`PROG sandbox --help` within 2 s, exit
//! 0, mentions `--sandbox-state-json`); the answer is kept in memory for as long as the file stays
//! the same one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plenipo_authority::{LauncherFault, VerifiedLauncher};
use plenipo_process::{Brief, StdioCommand, run_briefly};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::text::shown_bytes;

const PROBE_LIMIT: Duration = Duration::from_secs(2);
const PROBE_OUTPUT: usize = 64 * 1024;
const PROBE_WORD: &[u8] = b"--sandbox-state-json";

/// What the host knows about a launcher.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum LauncherSource {
    /// There is none.
    #[default]
    None,
    /// A launcher that needs no probe: the host's own executable.
    Verified(VerifiedLauncher),
    /// A configured absolute path, to be verified and probed.
    Path(PathBuf),
}

/// Gives out the launcher; shared by the connections of a host.
#[derive(Debug, Default)]
pub struct LauncherProvider {
    source: LauncherSource,
    probed: Mutex<Option<Probed>>,
}

#[derive(Debug)]
struct Probed {
    launcher: VerifiedLauncher,
    fault: Option<String>,
}

/// Why there is no launcher although one is configured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// The file is not fit to be one.
    #[error("use the launcher `{}`", path.display())]
    Unfit {
        /// As configured.
        path: PathBuf,
        /// Which rule it breaks.
        #[source]
        source: LauncherFault,
    },
    /// The program does not say that it is one.
    #[error("use the launcher `{}`: {reason}", path.display())]
    NotALauncher {
        /// As configured.
        path: PathBuf,
        /// What it did instead.
        reason: String,
    },
}

impl LauncherProvider {
    /// Never gives one.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Gives what `source` has.
    #[must_use]
    pub fn new(source: LauncherSource) -> Self {
        Self { source, probed: Mutex::new(None) }
    }

    /// The launcher now; `None` when none is configured.
    ///
    /// # Errors
    /// [`LauncherError`] when one is configured and cannot be used: the call then goes out without
    /// a launcher, and a consumer that needs one fails closed.
    pub async fn provide(&self) -> Result<Option<VerifiedLauncher>, LauncherError> {
        match &self.source {
            LauncherSource::None => Ok(None),
            LauncherSource::Verified(launcher) => Ok(Some(launcher.clone())),
            LauncherSource::Path(path) => self.probe(path).await.map(Some),
        }
    }

    async fn probe(&self, path: &Path) -> Result<VerifiedLauncher, LauncherError> {
        let launcher = VerifiedLauncher::verify(path)
            .map_err(|source| LauncherError::Unfit { path: path.to_owned(), source })?;
        let mut probed = self.probed.lock().await;
        let known = probed.as_ref().filter(|known| known.launcher == launcher);
        let fault = match known {
            Some(known) => known.fault.clone(),
            None => {
                let fault = ask(path).await.err();
                *probed = Some(Probed { launcher: launcher.clone(), fault: fault.clone() });
                fault
            }
        };
        match fault {
            None => Ok(launcher),
            Some(reason) => Err(LauncherError::NotALauncher { path: path.to_owned(), reason }),
        }
    }
}

async fn ask(path: &Path) -> Result<(), String> {
    let question = "`sandbox --help`";
    let mut command = StdioCommand::new(path);
    command.args(["sandbox", "--help"]);
    let output = match run_briefly(&command, PROBE_LIMIT, PROBE_OUTPUT).await {
        Ok(Brief::Ended(output)) => output,
        Ok(Brief::TooMuch) => return Err(format!("its answer to {question} is too long")),
        Ok(Brief::TooSlow) => return Err(format!("it did not answer {question} within 2 s")),
        Err(error) => return Err(format!("it could not be asked {question}: {error}")),
    };
    if !output.success {
        return Err(format!("it fails {question}"));
    }
    if !output.stdout.windows(PROBE_WORD.len()).any(|window| window == PROBE_WORD) {
        let said = shown_bytes(&output.stdout);
        return Err(format!("its answer to {question} does not name --sandbox-state-json: {said}"));
    }
    Ok(())
}
