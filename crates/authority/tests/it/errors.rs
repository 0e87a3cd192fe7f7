//! Every message, with its kind and hint, as people read it.

use std::{fmt::Write as _, io, path::PathBuf};

use plenipo_authority::{
    AttachError, AuthorityChanged, AuthorityGuard, CallAuthority, CallAuthorityError, ErrorKind,
    JsonKind, LauncherFault, Refusal, SandboxOptIn, SandboxState, StateError,
};

use crate::fixture::raw;

fn table(rows: Vec<(String, ErrorKind, Option<&'static str>)>) -> String {
    let mut table = String::new();
    for (message, kind, hint) in rows {
        writeln!(table, "{kind:?}: {message}").unwrap();
        if let Some(hint) = hint {
            writeln!(table, "  hint: {hint}").unwrap();
        }
    }
    table
}

fn not_json() -> serde_json::Error {
    serde_json::from_str::<u8>("x").unwrap_err()
}

fn gone() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

#[test]
fn state_errors_read_well() {
    let errors = [
        SandboxState::capture(&" ".repeat(1_048_577)).unwrap_err(),
        SandboxState::capture("{").unwrap_err(),
        SandboxState::capture("[]").unwrap_err(),
    ];
    let rows = errors.iter().map(|error| (error.to_string(), error.kind(), None));
    insta::assert_snapshot!(table(rows.collect()), @r#"
    PeerMisbehaved: sandbox state is 1048577 bytes long, at most 1048576 are taken
    PeerMisbehaved: sandbox state is not valid JSON
    PeerMisbehaved: sandbox state must be an object, found an array
    "#);
}

#[test]
fn launcher_faults_read_well() {
    let path = || PathBuf::from("/opt/l");
    let at = || PathBuf::from("/opt");
    let errors = [
        LauncherFault::NotAbsolute { path: "l".into() },
        LauncherFault::NotUtf8 { path: path() },
        LauncherFault::Nul { path: "/l\0".into() },
        LauncherFault::Deleted { path: "/opt/l (deleted)".into() },
        LauncherFault::Unreadable { path: path(), source: gone() },
        LauncherFault::NotAFile { path: path() },
        LauncherFault::NotExecutable { path: path() },
        LauncherFault::ForeignOwner { path: path(), at: at(), owner: 1001 },
        LauncherFault::WritableByOthers { path: path(), at: at(), mode: 0o775 },
        LauncherFault::TooManyLinks { path: path() },
        LauncherFault::UserUnknown { path: path(), source: gone() },
        LauncherFault::Unsupported { path: path() },
        LauncherFault::Changed { path: path() },
    ];
    let rows = errors.iter().map(|error| (error.to_string(), error.kind(), error.hint()));
    insta::assert_snapshot!(table(rows.collect()), @r#"
    Config: launcher path "l" is not absolute
      hint: write the whole path, starting with `/`
    Config: launcher path "/opt/l" is not UTF-8
    Config: launcher path "/l\0" holds a NUL
    Config: launcher "/opt/l (deleted)" was removed while it runs
      hint: restart this program, so that the installed launcher is found again
    Config: launcher cannot be checked at "/opt/l"
    Config: launcher "/opt/l" is not a regular file
    Config: launcher "/opt/l" is not executable
      hint: set its execute bit: `chmod +x`
    Denied: launcher "/opt/l" could be replaced by user 1001, who owns "/opt"
      hint: install the launcher where only root or you own every directory
    Denied: launcher "/opt/l" could be replaced by others: "/opt" has mode 0775
      hint: take the write permission from group and others: `chmod go-w`
    Config: launcher "/opt/l" leads through too many symbolic links
    Unsupported: launcher "/opt/l" cannot be checked: the effective user is unknown
    Unsupported: launcher "/opt/l" cannot be checked on this system
    Denied: launcher "/opt/l" is no longer the file that was verified
      hint: restart this program, so that the installed launcher is found again
    "#);
}

#[test]
fn capability_faults_read_well() {
    let opt_in =
        SandboxOptIn::from_capabilities(&raw(r#"{"experimental":{"codex/sandbox-state":true}}"#));
    insta::assert_snapshot!(opt_in.faults[0], @"capability `codex/sandbox-state` must be an object, found a boolean");
}

#[test]
fn a_changed_authority_reads_well() {
    let made = CallAuthority::from_meta(&raw(
        r#"{"codex/sandbox-state":{},"codex/sandbox-launcher":{"codexExecutable":"/l"}}"#,
    ));
    let guard = AuthorityGuard::retain(&made.unwrap());
    let state_only = CallAuthority::from_meta(&raw(r#"{"codex/sandbox-state":{}}"#)).unwrap();
    let errors: Vec<AuthorityChanged> = [state_only, CallAuthority::absent()]
        .iter()
        .map(|other| guard.ensure_same(other).unwrap_err())
        .collect();
    let rows = errors.iter().map(|error| (error.to_string(), error.kind(), error.hint()));
    insta::assert_snapshot!(table(rows.collect()), @r#"
    Denied: authority changed: launcher differs
      hint: make a new call, which captures the authority now in force
    Denied: authority changed: sandbox state, launcher differ
      hint: make a new call, which captures the authority now in force
    "#);
}

#[test]
fn attach_errors_read_well() {
    let key = || "progressToken".to_owned();
    let errors = [
        AttachError::CallerNotJson { source: not_json() },
        AttachError::CallerNotAnObject { found: JsonKind::Array },
        AttachError::CallerReservedKey { key: key() },
        AttachError::ExtraSandboxKey { key: "codex/sandbox-state".to_owned() },
        AttachError::ExtraTwice { key: key() },
        AttachError::ExtraNotJson { key: key(), source: not_json() },
        AttachError::Launcher { source: LauncherFault::Changed { path: "/opt/l".into() } },
    ];
    let rows = errors.iter().map(|error| (error.to_string(), error.kind(), error.hint()));
    insta::assert_snapshot!(table(rows.collect()), @r#"
    Config: the caller's `_meta` is not valid JSON
    Config: the caller's `_meta` must be an object, found an array
    Denied: the caller's `_meta` may not set `progressToken`
      hint: use a key of your own, with a prefix such as `com.example/`
    Config: `codex/sandbox-state` is written from the captured authority only
    Config: the host's `_meta` entry `progressToken` is given twice
    Config: the host's `_meta` entry `progressToken` is not valid JSON
    Denied: authority changed: launcher differs
      hint: restart this program, so that the installed launcher is found again
    "#);
}

#[test]
fn call_authority_errors_read_well() {
    let key = "codex/sandbox-state";
    let number = || "1e+300".to_owned();
    let errors = [
        CallAuthorityError::NotAnObject { found: JsonKind::Null },
        CallAuthorityError::NotJson { source: not_json() },
        CallAuthorityError::Duplicated { key },
        CallAuthorityError::Differ,
        CallAuthorityError::State {
            key,
            source: StateError::NotAnObject { found: JsonKind::Boolean },
        },
        CallAuthorityError::InexactNumber { key, number: number() },
        CallAuthorityError::TooDeep { key, maximum: 128 },
        CallAuthorityError::LauncherNotAnObject { found: JsonKind::Text },
        CallAuthorityError::LauncherMissing,
        CallAuthorityError::LauncherDuplicated,
        CallAuthorityError::LauncherMember { member: "args".to_owned() },
        CallAuthorityError::LauncherNotText { found: JsonKind::Number },
        CallAuthorityError::LauncherPath {
            source: LauncherFault::NotAbsolute { path: "l".into() },
        },
    ];
    let rows = errors.iter().map(|error| (error.to_string(), error.kind(), error.hint()));
    insta::assert_snapshot!(table(rows.collect()), @r#"
    PeerMisbehaved: `_meta` must be an object, found null
    PeerMisbehaved: `_meta` is not valid JSON
    PeerMisbehaved: `codex/sandbox-state` occurs more than once in `_meta`
    PeerMisbehaved: `codex/sandbox-state` and `codex/sandbox-state-meta` differ
    PeerMisbehaved: `codex/sandbox-state` is unusable
    Unsupported: `codex/sandbox-state` holds the number 1e+300, which may have been rounded when it was parsed
      hint: read `_meta` from its original text: `CallAuthority::from_meta`
    Unsupported: `codex/sandbox-state` is nested more than 128 levels deep
      hint: read `_meta` from its original text: `CallAuthority::from_meta`
    PeerMisbehaved: `codex/sandbox-launcher` must be an object, found a string
    PeerMisbehaved: `codex/sandbox-launcher` has no `codexExecutable`
    PeerMisbehaved: `codex/sandbox-launcher` has more than one `codexExecutable`
    PeerMisbehaved: `codex/sandbox-launcher` has the unknown member `args`
    PeerMisbehaved: `codexExecutable` must be a string of Unicode text, found a number
    PeerMisbehaved: `codexExecutable` is unusable
    "#);
}

#[test]
fn refusals_read_well() {
    let (index, bytes, maximum) = (1, 131_072, 131_071);
    let errors = [
        Refusal::NoAuthority,
        Refusal::NoState,
        Refusal::NoLauncher,
        Refusal::StateTooLong { bytes, maximum },
        Refusal::EmptyCommand,
        Refusal::ArgumentNul { index },
        Refusal::ArgumentTooLong { index, bytes, maximum },
        Refusal::EnvironmentName { name: "HOME".to_owned() },
        Refusal::EnvironmentEntry { name: "A=B".to_owned() },
    ];
    let rows = errors.iter().map(|error| (error.to_string(), error.kind(), error.hint()));
    insta::assert_snapshot!(table(rows.collect()), @r#"
    Denied: the call came without a sandbox state and without a launcher
      hint: call through a host that sends `codex/sandbox-launcher`, or let the server's operator allow unsandboxed commands in its own configuration
    Denied: the call came with a launcher but without a sandbox state
      hint: the host must send `codex/sandbox-state` with the launcher
    Denied: the call came with a sandbox state but without a launcher
      hint: call through a host that sends `codex/sandbox-launcher`, or let the server's operator allow unsandboxed commands in its own configuration
    Denied: sandbox state is 131072 bytes long, one argument of a program takes 131071
      hint: shorten the permission profile
    Config: the command is empty
    Config: argument 1 of the command holds a NUL
    Config: argument 1 of the command is 131072 bytes long, a program takes 131071
      hint: pass long input in a file or on stdin
    Config: environment variable `HOME` may not be set for a sandboxed command
      hint: HOME, TMPDIR, XDG_* and PLENIPO_* decide what a policy means; remove it
    Config: environment variable "A=B" has a name or value that cannot be passed on
    "#);
}
