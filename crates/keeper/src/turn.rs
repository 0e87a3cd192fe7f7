//! One run of a server after the other: a server that was handed over has a lock until it has ended, and the next one of
//! the same command is not started before that. Servers that run at the same time have nothing to do with it.

use std::collections::hash_map::DefaultHasher;
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use plenipo_process::StdioCommand;
use rustix::fs::{FlockOperation, flock};
use tokio::time::{Instant, sleep};

/// Longer than a server that was handed over is usually given.
const LONGEST: Duration = Duration::from_secs(5);
const SHORTLY: Duration = Duration::from_millis(2);
/// Who looks whether it is its turn has the lock for a moment.
const TRIES: u32 = 100;

/// The lock of all runs of a command.
#[derive(Debug)]
pub(crate) struct Turn(File);

impl Turn {
    /// Its file in `directory`, which is made for the owner alone.
    pub(crate) fn of(command: &StdioCommand, directory: &Path) -> io::Result<Self> {
        let command = command.stands_for();
        let mut hasher = DefaultHasher::new();
        command.program().hash(&mut hasher);
        command.arguments().for_each(|argument| argument.hash(&mut hasher));
        command.directory().hash(&mut hasher);
        let path = directory.join(format!("{:016x}.lock", hasher.finish()));
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                options.open(&path).map(Self)
            }
            opened => opened.map(Self),
        }
    }

    /// Waits until no run before this one is still ending, but not for ever.
    pub(crate) async fn wait(&self) {
        let end = Instant::now() + LONGEST;
        loop {
            match flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => sleep(SHORTLY).await,
                Err(_) => return,
                // Nobody else has to wait for us before we end.
                Ok(()) => return flock(&self.0, FlockOperation::Unlock).unwrap_or_default(),
            }
        }
    }

    /// What has to be open until the server has ended.
    pub(crate) fn hold(&self) -> io::Result<OwnedFd> {
        let lock = || flock(&self.0, FlockOperation::NonBlockingLockShared);
        let mut locked = lock();
        for _ in 0..TRIES {
            if locked.is_ok() {
                break;
            }
            std::thread::yield_now();
            locked = lock();
        }
        locked?;
        self.0.try_clone().map(OwnedFd::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However it is wrapped: there is one file, so that the runs wait for each other.
    #[test]
    fn a_command_around_a_server_takes_turns_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut server = StdioCommand::new("server");
        server.args(["x"]).environment([("TOKEN", "y")]);
        let around = |word: &str, inner: &StdioCommand| {
            let mut command = StdioCommand::new("plenipo");
            command.args(["trace", "--to", word]).standing_for(inner);
            command
        };
        let (one, two) = (around("1", &server), around("2", &server));
        for command in [&server, &one, &two, &around("3", &one)] {
            Turn::of(command, directory.path()).unwrap();
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(one.stands_for().variables().count(), 0, "what it is started with stays there");
    }

    #[tokio::test]
    async fn the_next_one_waits_for_all_that_are_ending_and_for_nobody_else() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a/b");
        let command = StdioCommand::new("server");
        let turn = || Turn::of(&command, &place).unwrap();
        let (first, second, next) = (turn(), turn(), turn());
        next.wait().await;
        let held = [first.hold().unwrap(), second.hold().unwrap()];
        drop((first, second));
        let mut other = StdioCommand::new("server");
        Turn::of(other.args(["x"]), &place).unwrap().wait().await;
        let waits = tokio::spawn(async move { next.wait().await });
        let [one, two] = held;
        drop(one);
        sleep(SHORTLY * 5).await;
        assert!(!waits.is_finished());
        drop(two);
        waits.await.unwrap();
    }
}
