//! Results of tool `run`, for a person or model to read and for a program to use.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use plenipo_wire::{Fragment, RawValue};

use crate::enforcement::{Enforcement, Refused};
use crate::output::Shown;
use crate::protocol::Era;
use crate::watch::{End, Watched};

/// How long one stream may be inside a result, so that a message of `max_message_bytes` holds it
/// twice (text and structure) beside the other one and the report.
pub(crate) fn stream_budget(max_message_bytes: usize) -> usize {
    max_message_bytes.saturating_sub(report_budget(max_message_bytes)).saturating_sub(4096) / 4
}

/// How long a report may be.
pub(crate) fn report_budget(max_message_bytes: usize) -> usize {
    crate::enforcement::REPORT_BYTES.min(max_message_bytes / 8)
}

/// A result of `tools/call`.
#[derive(Debug)]
pub(crate) struct ToolResult {
    text: String,
    structured: Option<Fragment>,
    is_error: bool,
}

impl ToolResult {
    /// Nothing was run.
    pub(crate) fn failed(message: &str, hint: Option<&str>) -> Self {
        let mut text = message.to_owned();
        if let Some(hint) = hint {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        Self { text, structured: None, is_error: true }
    }

    /// A command was run, or its launcher refused to.
    pub(crate) fn of(watched: &Watched, enforcement: &Enforcement, stream_budget: usize) -> Self {
        let stdout = watched.stdout.show(stream_budget);
        let stderr = watched.stderr.show(stream_budget);
        let refused = enforcement.refused();
        let is_error = refused.is_some() || !is_success(watched.end);
        let structured = structure(watched.end, &stdout, &stderr, enforcement);
        let text = match refused {
            Some(refused) => refusal(&refused),
            None => transcript(watched.end, stdout, &stderr, enforcement),
        };
        Self { text, structured: Some(structured), is_error }
    }

    /// The launcher ran nothing.
    pub(crate) fn refused(refused: &Refused) -> Self {
        Self { text: refusal(refused), structured: None, is_error: true }
    }

    /// A tool of sessions.
    pub(crate) fn said(text: String, structured: Fragment, is_error: bool) -> Self {
        Self { text, structured: Some(structured), is_error }
    }

    pub(crate) fn to_fragment(&self, era: Era) -> Fragment {
        let block = Fragment::object(|block| {
            block.string("type", "text");
            block.string("text", &self.text);
        });
        Fragment::object(|result| {
            era.mark_complete(result);
            result.array("content", [&block]);
            if let Some(structured) = &self.structured {
                result.fragment("structuredContent", structured);
            }
            result.boolean("isError", self.is_error);
        })
    }
}

fn is_success(end: End) -> bool {
    matches!(end, End::Exited(status) if status.success())
}

fn structure(end: End, stdout: &Shown, stderr: &Shown, enforcement: &Enforcement) -> Fragment {
    Fragment::object(|object| {
        match exit_code(end) {
            Some(code) => object.integer("exit_code", code.into()),
            None => object.fragment("exit_code", &Fragment::from_raw(RawValue::NULL)),
        }
        object.string("stdout", &stdout.text);
        object.string("stderr", &stderr.text);
        object.boolean("truncated", stdout.truncated || stderr.truncated);
        object.boolean("timed_out", matches!(end, End::TimedOut(_)));
        object.fragment("enforcement", &enforcement.to_fragment());
    })
}

/// As a shell shows it: 128 + n for signal n. None when the command was ended by this server.
fn exit_code(end: End) -> Option<i32> {
    let End::Exited(status) = end else { return None };
    status.code().or_else(|| status.signal().map(|signal| signal.saturating_add(128)))
}

fn refusal(refused: &Refused) -> String {
    let mut text = format!("the sandbox refused to run the command: {}", refused.message);
    if let Some(hint) = &refused.hint {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text
}

/// The output as it is when there is nothing else to say; else what a terminal would have shown,
/// and how it ended.
fn transcript(end: End, stdout: Shown, stderr: &Shown, enforcement: &Enforcement) -> String {
    let mut text = stdout.text;
    if stdout.truncated {
        line(&mut text, &format!("[stdout is cut here: {} bytes in all]", stdout.total));
    }
    if !stderr.text.is_empty() {
        line(&mut text, "[stderr]");
        line(&mut text, &stderr.text);
    }
    if stderr.truncated {
        line(&mut text, &format!("[stderr is cut here: {} bytes in all]", stderr.total));
    }
    if let Some(words) = ending(end) {
        line(&mut text, &words);
    }
    if *enforcement == Enforcement::None {
        line(&mut text, "enforcement: none");
    }
    text
}

fn ending(end: End) -> Option<String> {
    match end {
        End::Exited(status) if status.success() => None,
        End::Exited(status) => Some(exit_words(status)),
        End::TimedOut(limit) => Some(format!(
            "timed out after {} s: the command and everything it started were ended",
            limit.as_secs_f64()
        )),
        End::Cancelled => Some("cancelled".to_owned()),
    }
}

fn exit_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}{}", signal_name(signal)),
        (None, None) => "ended without an exit code".to_owned(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// Appends a line, on a line of its own.
fn line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shown(text: &str) -> Shown {
        Shown { text: text.to_owned(), total: text.len() as u64, truncated: false }
    }

    fn cut(text: &str, total: u64) -> Shown {
        Shown { text: text.to_owned(), total, truncated: true }
    }

    fn exited(raw: i32) -> End {
        End::Exited(ExitStatus::from_raw(raw))
    }

    #[test]
    fn a_transcript_reads_like_a_terminal() {
        let quiet = Enforcement::Unreported(None);
        let timed_out = End::TimedOut(Duration::from_millis(1500));
        let all = [
            transcript(exited(0), shown("hello\n"), &shown(""), &quiet),
            transcript(exited(0), shown("no newline"), &shown(""), &quiet),
            transcript(exited(0), shown(""), &shown(""), &quiet),
            transcript(exited(1 << 8), shown("out"), &shown("err\n"), &quiet),
            transcript(exited(9), shown(""), &shown(""), &quiet),
            transcript(timed_out, cut("abc", 7), &cut("def", 9), &quiet),
            transcript(exited(0), shown("hello\n"), &shown("warned"), &Enforcement::None),
        ];
        insta::assert_snapshot!(all.map(|text| format!("{text}<end>")).join("\n---\n"));
    }

    #[test]
    fn codes_are_what_a_shell_would_show() {
        assert_eq!(exit_code(exited(7 << 8)), Some(7));
        assert_eq!(exit_code(exited(15)), Some(143));
        assert_eq!(exit_code(End::TimedOut(Duration::ZERO)), None);
    }

    #[test]
    fn two_full_streams_and_a_report_fit_into_a_message() {
        for maximum in [64 * 1024, 1 << 20, 16 << 20] {
            let used = 4 * stream_budget(maximum) + report_budget(maximum);
            assert!(used < maximum && used > maximum / 2, "{maximum}: {used}");
        }
        assert_eq!(stream_budget(0), 0);
    }
}
