//! A call that the rules want approved: everything that will be sent is shown first.

use plenipo_connect::approval::{Approval, ApprovalRequest, Approver};
use plenipo_connect::input::InputFuture;
use plenipo_connect::text::shown;
use plenipo_wire::RawValue;

use super::Person;
use crate::terminal;

/// More than anybody reads.
const SHOWN: usize = 64 * 1024;

impl Approver for Person {
    fn approve<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> InputFuture<'a, Approval> {
        Box::pin(async move {
            let mut talk = self.talk().await;
            let call = format!("`{}.{}`", request.server, shown(request.tool.name()));
            let call = terminal::stderr().bold(&call);
            let mode = request.mode.name();
            talk.say(&format!("{call} needs your approval (mode `{mode}`). It would be sent:"));
            let raw = request.arguments.map_or("{}", |arguments| arguments.as_str());
            for line in arguments(raw).lines() {
                talk.say(&format!("  {} {line}", terminal::stderr().dim("|")));
            }
            match talk.choose("Make this call? [y]es, [N]o: ", &["yes", "no"], Some("no")).await {
                Some("yes") => Approval::Once,
                _ => Approval::Refused,
            }
        })
    }
}

/// Indented JSON, members in order and numbers as they are sent, harmless.
fn arguments(raw: &str) -> String {
    let text = indented(raw);
    let cut = text.char_indices().nth(SHOWN).map(|(at, _)| at);
    let shown = cut.and_then(|at| text.get(..at)).unwrap_or(&text);
    let shown = terminal::harmless(shown);
    match cut {
        Some(_) => format!("{shown}\n… cut: the whole is {} bytes", raw.len()),
        None => shown,
    }
}

/// One member a line, nested ones as they are.
fn indented(raw: &str) -> String {
    let members = serde_json::from_str::<&RawValue>(raw).ok();
    let members = members.and_then(plenipo_wire::object::entries).unwrap_or_default();
    if members.is_empty() {
        return raw.to_owned();
    }
    let line = |(name, value): &(std::borrow::Cow<'_, str>, &RawValue)| {
        format!("  {}: {}", plenipo_wire::Fragment::string(name), value.get())
    };
    let lines: Vec<String> = members.iter().map(line).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::arguments;

    #[test]
    fn arguments_are_shown_as_they_are_sent() {
        let raw = r#"{"b":1.10,"a":{"x":[1]},"b":"\u001b[2J"}"#;
        assert_eq!(
            arguments(raw),
            "{\n  \"b\": 1.10,\n  \"a\": {\"x\":[1]},\n  \"b\": \"\\u001b[2J\"\n}"
        );
        assert_eq!(arguments("{}"), "{}");
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000));
        assert!(arguments(&long).ends_with("… cut: the whole is 70008 bytes"));
        let direction = "{\"a\":\"\u{202e}\"}";
        assert_eq!(arguments(direction), "{\n  \"a\": \"\u{fffd}\"\n}");
    }
}
