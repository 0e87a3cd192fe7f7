//! The names of `_meta` entries: ours, the protocol's, everybody else's.

/// The sandbox state. Preferred name, and the capability that asks for it.
pub const STATE_KEY: &str = "codex/sandbox-state";
/// The deprecated name of [`STATE_KEY`]; carries the same text.
pub const STATE_ALIAS_KEY: &str = "codex/sandbox-state-meta";
/// The launcher.
pub const LAUNCHER_KEY: &str = "codex/sandbox-launcher";

/// Every key that starts so belongs to the sandbox contract, known to this version or not.
const SANDBOX_PREFIX: &str = "codex/sandbox-";
/// Names without a prefix that the specification sets aside.
const TRACE_KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];
/// Made by the host for each request.
const PROGRESS_TOKEN: &str = "progressToken";
/// Labels that mark a prefix as the protocol's own.
const PROTOCOL_LABELS: [&str; 2] = ["modelcontextprotocol", "mcp"];

/// Whose a `_meta` key is, by the key grammar of the MCP specification ("General fields", `_meta`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetaKeyClass {
    /// `codex/sandbox-…`: written by the host alone. A caller's value for one of the three known
    /// keys is replaced, any other is refused.
    Sandbox,
    /// `progressToken` and prefixes that the protocol reserves: refused from a caller.
    Reserved,
    /// `traceparent`, `tracestate`, `baggage`: set aside by the specification, open to callers.
    Trace,
    /// Anything else that follows the grammar.
    Open,
    /// Does not follow the grammar. Carried untouched all the same: it is not ours to judge.
    Malformed,
}

/// Says whose the (unescaped) `key` is.
///
/// A prefix is reserved when its second label is `modelcontextprotocol` or `mcp`
/// (`io.modelcontextprotocol/…`), and also when its first of several is (`mcp.dev/…`, reserved by
/// the versions up to 2025-11-25).
pub fn classify_meta_key(key: &str) -> MetaKeyClass {
    if key.starts_with(SANDBOX_PREFIX) {
        return MetaKeyClass::Sandbox;
    }
    if key == PROGRESS_TOKEN {
        return MetaKeyClass::Reserved;
    }
    if TRACE_KEYS.contains(&key) {
        return MetaKeyClass::Trace;
    }
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(is_reserved_prefix) {
        return MetaKeyClass::Reserved;
    }
    if prefix.is_none_or(|prefix| prefix.split('.').all(is_label)) && is_name(name) {
        MetaKeyClass::Open
    } else {
        MetaKeyClass::Malformed
    }
}

/// True for the three keys that the host replaces.
pub(crate) fn is_replaced(key: &str) -> bool {
    [STATE_KEY, STATE_ALIAS_KEY, LAUNCHER_KEY].contains(&key)
}

fn is_reserved_prefix(prefix: &str) -> bool {
    let mut labels = prefix.split('.');
    let (first, second) = (labels.next(), labels.next());
    let is_protocol = |label: Option<&str>| label.is_some_and(|it| PROTOCOL_LABELS.contains(&it));
    is_protocol(second) || (is_protocol(first) && second.is_some())
}

/// A label: starts with a letter, ends with a letter or digit, hyphens inside.
fn is_label(label: &str) -> bool {
    label.starts_with(|first: char| first.is_ascii_alphabetic())
        && label.ends_with(|last: char| last.is_ascii_alphanumeric())
        && label.chars().all(|inner| inner.is_ascii_alphanumeric() || inner == '-')
}

/// A name: empty after a prefix is allowed by the specification; else starts and ends alphanumeric.
fn is_name(name: &str) -> bool {
    name.is_empty()
        || (name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.ends_with(|last: char| last.is_ascii_alphanumeric())
            && name.chars().all(|inner| inner.is_ascii_alphanumeric() || "-_.".contains(inner)))
}

#[cfg(test)]
mod tests {
    use super::{MetaKeyClass::*, *};

    #[test]
    fn meta_key_grammar_table() {
        let table = [
            (STATE_KEY, Sandbox),
            (STATE_ALIAS_KEY, Sandbox),
            (LAUNCHER_KEY, Sandbox),
            ("codex/sandbox-next", Sandbox),
            ("codex/sandbox", Open),
            ("Codex/sandbox-state", Open),
            ("progressToken", Reserved),
            ("progresstoken", Open),
            ("io.modelcontextprotocol/protocolVersion", Reserved),
            ("io.modelcontextprotocol/", Reserved),
            ("io.modelcontextprotocol/a/b", Reserved),
            ("io.modelcontextprotocol.x/a", Reserved),
            ("com.mcp.tools/x", Reserved),
            ("dev.mcp/x", Reserved),
            ("mcp.dev/x", Reserved),
            ("modelcontextprotocol.io/x", Reserved),
            ("mcp/x", Open),
            ("com.example.mcp/x", Open),
            ("io.modelcontextprotocolx/x", Open),
            ("traceparent", Trace),
            ("tracestate", Trace),
            ("baggage", Trace),
            ("threadId", Open),
            ("x-codex-turn-metadata", Open),
            ("com.example/a_b.c-d", Open),
            ("com.ex-ample/1", Open),
            ("com.example/", Open),
            ("1com.example/x", Malformed),
            ("com.example-/x", Malformed),
            ("com..example/x", Malformed),
            ("/x", Malformed),
            ("a b", Malformed),
            ("-a", Malformed),
            ("a-", Malformed),
            ("com.example/a/b", Malformed),
            ("é", Malformed),
        ];
        for (key, class) in table {
            assert_eq!(classify_meta_key(key), class, "{key}");
        }
    }
}
