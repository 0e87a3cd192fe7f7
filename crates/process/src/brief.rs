//! Running a program to its end with a limit in time and output.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use crate::command::StdioCommand;
use crate::group::Group;

/// What a short run said.
#[derive(Debug)]
#[non_exhaustive]
pub struct BriefOutput {
    /// It exited with code 0.
    pub success: bool,
    /// All that it wrote.
    pub stdout: Vec<u8>,
}

/// How a short run went.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "nothing else can become of a bounded run")]
pub enum Brief {
    /// It ended by itself.
    Ended(BriefOutput),
    /// It took too long, and was ended.
    TooSlow,
    /// It wrote too much, and was ended.
    TooMuch,
}

/// Runs `command` without input; at most `limit`, at most `most` bytes of output. Nothing of it is
/// left behind.
///
/// # Errors
/// It could not be started, or its output not be read.
pub async fn run_briefly(
    command: &StdioCommand,
    limit: Duration,
    most: usize,
) -> io::Result<Brief> {
    let mut command = command.prepare();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let group = Group::led_by(&child);
    let run = async {
        let mut stdout = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
            pipe.take(bound).read_to_end(&mut stdout).await?;
        }
        if stdout.len() > most {
            return Ok(Brief::TooMuch);
        }
        let success = child.wait().await?.success();
        Ok(Brief::Ended(BriefOutput { success, stdout }))
    };
    let outcome = tokio::time::timeout(limit, run).await;
    group.close();
    outcome.unwrap_or(Ok(Brief::TooSlow))
}
