//! Environments other than this machine: how a server's command gets there.
//!
//! A command prefix brings it there (`ssh host --`, `docker exec -i box`, `ip netns exec blue`). What it gets there is
//! the server's own words, in the quoting that the prefix wants, below a watchdog that ends the server when its
//! standard input closes: the prefix may be killed, and what it started on the other side must not stay.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use plenipo_authority::EnvironmentId;
use thiserror::Error;

use super::quoting;
use crate::StdioCommand;

/// Stands for the options that name forwarded variables.
pub const VARIABLES: &str = "{env}";
/// Stands for a variable's name in those options.
pub const NAME: &str = "{name}";

/// Runs the server and nothing else: feeds it standard input; when that closes, gives it two seconds to end and kills
/// its process group; when it ends by itself, ends what it left in the group. `$1` is its directory or empty.
///
/// The empty line says that the feeder can be ended; `read` takes that line and no byte more. What the feeder waits for
/// runs in the background and is killed: a TERM between its fork and its start would be lost.
const WATCHDOG: &str = "if [ -n \"$1\" ]; then cd -- \"$1\" || exit 126; fi; shift; trap : TERM; \
    { exec 2>&- 3<&0; trap 'kill -s KILL \"$!\"; exit 0' TERM; echo; cat <&3 & wait \"$!\"; \
    exec >&- 3<&-; sleep 2 & wait \"$!\"; kill -s KILL 0; } | \
    { read -r ready; \"$@\"; status=$?; trap '' TERM; kill -s TERM 0; exit \"$status\"; }";

/// How the prefix hands words on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quoting {
    /// As they are: each word of ours is a word there.
    #[default]
    Argv,
    /// Joined and parsed again by a POSIX shell, as `ssh` does: every word is quoted.
    Posix,
}

/// An environment that trusted configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    id: EnvironmentId,
    prefix: StdioCommand,
    quoting: Quoting,
    directory: Option<String>,
    forward: Vec<String>,
    watchdog: bool,
}

/// Why a server cannot be brought to its environment. Nothing was started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BindFault {
    /// Values of variables would have to go into the remote command line, where others read them.
    #[error(
        "environment `{environment}` has no `forward_env`, which the variable `{variable}` needs"
    )]
    CannotForward {
        /// Which environment.
        environment: EnvironmentId,
        /// The first variable.
        variable: String,
    },
    /// The prefix has it already, for itself.
    #[error("variable `{variable}` would change the command of environment `{environment}` itself")]
    OfThePrefix {
        /// Which environment.
        environment: EnvironmentId,
        /// The variable.
        variable: String,
    },
    /// A directory needs the watchdog, which changes to it.
    #[error(
        "environment `{environment}` has no watchdog, without which it cannot enter `{directory}`"
    )]
    CannotEnter {
        /// Which environment.
        environment: EnvironmentId,
        /// The directory.
        directory: String,
    },
}

impl Environment {
    /// The environment `id`, reached by `prefix`: its program and first arguments, its own variables, and the
    /// directory on this machine that it starts in. An argument [`VARIABLES`] stands for the options that forward
    /// variables.
    #[must_use]
    pub fn new(id: EnvironmentId, prefix: StdioCommand, quoting: Quoting) -> Self {
        Self { id, prefix, quoting, directory: None, forward: Vec::new(), watchdog: true }
    }

