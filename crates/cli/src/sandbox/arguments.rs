//! Arguments of `plenipo sandbox`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser};
use plenipo_launch::Rung;

use crate::arguments::Global;

/// Run one command under a sandbox state or a permission profile.
///
/// The command's exit code is passed through; 128+n for signal n, 126 not executable,
/// 127 not found, and 125 when the sandbox itself refused: then nothing has run, one sentence
/// says why on stderr, and --report-fd gets it as JSON.
///
/// Examples:
///   plenipo sandbox -P :read-only -- git status
///   plenipo sandbox -P :workspace -C ~/project -- cargo test
///   plenipo sandbox -P :workspace --tty -- bash
///   plenipo sandbox --sandbox-state-json "$STATE" -- sh -c 'make'
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SandboxArguments {
    /// Sandbox state to enforce: JSON text, @FILE, fd:N (an inherited descriptor) or - (standard input).
    #[arg(long, value_name = "STATE", conflicts_with_all = ["permission_profile", "cd"])]
    pub(crate) sandbox_state_json: Option<String>,

    /// Make DIR readable too; never where the state denies. May be repeated.
    #[arg(long, value_name = "DIR", requires = "sandbox_state_json")]
    pub(crate) sandbox_state_readable_root: Vec<PathBuf>,

    /// Switch the network off whatever the state says; refused with a disabled profile.
    #[arg(long, requires = "sandbox_state_json")]
    pub(crate) sandbox_state_disable_network: bool,

    /// Permission profile: :read-only, :workspace, :danger-full-access, or a name from the configuration.
    #[arg(short = 'P', long, value_name = "NAME")]
    pub(crate) permission_profile: Option<String>,

    /// Directory to run in, and root of :workspace [default: the current one].
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,

    /// Give the command a terminal of its own, relayed to and from this one.
    #[arg(long)]
    pub(crate) tty: bool,

    /// Write the enforcement report, one line of JSON, to this inherited descriptor.
    #[arg(long, value_name = "N")]
    pub(crate) report_fd: Option<i32>,

    /// When the command has ended, write one line of JSON to this inherited descriptor: its exit code, and what a limited network refused.
    #[arg(long, value_name = "N")]
    pub(crate) end_report_fd: Option<i32>,

    /// Run nothing if the sandbox cannot be built as strong as this: full, no-proc or landlock.
    ///
    /// Raises what the configuration says (sandbox.minimum_rung, else full); cannot lower it.
    #[arg(long, value_name = "NAME", value_parser = rung)]
    pub(crate) minimum_rung: Option<Rung>,

    /// With `strict`, run nothing if a deny pattern would not hold for files that appear later.
    ///
    /// Raises what the configuration says (sandbox.deny_glob); cannot lower it.
    #[arg(long, value_name = "WORD", value_parser = ["strict"])]
    pub(crate) deny_glob: Option<String>,

    /// Build the sandbox, show what it enforces, and run nothing in it; with --json as the report.
    #[arg(long, conflicts_with_all = ["report_fd", "end_report_fd"])]
    pub(crate) explain: bool,

    /// Command and its arguments.
    #[arg(value_name = "COMMAND", required_unless_present = "explain", trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

impl SandboxArguments {
    /// The command, and no option.
    pub(super) fn of_command(command: Vec<OsString>) -> Self {
        Self {
            sandbox_state_json: None,
            sandbox_state_readable_root: Vec::new(),
            sandbox_state_disable_network: false,
            permission_profile: None,
            cd: None,
            tty: false,
            report_fd: None,
            end_report_fd: None,
            minimum_rung: None,
            deny_glob: None,
            explain: false,
            command,
        }
    }
}

fn rung(name: &str) -> Result<Rung, String> {
    Rung::from_name(name).ok_or_else(|| {
        format!("expected full, full-privileged, bwrap, no-proc or landlock, found {name:?}")
    })
}

// The same arguments on their own, for the dispatch that builds nothing else.
#[derive(Debug, Parser)]
#[command(name = "plenipo sandbox", bin_name = "plenipo sandbox")]
pub(crate) struct SandboxProgram {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(flatten)]
    pub(crate) arguments: SandboxArguments,
}
