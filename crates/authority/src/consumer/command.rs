//! The command line that runs a command under the authority of a call. A plain value: nothing is
//! started here.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use crate::{CallAuthority, OperatorPolicy, Refusal, SandboxState};

/// The longest single argument that Linux passes to a program, in bytes: 32 pages of 4 KiB less the
/// terminating NUL (`MAX_ARG_STRLEN`, `execve(2)`).
pub const MAXIMUM_ARGUMENT_BYTES: usize = 131_071;

/// The variables a command inherits; everything else, and so the server's own secrets, stays out.
pub const ALLOWED_ENVIRONMENT: [&str; 10] =
    ["HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];

/// Names that decide what a policy means or where it is looked up: not the operator's to add.
const FIXED_NAMES: [&str; 2] = ["HOME", "TMPDIR"];
const FIXED_PREFIXES: [&str; 2] = ["XDG_", "PLENIPO_"];

/// Program, arguments and environment for one command. Start it without a shell, in its own
/// process group, with exactly this environment; on cancellation or timeout kill the group.
#[derive(Clone, Debug)]
pub struct SandboxedCommand {
    sandbox: Option<Sandbox>,
    command: Vec<OsString>,
    environment: BTreeMap<OsString, OsString>,
}

#[derive(Clone, Debug)]
struct Sandbox {
    launcher: OsString,
    state: SandboxState,
    report_descriptor: Option<String>,
    restrictions: Vec<(String, String)>,
}

impl SandboxedCommand {
    /// The command `argv` (program first) under the authority of its call, with an empty
    /// environment.
    ///
    /// # Errors
    ///
    /// [`Refusal`] when the call brought no state or no launcher (unless the operator opted out and
    /// it brought no launcher), when the state is too long for one argument, or when `argv` is
    /// empty or cannot be passed to a program. A launcher without a state is refused always.
    pub fn new<A>(
        authority: &CallAuthority,
        argv: A,
        operator: OperatorPolicy,
    ) -> Result<Self, Refusal>
    where
        A: IntoIterator<Item: Into<OsString>>,
    {
        let sandbox = Sandbox::of(authority, operator)?;
        let command: Vec<OsString> = argv.into_iter().map(Into::into).collect();
        check_argv(&command)?;
        Ok(Self { sandbox, command, environment: BTreeMap::new() })
    }

    /// Takes the variables of [`ALLOWED_ENVIRONMENT`] from `inherited` (usually the server's own
    /// environment) and ignores the others.
    #[must_use]
    pub fn with_environment<E, K, V>(mut self, inherited: E) -> Self
    where
        E: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let pairs = inherited.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.environment.extend(pairs.filter(|(name, value)| {
            ALLOWED_ENVIRONMENT.iter().any(|allowed| name == allowed) && !holds_nul(value)
        }));
        self
    }

    /// Adds variables that the server's operator configured.
    ///
    /// # Errors
    ///
    /// [`Refusal::EnvironmentName`] for `HOME`, `TMPDIR`, `XDG_*` and `PLENIPO_*`, which decide
    /// what a policy means or where configuration is found;
    /// [`Refusal::EnvironmentEntry`] for an empty name, `=` in a name, NUL in either.
    pub fn with_additions<E, K, V>(mut self, additions: E) -> Result<Self, Refusal>
    where
        E: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        for (name, value) in additions {
            let (name, value) = (name.into(), value.into());
            check_addition(&name, &value)?;
            self.environment.insert(name, value);
        }
        Ok(self)
    }

    /// Asks the launcher to write its enforcement report to the inherited descriptor `number`
    /// (`--report-fd`), which must be above 2: the first three are the command's own. Only for a
    /// launcher whose `sandbox --help` lists that option. No effect on a command that is not
    /// sandboxed.
    #[must_use]
    pub fn with_report_fd(mut self, number: u32) -> Self {
        if let Some(sandbox) = &mut self.sandbox {
            sandbox.report_descriptor = Some(number.to_string());
        }
        self
    }

    /// Asks the launcher for more than the state does, with an option of its own that can only
    /// restrict (`--minimum-rung full`). The option and its value come from the operator's
    /// configuration, never from a call. Only for a launcher whose `sandbox --help` lists the option.
    /// No effect on a command that is not sandboxed.
    #[must_use]
    pub fn with_restriction(mut self, option: &str, value: &str) -> Self {
        if let Some(sandbox) = &mut self.sandbox {
            sandbox.restrictions.push((option.to_owned(), value.to_owned()));
        }
        self
    }

    /// The program to start: the launcher, or the command itself when not sandboxed.
    pub fn program(&self) -> &OsStr {
        match &self.sandbox {
            Some(sandbox) => &sandbox.launcher,
            None => self.command.first().map_or(OsStr::new(""), OsString::as_os_str),
        }
    }

    /// The arguments after the program.
    pub fn args(&self) -> Vec<&OsStr> {
        let command = self.command.iter().map(OsString::as_os_str);
        match &self.sandbox {
            Some(sandbox) => sandbox.options().into_iter().chain(command).collect(),
            None => command.skip(1).collect(),
        }
    }

    /// The whole environment of the program; clear everything else.
    pub fn environment(&self) -> &BTreeMap<OsString, OsString> {
        &self.environment
    }

    /// False when the operator's opt-out was used: the result of the tool must say so.
    pub fn is_sandboxed(&self) -> bool {
        self.sandbox.is_some()
    }
}

