//! What the operator of a server decided about calls without a launcher.

/// What to do when a call brings no launcher, decided by the server's *operator* in managed or user
/// configuration, never by a caller, a project file or a tool argument.
///
/// The opt-out covers absence only: a malformed or differing state, a state too long to pass, a
/// changed authority and the launcher's own refusal stay refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperatorPolicy {
    /// No launcher, no command. The default.
    #[default]
    RequireLauncher,
    /// Without a launcher the command runs unsandboxed, and the result must say so
    /// ([`SandboxedCommand::is_sandboxed`](crate::SandboxedCommand::is_sandboxed) is false).
    AllowUnsandboxed,
}
