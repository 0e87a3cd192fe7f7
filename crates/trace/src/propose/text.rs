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
            if let Some(written) = self.around.denied(path) {
                line(&mut text, "", &written, Access::Deny, "a secret in what is granted above");
            }
        }
        self.judgements(&mut text);
        self.network_table(&mut text, &name);
        text
    }

    /// The lines that confine a server of that name by it, as comments.
    #[must_use]
    pub fn confining(&self, server: &str) -> String {
        let (server, profile) = (bare(server), quoted(&self.name));
        format!("# Then confine it:\n# [mcp_servers.{server}]\n# sandbox = {profile}\n")
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
        for path in &self.left_out {
            text.extend([format!(
                "# LEFT OUT: {path:?}, which a profile cannot grant by this name.\n"
            )]);
        }
        for place in &self.unsearched {
            text.extend([format!(
                "# SECRETS MAY BE READABLE in {place:?}: not all of it could be searched and denied. Grant less.\n"
            )]);
        }
        if self.incomplete {
            text.push_str("# More was touched than this says: something may be missing here.\n");
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
    let why = why.replace(is_unseen, "\u{fffd}");
    let entry = format!("{before}{} = \"{word}\"", quoted(key));
    text.extend([format!("{entry:<REASONS$}  # {why}\n")]);
}

/// A basic string of TOML: that of JSON, and nothing in it that is not seen or that turns the line around.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for character in serde_json::Value::from(text).to_string().chars() {
        match u32::from(character) {
            _ if !is_unseen(character) => quoted.push(character),
            code @ 0..=0xffff => quoted.extend([format!("\\u{code:04x}")]),
            code => quoted.extend([format!("\\U{code:08x}")]),
        }
    }
    quoted
}

/// Control characters, marks of direction, spaces without width, ends of lines, tags.
fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0xad | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff
            | 0xfff9..=0xfffb | 0xe0000..=0xe007f)
}

fn bare(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.bytes().all(plain) { name.to_owned() } else { quoted(name) }
}