impl Sandbox {
    /// None: run without. An error: do not run.
    fn of(authority: &CallAuthority, operator: OperatorPolicy) -> Result<Option<Self>, Refusal> {
        let (state, launcher) = match (authority.state(), authority.launcher()) {
            (Some(state), Some(launcher)) => (state, launcher),
            (None, Some(_)) => return Err(Refusal::NoState),
            (_, None) if operator == OperatorPolicy::AllowUnsandboxed => return Ok(None),
            (None, None) => return Err(Refusal::NoAuthority),
            (Some(_), None) => return Err(Refusal::NoLauncher),
        };
        let bytes = state.as_str().len();
        if bytes > MAXIMUM_ARGUMENT_BYTES {
            return Err(Refusal::StateTooLong { bytes, maximum: MAXIMUM_ARGUMENT_BYTES });
        }
        let launcher = launcher.as_str().into();
        Ok(Some(Self {
            launcher,
            state: state.clone(),
            report_descriptor: None,
            restrictions: Vec::new(),
        }))
    }

    /// The launcher's arguments up to and including `--`.
    fn options(&self) -> Vec<&OsStr> {
        let mut options = vec!["sandbox", "--sandbox-state-json", self.state.as_str()];
        if let Some(number) = &self.report_descriptor {
            options.extend(["--report-fd", number]);
        }
        for (option, value) in &self.restrictions {
            options.extend([option.as_str(), value]);
        }
        options.push("--");
        options.into_iter().map(OsStr::new).collect()
    }
}

fn check_argv(argv: &[OsString]) -> Result<(), Refusal> {
    if argv.first().is_none_or(|program| program.is_empty()) {
        return Err(Refusal::EmptyCommand);
    }
    for (index, argument) in argv.iter().enumerate() {
        if holds_nul(argument) {
            return Err(Refusal::ArgumentNul { index });
        }
        let bytes = argument.as_encoded_bytes().len();
        if bytes > MAXIMUM_ARGUMENT_BYTES {
            let maximum = MAXIMUM_ARGUMENT_BYTES;
            return Err(Refusal::ArgumentTooLong { index, bytes, maximum });
        }
    }
    Ok(())
}

fn check_addition(name: &OsStr, value: &OsStr) -> Result<(), Refusal> {
    let bytes = name.as_encoded_bytes();
    let shown = || name.to_string_lossy().into_owned();
    if FIXED_NAMES.iter().any(|fixed| name == *fixed)
        || FIXED_PREFIXES.iter().any(|prefix| bytes.starts_with(prefix.as_bytes()))
    {
        return Err(Refusal::EnvironmentName { name: shown() });
    }
    if bytes.is_empty() || bytes.contains(&b'=') || holds_nul(name) || holds_nul(value) {
        return Err(Refusal::EnvironmentEntry { name: shown() });
    }
    Ok(())
}

fn holds_nul(text: &OsStr) -> bool {
    text.as_encoded_bytes().contains(&0)
}

#[cfg(test)]
mod tests;
