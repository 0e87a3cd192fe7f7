//! Which calls somebody has to approve, before anything of them is sent.
//!
//! The modes are those of the reference schema (`default_tools_approval_mode`,
//! `tools.NAME.approval_mode`): the tool's own, else the server's, else `auto`. A tool's hints are
//! the server's word about itself; they count only where the operator trusts the server to tell the
//! truth (`trust_annotations`), and everywhere else every tool is taken for a risky one.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use plenipo_wire::Fragment;
use plenipo_wire::views::ToolAnnotations;

use crate::catalog::Tool;
use crate::server_name::ServerName;

/// When somebody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ApprovalMode {
    /// Unless trusted hints say that the tool only reads, or that it neither destroys anything nor
    /// talks to the outside.
    #[default]
    Auto,
    /// Always.
    Prompt,
    /// Unless trusted hints say that the tool only reads.
    Writes,
    /// Never.
    Approve,
}

/// The rules of one server.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Approvals {
    /// Of tools without a mode of their own; absent: `auto`.
    pub default_mode: Option<ApprovalMode>,
    /// By the tool's name as the server spells it.
    pub tool_modes: BTreeMap<String, ApprovalMode>,
    /// The operator takes the server's hints for true.
    pub trust_annotations: bool,
    /// Modes that are set here hold even when a person asked for the call themselves: an
    /// administrator set them.
    pub binding: bool,
    /// Who is asked; without one, what needs approval is refused.
    pub approver: Option<Arc<dyn Approver>>,
}

/// Decides about calls.
pub trait Approver: Send + Sync {
    /// Whether this call, with exactly these arguments, may be made. The future is dropped when the
    /// call is cancelled.
    fn approve<'a>(
        &'a self,
        request: &'a ApprovalRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Approval> + Send + 'a>>;
}

/// What is to be approved.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ApprovalRequest<'a> {
    /// Whose tool.
    pub server: &'a ServerName,
    /// The tool as it is listed.
    pub tool: &'a Tool,
    /// What will be sent.
    pub arguments: Option<&'a Fragment>,
    /// Why somebody is asked.
    pub mode: ApprovalMode,
    /// What the server says about the tool, only where it is trusted to tell the truth.
    pub hints: Option<ToolAnnotations>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// This call may be made.
    Once,
    /// This call, and every later one of the same tool on this connection while the tool stays what
    /// it is.
    Session,
    /// It may not.
    Refused,
}

/// How it came that a call may be made, or not; for the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalDecision {
    /// The rules want nobody to be asked.
    Rules,
    /// A person asked for exactly this call.
    Person,
    /// The approver, now.
    Approver,
    /// The approver, for an earlier call on this connection.
    Earlier,
    /// The approver refused.
    Refused,
    /// There was no approver.
    NobodyToAsk,
}

impl ApprovalMode {
    /// The reference schema's spelling.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Prompt => "prompt",
            Self::Writes => "writes",
            Self::Approve => "approve",
        }
    }

    /// Reads the reference schema's spelling.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Auto, Self::Prompt, Self::Writes, Self::Approve]
            .into_iter()
            .find(|mode| mode.name() == name)
    }

    /// Whether somebody has to be asked about a tool with these hints. What is not said is taken for
    /// the worse.
    fn asks(self, hints: ToolAnnotations) -> bool {
        let only_reads = hints.read_only == Some(true) && hints.destructive != Some(true);
        match self {
            Self::Approve => false,
            Self::Prompt => true,
            Self::Writes => !only_reads,
            Self::Auto => {
                let harmless = hints.destructive == Some(false) && hints.open_world == Some(false);
                !(only_reads || harmless)
            }
        }
    }
}

impl ApprovalDecision {
    /// Whether the call may be made.
    #[must_use]
    pub fn allows(self) -> bool {
        !matches!(self, Self::Refused | Self::NobodyToAsk)
    }

    /// One word or two, for an audit file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Person => "person",
            Self::Approver => "approver",
            Self::Earlier => "approver-earlier",
            Self::Refused => "approver-refused",
            Self::NobodyToAsk => "nobody-to-ask",
        }
    }
}

