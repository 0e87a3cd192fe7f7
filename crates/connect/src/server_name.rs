//! Names under which servers are configured.

use std::borrow::Borrow;
use std::fmt;

/// Name of a server: one or more of `a-z A-Z 0-9 _ : @ / . -`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(String);

impl ServerName {
    /// Reserved for the built-in server; no configuration may define it.
    pub const WORKSPACE: &'static str = "workspace";

    /// Checks a name; `None` when it is empty or has another character.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_:@/.-".contains(&byte);
        (!name.is_empty() && name.bytes().all(allowed)).then(|| Self(name.to_owned()))
    }

    /// The built-in server.
    #[must_use]
    pub fn workspace() -> Self {
        Self(Self::WORKSPACE.to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names are looked up by their text.
impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_grammar() {
        for name in ["a", "my-srv", "@scope/pkg.x", "A:b_9"] {
            assert_eq!(ServerName::new(name).unwrap().as_str(), name);
        }
        for name in ["", "a b", "ä", "a\n", "a#"] {
            assert!(ServerName::new(name).is_none(), "{name:?}");
        }
    }
}
