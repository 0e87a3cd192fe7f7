//! The tools about sessions: their arguments and their results.

use std::time::Duration;

use plenipo_authority::CallAuthority;
use plenipo_wire::{Fragment, RawValue, object};

use crate::arguments::{DEFAULT_TIMEOUT, SHELL, duration, expected, string};
use crate::enforcement::Enforcement;
use crate::output::Captured;
use crate::result::ToolResult;
use crate::session::{Line, Loan, MAXIMUM_SESSIONS, Session, Sessions};
use crate::text;

/// What starts a session.
pub(crate) fn shell() -> Vec<String> {
    vec![SHELL.to_owned()]
}

/// Arguments of `session_send` and `session_close`.
#[derive(Debug)]
pub(crate) struct SessionArguments {
    pub(crate) session: String,
    /// Empty for `session_close`.
    pub(crate) command: String,
    pub(crate) timeout: Duration,
}

impl SessionArguments {
    /// Of `session_start`, which takes none.
    pub(crate) fn none(raw: Option<&RawValue>) -> Result<(), String> {
        Self::parse(raw, &[]).map(drop)
    }

    pub(crate) fn of_send(raw: Option<&RawValue>) -> Result<Self, String> {
        Self::parse(raw, &["session", "command", "timeout_seconds"])
    }

    pub(crate) fn of_close(raw: Option<&RawValue>) -> Result<Self, String> {
        Self::parse(raw, &["session"])
    }

    /// Reads `params.arguments`, which may have the names in `known`. The error is a sentence for whoever wrote them.
    fn parse(raw: Option<&RawValue>, known: &[&str]) -> Result<Self, String> {
        let (mut session, mut command, mut timeout) = (None, None, None);
        let entries = match raw {
            None => Vec::new(),
            Some(raw) => object::entries(raw).ok_or("`arguments` must be an object")?,
        };
        for (key, value) in entries {
            let slot = match &*key {
                "session" => &mut session,
                "command" => &mut command,
                "timeout_seconds" => &mut timeout,
                _ => &mut None,
            };
            if !known.contains(&&*key) {
                return Err(format!("unknown argument `{}`", text::name(&key)));
            }
            if slot.replace(value).is_some() {
                return Err(format!("argument `{key}` is given twice"));
            }
        }
        let text = |key: &str, value: Option<&RawValue>| match value {
            None if known.contains(&key) => Err(format!("argument `{key}` is missing")),
            None => Ok(String::new()),
            Some(value) if object::type_name(value) != "string" => {
                Err(expected(key, "a string", value))
            }
            Some(value) => string(key, value),
        };
        Ok(Self {
            session: text("session", session)?,
            command: text("command", command)?,
            timeout: timeout.map_or(Ok(DEFAULT_TIMEOUT), duration)?,
        })
    }
}

/// Keeps a started session, unless its launcher refused.
pub(crate) fn started(
    sessions: &Sessions,
    session: Session,
    enforcement: &Enforcement,
) -> ToolResult {
    if let Some(refused) = enforcement.refused() {
        return ToolResult::refused(&refused);
    }
    let Some(name) = sessions.add(session) else {
        let message = format!("{MAXIMUM_SESSIONS} sessions are open already, the most at once");
        return ToolResult::failed(&message, Some("close one with `session_close`"));
    };
    let structured = Fragment::object(|object| {
        object.string("session", &name);
        object.fragment("enforcement", &enforcement.to_fragment());
    });
    let words = match enforcement {
        Enforcement::None => format!("session {name}\nenforcement: none"),
        _ => format!("session {name}"),
    };
    ToolResult::said(words, structured, false)
}

/// Runs a line. A session that is not ready for another one afterwards is gone.
pub(crate) async fn send(
    sessions: &Sessions,
    arguments: &SessionArguments,
    authority: &CallAuthority,
    budget: usize,
) -> Result<ToolResult, String> {
    let name = &arguments.session;
    let mut session = sessions.take(name, authority)?;
    let mut loan = Loan { sessions, name, session: None };
    let line = session.line(&arguments.command, arguments.timeout).await;
    let line = line.map_err(|error| format!("failed to use the session: {error}"))?;
    Ok(match line {
        Line::Done { exit_code, output } => {
            loan.session = Some(session);
            answer(Some(exit_code), &output, budget, None)
        }
        Line::Ended { output } => answer(None, &output, budget, Some("the session has ended")),
        Line::TimedOut => {
            let nothing = Captured::with_limit(0);
            let words = "timed out: the session and everything it started were ended";
            answer(None, &nothing, budget, Some(words))
        }
    })
}

/// Ends a session and everything it started.
pub(crate) fn close(
    sessions: &Sessions,
    arguments: &SessionArguments,
    authority: &CallAuthority,
) -> Result<ToolResult, String> {
    drop(sessions.take(&arguments.session, authority)?);
    sessions.remove(&arguments.session);
    let structured = Fragment::object(|object| object.boolean("closed", true));
    Ok(ToolResult::said("closed".to_owned(), structured, false))
}

fn answer(
    exit_code: Option<i32>,
    output: &Captured,
    budget: usize,
    ended: Option<&str>,
) -> ToolResult {
    let shown = output.show(budget);
    let structured = Fragment::object(|object| {
        match exit_code {
            Some(code) => object.integer("exit_code", code.into()),
            None => object.fragment("exit_code", &Fragment::from_raw(RawValue::NULL)),
        }
        object.string("output", &shown.text);
        object.boolean("truncated", shown.truncated);
        object.boolean("ended", ended.is_some());
    });
    let mut words = shown.text;
    if shown.truncated {
        words.push_str("\n[the output is cut here]");
    }
    if let Some(code) = exit_code.filter(|code| *code != 0) {
        words.push_str("\nexit code ");
        words.push_str(&code.to_string());
    }
    if let Some(ended) = ended {
        words.push('\n');
        words.push_str(ended);
    }
    ToolResult::said(words.trim_start_matches('\n').to_owned(), structured, exit_code != Some(0))
}
