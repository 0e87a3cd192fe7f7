//! Servers behind URLs.

use std::process::Stdio;

use tokio::io::AsyncBufReadExt as _;

use crate::Failure;

/// All of one process, which is killed and comes back where it was.
pub(super) struct Remote {
    program: String,
    process: tokio::process::Child,
    pub(super) port: u16,
}

impl Remote {
    pub(super) async fn start(program: &str) -> Result<Self, Failure> {
        let (process, port) = begin(program, 0).await?;
        Ok(Self { program: program.to_owned(), process, port })
    }

    /// Everything that it was told is forgotten: sessions, subscriptions, calls.
    pub(super) async fn restart(&mut self) -> Result<(), Failure> {
        self.process.kill().await?;
        (self.process, self.port) = begin(&self.program, self.port).await?;
        Ok(())
    }

    pub(super) async fn end(mut self) -> Result<(), Failure> {
        Ok(self.process.kill().await?)
    }
}

async fn begin(program: &str, port: u16) -> Result<(tokio::process::Child, u16), Failure> {
    #[expect(clippy::disallowed_methods, reason = "a server of the soak, outside every connection")]
    let mut command = tokio::process::Command::new(program);
    command.args(["http", &port.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn()?;
    let output = process.stdout.take().ok_or("read where it listens")?;
    let mut line = String::new();
    tokio::io::BufReader::new(output).read_line(&mut line).await?;
    let port = line.trim().strip_prefix("port=").ok_or("read where it listens")?;
    Ok((process, port.parse()?))
}