    /// Sets the directory over there that servers start in, unless a server has its own.
    #[must_use]
    pub fn with_directory(mut self, directory: impl Into<String>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the words that make the prefix pass on a variable of its own process by its name, [`NAME`] in them:
    /// `-e {name}`, `-o SendEnv={name}`. Values never go into a command line.
    #[must_use]
    pub fn with_forwarding(mut self, words: Vec<String>) -> Self {
        self.forward = words;
        self
    }

    /// Leaves the watchdog out, for environments without a POSIX shell. What the server then does when the prefix
    /// is gone is its own business.
    #[must_use]
    pub fn without_watchdog(mut self) -> Self {
        self.watchdog = false;
        self
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &EnvironmentId {
        &self.id
    }

    /// The directory over there, when one is set.
    #[must_use]
    pub fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    /// The command on this machine that runs `server` over there. Of `server` its program, its arguments and its
    /// variables count, which are those of the configuration only; its directory, if it has one, is a path over
    /// there. Nothing over there is looked at from here. Start it in a process group of its own, as a connection does:
    /// the watchdog ends the group that it is in.
    ///
    /// # Errors
    /// [`BindFault`].
    pub fn bind(&self, server: &StdioCommand) -> Result<StdioCommand, BindFault> {
        let variables: Vec<(&OsStr, &OsStr)> = server.variables().collect();
        self.check_variables(&variables)?;
        let mut command = StdioCommand::new(self.prefix.program());
        for word in self.prefix.arguments() {
            if word == VARIABLES {
                command.args(variables.iter().flat_map(|(name, _)| self.forwarding(name)));
            } else {
                command.args([word]);
            }
        }
        let words = self.words(server)?;
        match self.quoting {
            Quoting::Argv => command.args(words),
            Quoting::Posix => command.args([line(&words)]),
        };
        command.environment(self.prefix.variables()).environment(variables);
        if let Some(directory) = self.prefix.directory() {
            command.current_dir(directory);
        }
        Ok(command)
    }

    fn check_variables(&self, variables: &[(&OsStr, &OsStr)]) -> Result<(), BindFault> {
        let shown = |name: &OsStr| name.to_string_lossy().into_owned();
        let takes = self.prefix.arguments().any(|word| word == VARIABLES);
        if let Some((name, _)) = variables.first()
            && (self.forward.is_empty() || !takes)
        {
            let (environment, variable) = (self.id.clone(), shown(name));
            return Err(BindFault::CannotForward { environment, variable });
        }
        let own = |name: &OsStr| self.prefix.variables().any(|(present, _)| present == name);
        match variables.iter().find(|(name, _)| own(name) || is_loaders(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let (environment, variable) = (self.id.clone(), shown(name));
                Err(BindFault::OfThePrefix { environment, variable })
            }
        }
    }

    fn forwarding(&self, name: &OsStr) -> Vec<OsString> {
        let filled = |word: &String| {
            let mut pieces = word.split(NAME);
            let mut filled = OsString::from(pieces.next().unwrap_or_default());
            for piece in pieces {
                filled.push(name);
                filled.push(piece);
            }
            filled
        };
        self.forward.iter().map(filled).collect()
    }

    /// What is started over there.
    fn words(&self, server: &StdioCommand) -> Result<Vec<OsString>, BindFault> {
        let own = server.directory().map(Path::as_os_str);
        let directory = own.or(self.directory.as_deref().map(OsStr::new));
        let mut words: Vec<OsString> = Vec::new();
        if self.watchdog {
            let directory = directory.unwrap_or_default();
            let start = [OsStr::new("sh"), OsStr::new("-c"), OsStr::new(WATCHDOG)];
            words.extend(start.map(OsStr::to_owned));
            words.extend([OsString::from("plenipo-watchdog"), directory.to_owned()]);
        } else if let Some(directory) = directory {
            let (environment, directory) =
                (self.id.clone(), directory.to_string_lossy().into_owned());
            return Err(BindFault::CannotEnter { environment, directory });
        }
        words.push(server.program().to_owned());
        words.extend(server.arguments().map(OsStr::to_owned));
        Ok(words)
    }
}

/// One line for a POSIX shell, which the first word replaces.
fn line(words: &[OsString]) -> OsString {
    let quoted = words.iter().map(|word| quoting::posix(word.as_bytes()));
    OsString::from_vec([b"exec ".to_vec(), quoted.collect::<Vec<_>>().join(&b' ')].concat())
}

/// A variable that loads code into the prefix's own process.
fn is_loaders(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"LD_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &StdioCommand) -> Vec<String> {
        let program = [command.program()].into_iter();
        program.chain(command.arguments()).map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    fn environment(prefix: &[&str], quoting: Quoting) -> Environment {
        let mut command = StdioCommand::new(prefix[0]);
        command.args(&prefix[1..]).environment([("PATH", "/bin")]);
        Environment::new(EnvironmentId::new("box"), command, quoting)
    }

    fn server() -> StdioCommand {
        let mut server = StdioCommand::new("notes");
        server.args(["--at", "a b", "$(id)", "it's", ""]);
        server
    }

    #[test]
    fn words_stay_words_or_become_one_quoted_line() {
        let argv = environment(&["docker", "exec", "-i", "box"], Quoting::Argv).without_watchdog();
        let bound = words(&argv.bind(&server()).unwrap());
        assert_eq!(bound[..5], ["docker", "exec", "-i", "box", "notes"]);
        assert_eq!(bound[5..], ["--at", "a b", "$(id)", "it's", ""]);
        let posix = environment(&["ssh", "host", "--"], Quoting::Posix).without_watchdog();
        let bound = words(&posix.bind(&server()).unwrap());
        assert_eq!(bound[..3], ["ssh", "host", "--"]);
        assert_eq!(bound[3], r"exec 'notes' '--at' 'a b' '$(id)' 'it'\''s' ''");
        assert_eq!(bound.len(), 4);
    }

    #[test]
    fn the_watchdog_gets_the_directory_over_there() {
        let place = environment(&["chroot", "/r"], Quoting::Argv).with_directory("/only there");
        let bound = place.bind(&server()).unwrap();
        assert_eq!(words(&bound)[2..4], ["sh", "-c"]);
        assert_eq!(words(&bound)[5..8], ["plenipo-watchdog", "/only there", "notes"]);
        assert_eq!(bound.directory(), None);
        let mut own = server();
        own.current_dir("/own");
        assert_eq!(words(&place.bind(&own).unwrap())[6], "/own");
        let without = place.without_watchdog().bind(&server());
        assert!(
            matches!(without, Err(BindFault::CannotEnter { directory, .. }) if directory == "/only there")
        );
    }

    #[test]
    fn variables_go_by_name_or_not_at_all() {
        let mut server = server();
        server.environment([("TOKEN", "s3cret")]);
        let plain = environment(&["docker", "exec", "{env}", "box"], Quoting::Argv);
        let refused = plain.bind(&server);
        assert!(
            matches!(refused, Err(BindFault::CannotForward { variable, .. }) if variable == "TOKEN")
        );
        let option = |word: &str| vec!["-o".to_owned(), word.to_owned()];
        let place = plain.with_forwarding(option("SendEnv={name}"));
        let bound = place.bind(&server).unwrap();
        assert_eq!(words(&bound)[..5], ["docker", "exec", "-o", "SendEnv=TOKEN", "box"]);
        assert!(!words(&bound).concat().contains("s3cret"));
        assert!(bound.variables().any(|pair| pair == ("TOKEN".as_ref(), "s3cret".as_ref())));
        let nowhere = environment(&["docker", "exec", "box"], Quoting::Argv);
        assert!(nowhere.with_forwarding(option("x")).bind(&server).is_err(), "no place for them");
        for name in ["PATH", "LD_PRELOAD"] {
            let mut server = StdioCommand::new("notes");
            server.environment([(name, "/evil")]);
            assert!(matches!(place.bind(&server), Err(BindFault::OfThePrefix { .. })), "{name}");
        }
    }
}
