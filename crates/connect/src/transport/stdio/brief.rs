//! Running a program to its end with a limit in time.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::Group;

const KEPT: u64 = 64 * 1024;

/// What a short run said.
#[derive(Debug)]
pub(crate) struct BriefOutput {
    pub(crate) success: bool,
    /// At most 64 KiB.
    pub(crate) stdout: Vec<u8>,
}

/// Runs `program` with an empty environment and no input; `None` when it took longer than `limit`.
/// Nothing of it is left behind.
pub(crate) async fn run_briefly(
    program: &Path,
    args: &[&str],
    limit: Duration,
) -> io::Result<Option<BriefOutput>> {
    #[expect(clippy::disallowed_methods, reason = "the launcher probe is started here")]
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group::led_by(&child);
    let run = async {
        let mut stdout = Vec::new();
        if let Some(pipe) = child.stdout.take() {
            pipe.take(KEPT).read_to_end(&mut stdout).await?;
        }
        let success = child.wait().await?.success();
        Ok(BriefOutput { success, stdout })
    };
    let outcome = tokio::time::timeout(limit, run).await;
    group.close();
    outcome.ok().transpose()
}
