//! A shell that serves several calls, all under the authority of the call that started it.

use std::io;

use plenipo_authority::{AuthorityChanged, AuthorityGuard, CallAuthority, SandboxedCommand};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};

use crate::group::Group;

/// The longest output of a line.
const MAXIMUM_BYTES: usize = 1 << 20;

pub(crate) struct Shell {
    group: Group,
    guard: AuthorityGuard,
    stdin: ChildStdin,
    stdout: ChildStdout,
    count: u64,
}

impl Shell {
    pub(crate) fn start(command: &SandboxedCommand, authority: &CallAuthority) -> io::Result<Self> {
        let mut group = Group::start(command, true)?;
        let missing = || io::Error::other("the shell has no pipes");
        let stdin = group.child.stdin.take().ok_or_else(missing)?;
        let stdout = group.child.stdout.take().ok_or_else(missing)?;
        let stderr = group.child.stderr.take();
        tokio::spawn(async move {
            if let Some(mut stderr) = stderr {
                tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await.ok();
            }
        });
        Ok(Self { group, guard: AuthorityGuard::retain(authority), stdin, stdout, count: 0 })
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.group.child.id().is_some()
    }

    pub(crate) fn ensure_same(&self, authority: &CallAuthority) -> Result<(), AuthorityChanged> {
        self.guard.ensure_same(authority)
    }

    /// Runs a line; its exit status, and what it wrote to standard output.
    pub(crate) async fn line(&mut self, line: &str) -> io::Result<(i32, String)> {
        self.count += 1;
        let mark = format!("--end-{}--", self.count);
        let text = format!("{line}\nprintf '\\n%s %s\\n' {mark} \"$?\"\n");
        self.stdin.write_all(text.as_bytes()).await?;
        let mark = format!("\n{mark} ");
        let mut said = Vec::new();
        while said.len() < MAXIMUM_BYTES {
            if self.stdout.read_buf(&mut said).await? == 0 {
                return Err(io::Error::other("the shell ended"));
            }
            let text = String::from_utf8_lossy(&said);
            if let Some((output, status)) = text.split_once(&mark)
                && let Some(status) = status.strip_suffix('\n')
            {
                return Ok((status.parse().map_err(io::Error::other)?, output.to_owned()));
            }
        }
        Err(io::Error::other("the line says too much"))
    }
}
