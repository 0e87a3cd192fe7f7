//! The profile as a person pastes it.

use std::path::Path;

use plenipo_policy::Access;

use super::{Proposal, Temporary};

/// Column of the reasons.
const REASONS: usize = 60;
/// How many addresses are shown.
const SHOWN: usize = 4;

impl Proposal {
    /// `[permissions.NAME]` with its tables, ready to be pasted. What needs judgement is a comment.
    #[must_use]
    pub fn toml(&self) -> String {
        let name = bare(&self.name);
        let mut text = format!("[permissions.{name}.filesystem]\n");
        if self.minimal {
            line(&mut text, "", ":minimal", Access::Read, "the system's programs and libraries");
        }
        for temporary in &self.temporary {
            let (key, why) = match temporary {
                Temporary::Own => (":tmpdir", "temporary files"),
                Temporary::Shared => (":slash_tmp", "temporary files, beside those of others"),
            };
            line(&mut text, "", key, Access::Write, why);
        }
        for (path, (access, why)) in &self.granted {
            self.entry(&mut text, "", path, *access, why);
        }
        for path in &self.denied {
            self.entry(&mut text, "", path, Access::Deny, "a secret in what is granted above");
        }
        self.judgements(&mut text);
        self.network_table(&mut text, &name);
        text
    }

    fn judgements(&self, text: &mut String) {
        if !self.unsure.is_empty() {
            text.push_str("# Judge these yourself:\n");
        }
        for (path, (access, why)) in &self.unsure {
            self.entry(text, "# ", path, *access, why);
        }
        if !self.secrets.is_empty() {
            text.push_str("# SECRETS that the server looked at, or that its arguments name. They are NOT granted:\n");
        }
        for (path, access) in &self.secrets {
            self.entry(text, "# ", path, *access, "SECRET");
        }
        for path in &self.sockets {
            text.extend([format!("# It connected to {path:?}, which no profile can allow.\n")]);
        }
        if self.incomplete {
            text.push_str(
                "# The run touched more than could be recorded: something may be missing here.\n",
            );
        }
    }

    fn network_table(&self, text: &mut String, name: &str) {
        if self.internet.is_empty() {
            text.push_str(
                "# No internet address was reached in this run. A tool that reaches hosts needs\n",
            );
            text.extend([format!("# [permissions.{name}.network]\n# enabled = true\n")]);
            return;
        }
        let shown: Vec<&str> = self.internet.iter().take(SHOWN).map(String::as_str).collect();
        let more = self.internet.len().saturating_sub(shown.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.extend([format!(
            "\n[permissions.{name}.network]\nenabled = true  # reached {}{more}\n\
             # Where it takes a proxy, name its hosts instead of all of them:\n\
             # mode = \"limited\"\n# domains = [\"example.org\"]\n",
            shown.join(", ")
        )]);
    }

    fn entry(&self, text: &mut String, before: &str, path: &Path, access: Access, why: &str) {
        if let Some(written) = self.around.written(path) {
            line(text, before, &written, access, why);
        }
    }
}

fn line(text: &mut String, before: &str, key: &str, access: Access, why: &str) {
    let word = match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Deny => "deny",
    };
    let entry = format!("{before}{} = \"{word}\"", quoted(key));
    text.extend([format!("{entry:<REASONS$}  # {why}\n")]);
}

/// A basic string of TOML, which is written like one of JSON but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn bare(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.bytes().all(plain) { name.to_owned() } else { quoted(name) }
}
