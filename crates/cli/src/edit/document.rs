//! Text in, text out: a server's table put into a document or taken out of it; comments and order stay.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::arguments::AddArguments;
use crate::failure::Failure;

const SERVERS: &str = "mcp_servers";

/// What adding came to.
pub(super) enum Added {
    New(String),
    Replaced(String),
    /// It is there, and nobody said to replace it.
    Present,
}

/// The table that the words of `plenipo add` describe.
pub(super) fn table(arguments: &AddArguments) -> Result<Table, Failure> {
    let mut table = Table::new();
    if let Some(url) = &arguments.url {
        table.insert("url", url.as_str().into());
        if let Some(name) = &arguments.bearer_token_env_var {
            table.insert("bearer_token_env_var", name.as_str().into());
        }
        return Ok(table);
    }
    let mut words = Vec::new();
    for word in &arguments.command {
        words.push(word.to_str().ok_or_else(|| {
            Failure::usage(format!("`{}` is not UTF-8, which TOML needs", word.display()))
        })?);
    }
    let Some((command, rest)) = words.split_first() else {
        return Err(Failure::usage("there is no command after --"));
    };
    table.insert("command", (*command).into());
    if !rest.is_empty() {
        table.insert("args", Item::Value(Value::Array(rest.iter().copied().collect::<Array>())));
    }
    if !arguments.env.is_empty() {
        let variables: InlineTable = arguments
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), Value::from(value.as_str())))
            .collect();
        table.insert("env", Item::Value(Value::InlineTable(variables)));
    }
    Ok(table)
}

pub(super) fn with_server(
    text: &str,
    name: &str,
    mut server: Table,
    force: bool,
) -> Result<Added, String> {
    let (mark, mut document) = parse(text)?;
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers = servers.as_table_like_mut().ok_or("`mcp_servers` is no table")?;
    let present = servers.get(name);
    let replaced = present.is_some();
    if replaced && !force {
        return Ok(Added::Present);
    }
    if let Some(old) = present.and_then(Item::as_table) {
        server.set_position(old.position());
        *server.decor_mut() = old.decor().clone();
    }
    servers.insert(name, Item::Table(server));
    let text = format!("{mark}{document}");
    Ok(if replaced { Added::Replaced(text) } else { Added::New(text) })
}

/// `None` when there is no such server.
pub(super) fn without_server(text: &str, name: &str) -> Result<Option<String>, String> {
    let (mark, mut document) = parse(text)?;
    let servers = document.get_mut(SERVERS).and_then(Item::as_table_like_mut);
    let Some(removed) = servers.and_then(|servers| servers.remove(name)) else { return Ok(None) };
    let mut headers = Vec::new();
    collect(&removed, &mut headers);
    headers.sort_by_key(|(position, _)| *position);
    if let Some((position, above)) = headers.into_iter().next() {
        // What stands above the server's own comment, parted from it by an empty line, is not about it.
        if let Some((kept, _)) = above.rsplit_once("\n\n").filter(|(kept, _)| kept.contains('#')) {
            hand_on(&mut document, position, &format!("{kept}\n\n"));
        }
    }
    Ok(Some(format!("{mark}{document}")))
}

/// Positions of the headers in an item, and the text above each.
fn collect(item: &Item, headers: &mut Vec<(isize, String)>) {
    let Some(table) = item.as_table() else { return };
    if let Some(position) = table.position().filter(|_| !table.is_implicit()) {
        let above = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        headers.push((position, above.to_owned()));
    }
    table.iter().for_each(|(_, item)| collect(item, headers));
}