impl Approvals {
    /// The mode of a tool, and whether it was set rather than assumed.
    #[must_use]
    pub fn mode(&self, tool: &str) -> (ApprovalMode, bool) {
        let set = self.tool_modes.get(tool).copied().or(self.default_mode);
        (set.unwrap_or_default(), set.is_some())
    }

    /// What of a tool's hints counts.
    fn hints(&self, tool: &Tool) -> Option<ToolAnnotations> {
        self.trust_annotations.then(|| tool.view().map(|view| view.hints()).unwrap_or_default())
    }
}

/// Tools that were approved for as long as a connection lasts.
#[derive(Debug, Default)]
pub(crate) struct Approved {
    tools: Mutex<HashMap<String, Tool>>,
}

impl Approved {
    fn has(&self, tool: &Tool) -> bool {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.get(tool.name()) == Some(tool)
    }

    fn add(&self, tool: &Tool) {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.insert(tool.name().to_owned(), tool.clone());
    }
}

/// One call that is about to be made.
pub(crate) struct Pending<'a> {
    pub(crate) rules: &'a Approvals,
    pub(crate) approved: &'a Approved,
    pub(crate) server: &'a ServerName,
    pub(crate) tool: &'a Tool,
    pub(crate) arguments: Option<&'a Fragment>,
    /// A person asked for exactly this call.
    pub(crate) by_person: bool,
}

impl Pending<'_> {
    /// Decides, asking where the rules want it.
    pub(crate) async fn decide(&self) -> ApprovalDecision {
        let rules = self.rules;
        let (mode, is_set) = rules.mode(self.tool.name());
        let hints = rules.hints(self.tool);
        if !mode.asks(hints.unwrap_or_default()) {
            return ApprovalDecision::Rules;
        }
        if self.by_person && !(rules.binding && is_set) {
            return ApprovalDecision::Person;
        }
        if self.approved.has(self.tool) {
            return ApprovalDecision::Earlier;
        }
        let Some(approver) = &rules.approver else { return ApprovalDecision::NobodyToAsk };
        let &Self { server, tool, arguments, .. } = self;
        match approver.approve(&ApprovalRequest { server, tool, arguments, mode, hints }).await {
            Approval::Once => ApprovalDecision::Approver,
            Approval::Session => {
                self.approved.add(tool);
                ApprovalDecision::Approver
            }
            Approval::Refused => ApprovalDecision::Refused,
        }
    }
}

impl fmt::Debug for dyn Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approver")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(read_only: Option<bool>, destructive: Option<bool>, open: Option<bool>) -> String {
        let mut hints = ToolAnnotations::default();
        (hints.read_only, hints.destructive, hints.open_world) = (read_only, destructive, open);
        let modes = ["auto", "prompt", "writes", "approve"];
        let asks = modes.map(|mode| ApprovalMode::from_name(mode).unwrap().asks(hints));
        asks.map(|asks| if asks { 'a' } else { '-' }).iter().collect()
    }

    #[test]
    fn modes_ask_as_the_reference_does() {
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(hints(None, None, None), "aaa-", "missing hints count as risky");
        assert_eq!(hints(yes, None, None), "-a--");
        assert_eq!(hints(yes, no, yes), "-a--");
        assert_eq!(hints(yes, yes, None), "aaa-", "a contradiction is risky");
        assert_eq!(hints(no, no, no), "-aa-");
        assert_eq!(hints(None, no, no), "-aa-");
        assert_eq!(hints(None, no, None), "aaa-");
        assert_eq!(hints(None, None, no), "aaa-");
        assert_eq!(hints(no, yes, no), "aaa-");
        assert_eq!(ApprovalMode::from_name("never"), None);
    }

    #[test]
    fn the_tools_mode_wins_over_the_servers() {
        let mut rules = Approvals::default();
        assert_eq!(rules.mode("x"), (ApprovalMode::Auto, false));
        rules.default_mode = Some(ApprovalMode::Prompt);
        rules.tool_modes.insert("x".to_owned(), ApprovalMode::Approve);
        assert_eq!(rules.mode("x"), (ApprovalMode::Approve, true));
        assert_eq!(rules.mode("X"), (ApprovalMode::Prompt, true));
    }
}
