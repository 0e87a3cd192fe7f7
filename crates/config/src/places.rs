//! `[environments.NAME]`: where servers run that do not run on this machine.
//!
//! | key | type | default |
//! |---|---|---|
//! | `command` | \[string\]: program and arguments that lead there; `{env}` stands for forwarded variables | required |
//! | `quoting` | `argv`, or `posix` where the words are joined and parsed again (`ssh`) | `argv` |
//! | `cwd` | a directory over there: absolute, of whatever system | what the command gives |
//! | `env`, `env_vars` | as for a server: variables of the command itself | none |
//! | `forward_env` | \[string\]: options that pass on a variable by its name `{name}` | none: servers have none |
//! | `watchdog` | bool: end the server over there when its input closes; needs `sh` and `cat` there | true |
//! | `permissions` | name of the profile of calls to servers there; needs a `cwd`, here or there | the usual |
//! | `startup_timeout_sec`, `tool_timeout_sec` | seconds, for servers without their own | the usual |
//!
//! `local` is this machine; its only key is `enabled`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plenipo_connect::environment::EnvironmentId;
use plenipo_connect::environment::{self, Environment, NAME, Quoting, VARIABLES};
use plenipo_connect::text::shown;
use plenipo_connect::{ConnectOptions, StdioCommand};
use plenipo_redact::Secret;

use crate::error::ConfigError;
use crate::format::Format;
use crate::keys;
use crate::names::{Kind, Use};
use crate::node::{Node, Place};
use crate::scalar::{forwarded, seconds, variable_name};
use crate::server::program;
use crate::template::{StartContext, Template, TemplateFault};

/// The longest name.
const LONGEST_ID: usize = 64;

/// One environment other than `local`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EnvironmentSettings {
    /// Its name.
    pub id: EnvironmentId,
    /// Program and arguments that lead there; never empty.
    pub command: Vec<Template>,
    /// How they hand words on.
    pub quoting: Quoting,
    /// A directory over there.
    pub cwd: Option<String>,
    /// Variables of the command itself.
    pub env: BTreeMap<String, Template>,
    /// Variables of the command itself, by name.
    pub env_vars: Vec<String>,
    /// Options that pass a variable on by its name.
    pub forward_env: Vec<String>,
    /// Whether the server ends when its input closes.
    pub watchdog: bool,
    /// Profile of calls to servers there.
    pub permissions: Option<String>,
    /// Limit of start and handshake.
    pub startup_timeout: Option<Duration>,
    /// Limit of a call.
    pub tool_timeout: Option<Duration>,
    /// The file it was read from.
    pub file: String,
    /// Line in it.
    pub line: usize,
    /// The profile that it names.
    pub(crate) names: Vec<Use>,
}

impl EnvironmentSettings {
    /// The environment with its placeholders filled in.
    ///
    /// # Errors
    /// [`ConfigError`] naming file, key and variable.
    pub fn environment(&self, context: &StartContext<'_>) -> Result<Environment, ConfigError> {
        let fault = || ConfigError::new(&self.file, self.line, "command", "is empty");
        let (first, args) = self.command.split_first().ok_or_else(fault)?;
        let mut command: StdioCommand = program(first, args, context)?;
        let mut env = BTreeMap::new();
        for (name, value) in &self.env {
            env.insert(name.clone(), Secret::new(value.expand(context)?));
        }
        command.environment(environment::build(context.lookup, &self.env_vars, &env));
        if let Some(directory) = context.directory {
            command.current_dir(directory);
        }
        let mut place = Environment::new(self.id.clone(), command, self.quoting)
            .with_forwarding(self.forward_env.clone());
        if let Some(directory) = &self.cwd {
            place = place.with_directory(directory);
        }
        Ok(if self.watchdog { place } else { place.without_watchdog() })
    }

    /// Puts where servers run, and limits for those without their own, into `options`. Before
    /// [`ServerConfig::apply_to`](crate::ServerConfig::apply_to).
    pub fn apply_to(&self, options: &mut ConnectOptions) {
        options.environment = self.id.clone();
        options.start_timeout = self.startup_timeout.unwrap_or(options.start_timeout);
        options.tool_timeout = self.tool_timeout.unwrap_or(options.tool_timeout);
    }
}

/// Why a server behind a URL has no environment: that is a command which a process is started by.
pub(crate) const URL_ELSEWHERE: &str = "`environment_id` is for a server with `command`: requests to a `url` leave from this machine, because no HTTP goes \
     through an environment's command. Remove `environment_id`, or start the server there with `command`";

/// What is said about one environment.
pub(crate) enum Read {
    /// Whether there is a local one.
    Local(bool),
    Other(Box<EnvironmentSettings>),
}

