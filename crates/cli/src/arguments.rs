//! What can be typed: the one source of `--help` and of the man pages.

mod alone;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use plenipo_config::Limits;

use crate::sandbox::SandboxArguments;

/// Call MCP tools and run commands, each under the authority captured for it.
#[derive(Debug, Parser)]
#[command(name = "plenipo", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Program {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
    0  done
    1  the tool reported an error
    2  usage or configuration
    3  a server could not be started or was lost, or the output could not be written
    4  a server broke the protocol, answered with an error, or with more than the limits allow
    5  a server wants credentials
    6  refused by trust, policy or changed authority
  124  timeout
  130  Ctrl-C (129 and 143: the hang-up and terminate signals)";

/// Options that stand before or after any command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Global {
    /// Read FILE instead of the user configuration [env: PLENIPO_CONFIG].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more on stderr: the profile in force, progress, what servers write to stderr.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Call(CallArguments),
    Sandbox(SandboxArguments),
    Tools(ToolsArguments),
    /// Start every server and show which of them work.
    Servers,
    Add(AddArguments),
    /// Remove a server from the user configuration; comments and order of the rest stay.
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
    Login(LoginArguments),
    Logout(LogoutArguments),
    /// Show who is signed in where.
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Sign in to your company's identity provider, for the servers that the company manages.
    #[command(subcommand)]
    Enterprise(IdentityCommand),
    /// Sign in to your account at an OpenID provider, which the company may accept as well.
    #[command(subcommand)]
    Account(IdentityCommand),
    Trust(TrustArguments),
    /// Check, show or locate the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    Doctor(DoctorArguments),
    /// Run COMMAND and tell what it touches; for `doctor`.
    #[command(hide = true)]
    Trace {
        /// Whom to tell.
        #[arg(long = "to", value_name = "NAME")]
        name: String,
        #[arg(value_name = "COMMAND", trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Be a built-in MCP server on stdin and stdout.
    #[command(subcommand)]
    Server(ServerCommand),
    /// Write the man pages into DIR.
    #[command(hide = true)]
    Man {
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// List the credentials that are kept: server, issuer, account, scopes, end; never a secret.
    ///
    /// Exits with 5 if one of them cannot be used any more.
    Status,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IdentityCommand {
    Login(IdentityLoginArguments),
    /// Show who is signed in, and whose identity the company's servers get; never a secret.
    Status,
    /// Sign out: the sign-in is forgotten and revoked, and connections that use it end at once.
    Logout {
        /// Sign only this person out, by the name or subject that `status` shows.
        #[arg(long = "as", value_name = "PERSON")]
        person: Option<String>,
    },
}

/// Sign in at the configured identity provider, in the browser.
///
/// The provider is that of `mcp_enterprise_managed_auth.idp`, or of `account`. Where the browser is on another
/// machine, paste the address that it was sent to instead.
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct IdentityLoginArguments {
    /// Print the page's address on standard output, and open nothing.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Trade the SAML assertion in FILE (`-` is standard input) instead of opening a page.
    #[arg(long, value_name = "FILE", conflicts_with = "no_browser")]
    pub(crate) saml: Option<PathBuf>,
}

/// Sign in to a server that is reached by a URL, so that calls to it carry a token.
///
/// A page is opened in the browser, which comes back to a port on this machine when you are done. Where the browser
/// is on another machine, paste the address that it was sent to instead.
///
/// Examples:
///   plenipo login issues
///   plenipo login issues --scopes "issues:read issues:write"
///   plenipo login issues --no-browser
///   plenipo login issues --device
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct LoginArguments {
    /// A configured server with a `url`.
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Ask for these scopes, separated by spaces [default: the configuration's, else what the server asks for].
    #[arg(long, value_name = "SCOPES")]
    pub(crate) scopes: Option<String>,
    /// Print the page's address on standard output, and open nothing.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Sign in on another device, with a code to enter there.
    #[arg(long, conflicts_with = "no_browser")]
    pub(crate) device: bool,
}

/// Sign out of a server: its tokens are forgotten, and revoked where the issuer can do that.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogoutArguments {
    /// A configured server with a `url`.
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
    /// Sign only this person out, by the account or subject that `plenipo auth status` shows.
    #[arg(long = "as", value_name = "ACCOUNT")]
    pub(crate) account: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// The server `workspace`: its tool `run` runs commands under the caller's policy.
    Workspace,
}

/// Add a server to the user configuration; comments and order of the rest stay.
///
/// Examples:
///   plenipo add files -- npx -y @modelcontextprotocol/server-filesystem .
///   plenipo add notes --env NOTES_DIR=/srv/notes -- notes-mcp
///   plenipo add issues --url https://example.com/mcp --bearer-token-env-var ISSUES_TOKEN
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
#[command(override_usage = "plenipo add [OPTIONS] <NAME> (--url <URL> | -- <COMMAND>...)")]
#[command(group = clap::ArgGroup::new("transport").required(true).args(["url", "command"]))]
pub(crate) struct AddArguments {
    /// Letters, digits and _ : @ / . -
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Variable that the server gets, with its value.
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, conflicts_with = "url")]
    pub(crate) env: Vec<(String, String)>,
    /// URL of a server that speaks streamable HTTP.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Variable of your environment that holds a bearer token for the URL.
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// Replace a server of that name.
    #[arg(long)]
    pub(crate) force: bool,
    /// Program of a server that is started, and its arguments; there is no shell.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Look at what a project's plenipo.toml would do, and trust exactly that.
///
/// Nothing of a project's file is started, sent, filled in or used before. A change of the file, or another place,
/// needs new trust.
#[derive(Debug, Clone, Args)]
pub(crate) struct TrustArguments {
    /// A project's plenipo.toml, or its directory [default: the current directory].
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Trust it without a question.
    #[arg(long, conflicts_with_all = ["list", "remove"])]
    pub(crate) yes: bool,
    /// List what is trusted.
    #[arg(long, conflicts_with = "file")]
    pub(crate) list: bool,
    /// Trust it no longer.
    #[arg(long, conflicts_with = "list")]
    pub(crate) remove: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List the faults of every configuration file; exits with 2 if there is one.
    ///
    /// What depends on a key with a fault is looked at when that is mended.
    Check {
        /// Check this file alone, as if it were named with --config.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Show the servers in force and where each comes from, without secrets.
    Show,
    /// Show where the configuration files are.
    Path,
}

/// Call a tool and print its text.
///
/// Values are typed by the tool's input schema:
///   key=value    text, a number or true/false as the schema wants; one item of a list
///   key:=JSON    JSON
///   key=@FILE    the content of a file (key=@@x is the text @x)
///
/// Examples:
///   plenipo call workspace.run command='make test'
///   plenipo call files.read_text_file path=notes.txt
///   plenipo call issues.search query=sandbox labels:='["bug"]' --json
///   plenipo call db.query --args @query.json
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CallArguments {
    /// Server and tool; the server `workspace` needs no configuration.
    #[arg(value_name = "SERVER.TOOL")]
    pub(crate) target: String,
    /// Arguments of the tool.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<OsString>,
    /// Arguments of the tool as one JSON object: JSON text, @FILE, or - for standard input.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Permission profile of the call: :read-only, :workspace, :danger-full-access, or a configured name.
    ///
    /// Default: default_permissions of the configuration, else :workspace with the network off.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Directory that the profile is about, and root of :workspace [default: the current one].
    #[arg(short = 'C', long = "cd", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Environment that is selected for the call: a server in another one gets no sandbox policy [default: the server's].
    #[arg(long, value_name = "ID")]
    pub(crate) environment: Option<String>,
    /// How long all of it may take, the server's start too: 30s, 2m, 500ms [default: the limits of the server].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Answer for a form that the server asks to have filled in: key=value, typed by the form, or key:=JSON.
    ///
    /// What is not given is asked on the terminal, if there is one; a server that asks where nobody can be asked gets
    /// no answer.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) input: Vec<String>,
    /// Put images, audio and other content that is not text into files in DIR.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Longest message to take from the server, from 64KiB to 1GiB: 128MiB, or bytes [default: 16MiB].
    #[arg(long, value_name = "SIZE", value_parser = message_size)]
    pub(crate) max_message_size: Option<usize>,
    /// Use this person's sign-in, where several people are signed in to the server.
    #[arg(long = "as", value_name = "ACCOUNT")]
    pub(crate) account: Option<String>,
    /// Send the arguments as they are, and take the result as it is, without checking them against the tool's schemas.
    #[arg(long)]
    pub(crate) unchecked: bool,
}

/// Show what this machine can enforce, and how to fix what it can't; with SERVER, propose a profile for it.
///
/// The server is started twice. First as it is, watched: which files it reads, runs and writes, which addresses it
/// reaches, itself and through what it starts. What follows is printed, a [permissions.NAME] to be pasted into your
/// configuration, with comments where you have to judge. Then inside a sandbox with that profile, to see that it still
/// works. Secrets such as ~/.ssh are never part of it, and said aloud when the server looks at them. What a tool needs is
/// seen only if it is called: --call does that, twice as well.
///
/// Examples:
///   plenipo doctor
///   plenipo doctor notes
///   plenipo doctor notes --call search text=budget
#[derive(Debug, Clone, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DoctorArguments {
    /// Start this server once, watched, and propose the smallest profile that it starts under.
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Call this tool of it too, and propose what that needs as well.
    #[arg(long, value_name = "TOOL", requires = "server")]
    pub(crate) call: Option<String>,
    /// Arguments of the tool, as for `plenipo call`.
    #[arg(value_name = "KEY=VALUE", requires = "call")]
    pub(crate) pairs: Vec<OsString>,
}

/// List the tools of a server, or of all.
#[derive(Debug, Clone, Args)]
pub(crate) struct ToolsArguments {
    /// Only this server's.
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,
    /// Use this person's sign-in, where several people are signed in to a server.
    #[arg(long = "as", value_name = "ACCOUNT")]
    pub(crate) account: Option<String>,
}

/// `KEY=VALUE`
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("expected KEY=VALUE, found {text:?}")),
    }
}

/// `64KiB`, `128MiB`, `1GiB` or bytes, within the bounds of `max_message_bytes`.
fn message_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: usize = match text.strip_prefix(digits).unwrap_or_default() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => 0,
    };
    let size = digits.parse().ok().and_then(|number: usize| number.checked_mul(unit));
    size.filter(|size| Limits::MESSAGE_BYTES.contains(size))
        .ok_or_else(|| format!("expected 64KiB to 1GiB, in KiB, MiB, GiB or bytes, found {text:?}"))
}

/// `30s`, `500ms`, `2m`, or seconds without a unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let wanted = || format!("expected a time like 30s, 2m or 500ms, found {text:?}");
    let number: f64 = digits.parse().map_err(|_| wanted())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wanted()),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(wanted()),
    }
}