/// Puts text above the header that follows a position, else at the end.
fn hand_on(document: &mut DocumentMut, position: isize, text: &str) {
    let mut following = Vec::new();
    document.as_table().iter().for_each(|(_, item)| collect(item, &mut following));
    let next = following.iter().map(|(at, _)| *at).filter(|at| *at > position).min();
    match next.and_then(|next| header_at(document.as_table_mut(), next)) {
        Some(table) => {
            let decor = table.decor_mut();
            let prefix = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            let prefix = format!("{text}{}", prefix.trim_start_matches('\n'));
            decor.set_prefix(prefix);
        }
        None => {
            let trailing = document.trailing().as_str().unwrap_or_default();
            let trailing = format!("{}\n{trailing}", text.trim_end());
            document.set_trailing(trailing);
        }
    }
}

fn header_at(table: &mut Table, position: isize) -> Option<&mut Table> {
    if table.position() == Some(position) && !table.is_implicit() {
        return Some(table);
    }
    table.iter_mut().find_map(|(_, item)| header_at(item.as_table_mut()?, position))
}

/// A byte order mark stays where it was.
fn parse(text: &str) -> Result<(&str, DocumentMut), String> {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let document =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    Ok((mark, document))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str, force: bool) -> String {
        let mut server = Table::new();
        server.insert("command", "new".into());
        match with_server(text, "new.one", server, force).unwrap() {
            Added::New(text) | Added::Replaced(text) => text,
            Added::Present => "present".to_owned(),
        }
    }

    const FILE: &str = "\
# The head of the file.

default_permissions = \":read-only\"   # stays

# About a.
[mcp_servers.a]
command = \"a\" # runs a
args = [
    \"x\", # first
]

# About b, which is off.
[mcp_servers.b]
command = \"b\"
enabled = false

[mcp_servers.b.env]
B = \"1\"

# Not about servers.
[permissions.p]
extends = \":read-only\"
# The end.
";

    #[test]
    fn a_new_server_follows_the_others_and_nothing_else_moves() {
        let text = added(FILE, false);
        let expected = FILE
            .replace("B = \"1\"\n", "B = \"1\"\n\n[mcp_servers.\"new.one\"]\ncommand = \"new\"\n");
        assert_eq!(text, expected);
        assert_eq!(added("", false), "[mcp_servers.\"new.one\"]\ncommand = \"new\"\n");
        assert_eq!(
            added("mcp_servers = { a = { command = \"x\" } }\n", false),
            "mcp_servers = { a = { command = \"x\" } , \"new.one\" = { command = \"new\" } }\n"
        );
    }

    #[test]
    fn replacing_keeps_the_place_and_the_comment_above() {
        let there = FILE.replace("mcp_servers.a", "mcp_servers.\"new.one\"");
        assert_eq!(added(&there, false), "present");
        let expected = there.replace(
            "command = \"a\" # runs a\nargs = [\n    \"x\", # first\n]\n",
            "command = \"new\"\n",
        );
        assert_eq!(added(&there, true), expected);
    }

    #[test]
    fn removing_takes_the_server_and_its_own_comment() {
        let without = |name: &str| without_server(FILE, name).unwrap().unwrap();
        let (head, rest) = FILE.split_once("\n# About a.").unwrap();
        let (_, rest) = rest.split_once("\n# About b").unwrap();
        assert_eq!(without("a"), format!("{head}\n# About b{rest}"));
        let (head, _) = FILE.split_once("\n# About b").unwrap();
        let (_, rest) = rest.split_once("\n# Not about").unwrap();
        assert_eq!(without("b"), format!("{head}\n# Not about{rest}"));
        assert_eq!(without_server(FILE, "c"), Ok(None));
        assert_eq!(without_server("", "c"), Ok(None));
    }

    #[test]
    fn the_head_of_a_file_is_not_about_its_first_server() {
        let head = "# Mine.\n\n# About a.\n[mcp_servers.a]\ncommand = \"a\"\n";
        assert_eq!(without_server(head, "a").unwrap().unwrap(), "# Mine.\n");
        let two = format!("{head}\n[mcp_servers.b]\ncommand = \"b\"\n");
        assert_eq!(
            without_server(&two, "a").unwrap().unwrap(),
            "# Mine.\n\n[mcp_servers.b]\ncommand = \"b\"\n"
        );
    }
}