pub(crate) fn read(name: &str, node: &Node, place: &Place<'_>) -> Result<Read, ConfigError> {
    if name == EnvironmentId::local().as_str() {
        let mut enabled = true;
        for (key, value) in place.table(node)? {
            let place = place.member(key);
            if key.text != "enabled" {
                let mut fault =
                    place.fault("cannot be set: the environment `local` is this machine");
                fault.hint = Some("give the environment another name".to_owned());
                return Err(fault);
            }
            enabled = place.boolean(value)?;
        }
        return Ok(Read::Local(enabled));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || name.len() > LONGEST_ID || !name.bytes().all(plain) {
        let wanted = "is no environment's name: letters, digits and `_-.`, at most 64";
        return Err(place.fault(wanted));
    }
    let mut settings = EnvironmentSettings {
        id: EnvironmentId::new(name),
        command: Vec::new(),
        quoting: Quoting::default(),
        cwd: None,
        env: BTreeMap::new(),
        env_vars: Vec::new(),
        forward_env: Vec::new(),
        watchdog: true,
        permissions: None,
        startup_timeout: None,
        tool_timeout: None,
        file: place.file.to_owned(),
        line: place.line(),
        names: Vec::new(),
    };
    let mut given = Vec::new();
    let before = place.noted();
    for (key, value) in place.table(node)? {
        let place = place.member(key);
        place.note(settings.take(&key.text, value, &place));
        given.push((key.text.as_str(), place));
    }
    place.whole(before)?;
    settings.check(|key| {
        let found = given.iter().find(|(given, _)| *given == key);
        found.map_or_else(|| place.clone(), |(_, place)| place.clone())
    })?;
    Ok(Read::Other(Box::new(settings)))
}

impl EnvironmentSettings {
    fn take(&mut self, key: &str, node: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        match key {
            "command" => {
                let words = place.array(node).map_err(|fault| ConfigError {
                    hint: Some(
                        "write its words apart: command = [\"ssh\", \"host\", \"--\"]".to_owned(),
                    ),
                    ..fault
                })?;
                let word = |place: &Place<'_>, item| template(place.string(item)?, place);
                let words = words.filter_map(|(place, item)| place.note(word(&place, item)));
                self.command = words.collect();
            }
            "quoting" => {
                self.quoting = match place.string(node)?.as_str() {
                    "argv" => Quoting::Argv,
                    "posix" => Quoting::Posix,
                    other => {
                        let found = shown(other);
                        return Err(
                            place.fault(format!("should be `argv` or `posix`, found `{found}`"))
                        );
                    }
                };
            }
            "cwd" => self.cwd = Some(directory(place.string(node)?, place)?),
            "env" => {
                for (name, value) in place.table(node)? {
                    let place = place.member(name);
                    let value = place.string(value).and_then(|text| template(text, &place));
                    let name = place.note(variable_name(&name.text, &place));
                    self.env.extend(name.zip(place.note(value)));
                }
            }
            "env_vars" => self.env_vars = forwarded(node, place)?,
            "forward_env" => {
                let before = place.noted();
                self.forward_env = place.strings(node)?;
                place.whole(before)?;
                if !self.forward_env.iter().any(|word| word.contains(NAME)) {
                    return Err(place.fault(format!("should have `{NAME}` in one of its words")));
                }
            }
            "watchdog" => self.watchdog = place.boolean(node)?,
            "permissions" => {
                let name = place.string(node)?;
                self.names.push(Use::new(Kind::Profile, &name, place));
                self.permissions = Some(name);
            }
            "startup_timeout_sec" => self.startup_timeout = Some(seconds(node, place)?),
            "tool_timeout_sec" => self.tool_timeout = Some(seconds(node, place)?),
            unknown => return Err(place.unknown_key(unknown, keys::PLACE.into_iter())),
        }
        Ok(())
    }

    /// What cannot be seen in one key. `at` is the place of a key, that of the table where the key is not given.
    fn check<'p>(&self, at: impl Fn(&str) -> Place<'p>) -> Result<(), ConfigError> {
        let words: Vec<&str> =
            self.command.iter().map(|word| word.written().expose().as_str()).collect();
        let place = at("command");
        let Some(program) = words.first().filter(|word| !word.is_empty()) else {
            return Err(place.fault("has no `command`: the program and arguments that lead there"));
        };
        if *program == VARIABLES {
            return Err(place.fault(format!("has `{VARIABLES}` for its program")));
        }
        let name = Path::new(program).file_name().unwrap_or_default();
        if self.quoting == Quoting::Argv && name == "ssh" {
            let mut fault = place.fault("leads over ssh, which joins words and parses them again");
            fault.hint = Some("set `quoting = \"posix\"`".to_owned());
            return Err(fault);
        }
        if self.forward_env.is_empty() == words.contains(&VARIABLES) {
            let both = format!("should have both `forward_env` and `{VARIABLES}` in its command");
            return Err(place.fault(both + ", or neither"));
        }
        if self.cwd.is_some() && !self.watchdog {
            let mut fault = at("cwd").fault("is given, but only the watchdog could enter it");
            fault.hint = Some("remove `cwd`, or `watchdog = false`".to_owned());
            return Err(fault);
        }
        Ok(())
    }

    /// Whether its profile needs a server that names its own directory: a policy is about one that begins with `/`.
    pub(crate) fn needs_directory(&self) -> bool {
        self.permissions.is_some() && !self.cwd.as_deref().is_some_and(|cwd| cwd.starts_with('/'))
    }
}

fn template(text: String, place: &Place<'_>) -> Result<Template, ConfigError> {
    Template::parse(Format::Plenipo, place, text).map_err(|fault| match fault {
        TemplateFault::Malformed(fault) => fault,
        TemplateFault::Unsupported(reason) => place.fault(reason),
    })
}

/// An absolute path over there, which may be another system.
pub(crate) fn directory(text: String, place: &Place<'_>) -> Result<String, ConfigError> {
    match is_absolute(&text) {
        true => Ok(text),
        false => {
            let found = shown(&text);
            let reason = format!("should be an absolute path of the environment, found `{found}`");
            let mut fault = place.fault(reason);
            fault.hint = Some("write the whole path over there, such as /srv/notes".to_owned());
            Err(fault)
        }
    }
}

/// `/home/x`, `C:\x`, `\\host\share`.
pub(crate) fn is_absolute(text: &str) -> bool {
    let bytes = text.as_bytes();
    let drive = matches!(bytes, [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    text.starts_with('/') || text.starts_with("\\\\") || drive
}
