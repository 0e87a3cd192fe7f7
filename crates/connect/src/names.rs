//! Names of tools when the tools of many servers are in one list.
//!
//! A tool has three names: the server's own spelling, which is what goes over the wire;
//! [`qualified`](IndexedTool::qualified) `server.tool` for people; and a [`ModelName`] that every
//! model's tool API takes. Nothing is ever split to find out which tool a name means: names are
//! looked up in a table, so dots, dashes and underscores inside of names cannot mislead.
//!
//! Model names are made of server and tool name alone, in any order of servers the same: characters
//! outside `A-Z a-z 0-9 _` become `_`. Where two come out equal, *each* gets a suffix of 12
//! hexadecimal digits, a hash of its server and tool name, so none can take another's place. A name
//! that is too long is cut and gets the suffix, too.

mod index;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

pub use index::{IndexedTool, ToolIndex};

/// Between namespace and name.
const SEPARATOR: &str = "__";
const HASH_DIGITS: usize = 12;
/// `_` and the digits.
const SUFFIX: usize = 1 + HASH_DIGITS;
const DEFAULT_MAX_BYTES: usize = 64;
/// Room for a namespace and a name that are both cut.
const LEAST_BYTES: usize = 40;
const DEFAULT_PREFIX: &str = "mcp__";

/// How model names are made.
///
/// | field | default |
/// |---|---|
/// | `max_bytes` | 64, at least 40 |
/// | `prefix` | `mcp__` |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NameRules {
    /// Longest namespace, separator and name together.
    pub max_bytes: usize,
    /// What namespaces begin with.
    pub prefix: String,
}

/// What a model is shown: a namespace for the server, and a name in it.
///
/// As text it is `namespace__name`, which no two tools of an index share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelName {
    text: Arc<str>,
    namespace: usize,
}

impl Default for NameRules {
    fn default() -> Self {
        Self { max_bytes: DEFAULT_MAX_BYTES, prefix: DEFAULT_PREFIX.to_owned() }
    }
}

impl ModelName {
    fn new(namespace: &str, name: &str) -> Self {
        let text = Arc::from(format!("{namespace}{SEPARATOR}{name}"));
        Self { text, namespace: namespace.len() }
    }

    fn shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The server's part.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.text.get(..self.namespace).unwrap_or_default()
    }

    /// The tool's part.
    #[must_use]
    pub fn name(&self) -> &str {
        let start = self.namespace.saturating_add(SEPARATOR.len());
        self.text.get(start..).unwrap_or_default()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Namespaces of servers, in their order; each is another.
fn namespaces(servers: &[&str], rules: &NameRules) -> Vec<String> {
    let limit = room(rules) - SEPARATOR.len() - SUFFIX;
    let texts =
        servers.iter().map(|server| format!("{}{}", plain(&rules.prefix), sanitised(server)));
    distinct(texts.collect(), limit, |index, round| {
        hash(&["namespace", servers.get(index).copied().unwrap_or_default(), &round.to_string()])
    })
}

/// Model names of tools, each given as namespace, server and tool.
fn model_names(tools: &[(&str, &str, &str)], rules: &NameRules) -> Vec<ModelName> {
    let limit = room(rules);
    let plain =
        tools.iter().map(|(namespace, _, tool)| ModelName::new(namespace, &sanitised(tool)));
    let plain: Vec<ModelName> = plain.collect();
    let texts = plain.iter().map(|name| name.text.to_string()).collect();
    let texts = distinct(texts, limit, |index, round| {
        let (_, server, tool) = tools.get(index).copied().unwrap_or_default();
        hash(&["tool", server, tool, &round.to_string()])
    });
    let named = plain.into_iter().zip(texts);
    named.map(|(name, text)| ModelName { text: Arc::from(text), ..name }).collect()
}

/// `texts` with a suffix where they are too long or equal; ASCII all of them.
///
/// A suffixed text may again equal another, by chance or because a server chose it so: what is
/// equal is hashed anew until nothing is.
fn distinct(
    texts: Vec<String>,
    limit: usize,
    hash: impl Fn(usize, usize) -> String,
) -> Vec<String> {
    const ROUNDS: usize = 64;
    let mut result: Vec<String> = texts.clone();
    let mut redo: Vec<usize> = (0..texts.len()).filter(|i| is_long(&texts, *i, limit)).collect();
    for round in 0..ROUNDS {
        for index in redo.drain(..) {
            if let (Some(plain), Some(place)) = (texts.get(index), result.get_mut(index)) {
                let kept = plain.get(..plain.len().min(limit - SUFFIX)).unwrap_or_default();
                *place = format!("{kept}_{}", hash(index, round));
            }
        }
        redo = equals(&result);
        if redo.is_empty() {
            break;
        }
    }
    result
}

fn is_long(texts: &[String], index: usize, limit: usize) -> bool {
    texts.get(index).is_some_and(|text| text.len() > limit)
}

/// Every index whose text is somebody else's, too.
fn equals(texts: &[String]) -> Vec<usize> {
    let mut first: HashMap<&str, (usize, bool)> = HashMap::with_capacity(texts.len());
    let mut found = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match first.get_mut(text.as_str()) {
            None => {
                first.insert(text, (index, false));
            }
            Some((earlier, known)) => {
                if !std::mem::replace(known, true) {
                    found.push(*earlier);
                }
                found.push(index);
            }
        }
    }
    found
}

fn sanitised(name: &str) -> String {
    if name.is_empty() { "_".to_owned() } else { plain(name) }
}

fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn room(rules: &NameRules) -> usize {
    rules.max_bytes.max(LEAST_BYTES)
}

/// Lengths are hashed, too: no two lists of parts come to the same bytes.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    digest.iter().take(HASH_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
