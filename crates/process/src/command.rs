//! A server as a child process: argv without a shell, its own process group, a cleared
//! environment, pipes for all three streams.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::process::Command;

use crate::error::StartFault;
use crate::input::Input;
use crate::output::Output;
use crate::spawner::{ServerProcess, ServerStreams, Spawner};

/// What to start: program, arguments, whole environment, working directory.
///
/// The child gets exactly the given environment and nothing of the host's. A program without a
/// slash is looked up in the `PATH` of that environment.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioCommand {
    program: OsString,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    stands_for: Option<Box<Self>>,
}

impl StdioCommand {
    /// A program without arguments and with an empty environment.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            environment: Vec::new(),
            cwd: None,
            stands_for: None,
        }
    }

    /// Appends arguments.
    pub fn args<S: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = S>) -> &mut Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Appends variables; see [`environment::build`](crate::environment::build).
    pub fn environment<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        let owned = |(name, value): (N, V)| (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.environment.extend(variables.into_iter().map(owned));
        self
    }

    /// Sets the working directory; the default is the host's.
    pub fn current_dir(&mut self, cwd: impl AsRef<Path>) -> &mut Self {
        self.cwd = Some(cwd.as_ref().to_owned());
        self
    }

    /// This command starts `server` with something around it: it takes turns with it, and its era is remembered, as if
    /// `server` were started itself.
    pub fn standing_for(&mut self, server: &Self) -> &mut Self {
        let mut server = server.stands_for().clone();
        server.environment.clear();
        self.stands_for = Some(Box::new(server));
        self
    }

    /// The server that is started in the end, without its environment if that is another command.
    #[must_use]
    pub fn stands_for(&self) -> &Self {
        self.stands_for.as_deref().unwrap_or(self)
    }

    /// The environment the child will have, in the order given; later entries win.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The program as given.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The arguments, in order.
    pub fn arguments(&self) -> impl ExactSizeIterator<Item = &OsStr> {
        self.args.iter().map(OsString::as_os_str)
    }

    /// The working directory, when one was set.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// Starts it by `spawner`, with pipes for its three streams.
    ///
    /// # Errors
    /// [`StartFault`]: what is not there, or the system's reason.
    pub async fn spawn(&self, spawner: &dyn Spawner) -> Result<Running, StartFault> {
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(StartFault::WorkingDirectory { path: cwd.clone() });
        }
        let spawned = async {
            let (their_stdin, stdin) = io::pipe()?;
            let (stdout, their_stdout) = io::pipe()?;
            let (stderr, their_stderr) = io::pipe()?;
            let streams = ServerStreams {
                stdin: their_stdin.into(),
                stdout: their_stdout.into(),
                stderr: their_stderr.into(),
            };
            let stdin = Input::new(stdin)?;
            let (stdout, stderr) = (Output::new(stdout.into())?, Output::new(stderr.into())?);
            let process = spawner.spawn(self, streams).await?;
            Ok(Running { stdin, stdout, stderr, process })
        };
        spawned.await.map_err(|error| self.spawn_fault(error))
    }

    /// Why it did not start when whoever was to start it does not.
    #[must_use]
    pub fn not_started_in_time(&self) -> StartFault {
        let program = self.program.display().to_string();
        let source = io::Error::new(io::ErrorKind::TimedOut, "nobody started it in time");
        StartFault::Spawn { program, source }
    }

    /// Everything but the streams. The child leads a group of its own.
    pub(crate) fn prepare(&self) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "servers and helpers start here, nowhere else"
        )]
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }

    fn spawn_fault(&self, source: io::Error) -> StartFault {
        let program = self.program.display().to_string();
        if source.kind() != io::ErrorKind::NotFound {
            return StartFault::Spawn { program, source };
        }
        let Some(path) = self.search_path() else {
            let base = self.cwd.clone().unwrap_or_default();
            return match base.join(&self.program).is_file() {
                true => StartFault::InterpreterMissing { program },
                false => StartFault::ProgramNotFound { program, searched: None },
            };
        };
        let candidates = std::env::split_paths(&path).map(|folder| folder.join(&self.program));
        match candidates.into_iter().find(|candidate| is_executable(candidate)) {
            Some(found) => StartFault::InterpreterMissing { program: found.display().to_string() },
            None => {
                StartFault::ProgramNotFound { program, searched: Some(path.display().to_string()) }
            }
        }
    }

    /// The `PATH` a bare name is looked up in; `None` for a path.
    fn search_path(&self) -> Option<OsString> {
        if self.program.as_encoded_bytes().contains(&b'/') {
            return None;
        }
        let set = self.environment.iter().rev().find(|(name, _)| name == "PATH");
        Some(set.map(|(_, value)| value.clone()).unwrap_or_default())
    }
}

/// A server that was started, and our ends of its streams.
#[derive(Debug)]
#[non_exhaustive]
pub struct Running {
    /// What it reads.
    pub stdin: Input,
    /// What it writes.
    pub stdout: Output,
    /// What it writes beside.
    pub stderr: Output,
    /// The server itself, to be waited for and ended.
    pub process: Arc<dyn ServerProcess>,
}

impl fmt::Debug for StdioCommand {
    /// Names of variables, never their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("StdioCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("environment", &names)
            .field("cwd", &self.cwd)
            .finish()
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
