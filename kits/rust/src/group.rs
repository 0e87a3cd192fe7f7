//! A command in a process group of its own, which ends with it.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;

use plenipo_authority::SandboxedCommand;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Kept of each stream.
const MAXIMUM_BYTES: u64 = 1 << 20;
const GRACE: Duration = Duration::from_millis(500);

/// Dropping it kills the group.
pub(crate) struct Group {
    pub(crate) child: Child,
    id: Option<Pid>,
}

/// The end of a command; `status` is 128+n when signal n ended it.
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Group {
    /// Starts `command` without a shell, with exactly its environment.
    pub(crate) fn start(command: &SandboxedCommand, writes: bool) -> io::Result<Self> {
        let stdin = if writes { Stdio::piped() } else { Stdio::null() };
        let child = Command::new(command.program())
            .args(command.args())
            .env_clear()
            .envs(command.environment())
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| not_started(command, error))?;
        let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Ok(Self { child, id })
    }

    /// Waits for the command's end, at most `limit`; then ends what is left of its group.
    pub(crate) async fn finish(&mut self, limit: Duration) -> io::Result<(Done, bool)> {
        let out = tokio::spawn(keep(self.child.stdout.take()));
        let err = tokio::spawn(keep(self.child.stderr.take()));
        let ended = timeout(limit, self.child.wait()).await;
        let timed_out = ended.is_err();
        if timed_out {
            self.signal(Signal::TERM);
            timeout(GRACE, self.child.wait()).await.ok();
        }
        self.signal(Signal::KILL);
        let status = self.child.wait().await?;
        self.id = None;
        let status = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        let [stdout, stderr] = [out.await?, err.await?];
        Ok((Done { status, stdout, stderr }, timed_out))
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            kill_process_group(id, signal).ok(); // It may be gone.
        }
    }
}

/// Nothing ran then; without the launcher it is not tried.
fn not_started(command: &SandboxedCommand, error: io::Error) -> io::Error {
    let what = if command.is_sandboxed() { "the launcher of this call" } else { "the command" };
    let program = command.program().to_string_lossy();
    io::Error::new(error.kind(), format!("{what}, `{program}`, cannot be started: {error}"))
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Reads to the end, so that nobody blocks on a full pipe, and keeps the beginning.
async fn keep(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut stream) = stream {
        (&mut stream).take(MAXIMUM_BYTES).read_to_end(&mut kept).await.ok();
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.ok();
    }
    kept
}
