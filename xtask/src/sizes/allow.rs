//! `xtask/sizes.allow`: the only way round a limit, each with its reason.
//!
//! One exception a line: `PLACE MEASURE LIMIT # why`. `PLACE` is a file, `file:function` or a crate
//! as `cargo xtask sizes` prints it. A line that starts with `#` is a comment.

use crate::run::{Failure, Outcome};

#[derive(Debug)]
pub(super) struct AllowList(Vec<Exception>);

#[derive(Debug)]
struct Exception {
    place: String,
    measure: String,
    most: usize,
    used: bool,
}

impl AllowList {
    pub(super) fn parse(text: &str) -> Outcome<Self> {
        let lines = text.lines().enumerate();
        let wanted = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let parsed = wanted.map(|(index, line)| {
            Exception::parse(line).ok_or_else(|| {
                let number = index + 1;
                Failure::new(format!("sizes.allow:{number}: expected PLACE MEASURE LIMIT # why"))
            })
        });
        parsed.collect::<Outcome<_>>().map(Self)
    }

    /// The raised limit for a place, if there is one.
    pub(super) fn raise(&mut self, measure: &str, place: &str) -> Option<usize> {
        let mut exceptions = self.0.iter_mut();
        let exception = exceptions.find(|e| e.measure == measure && e.place == place)?;
        exception.used = true;
        Some(exception.most)
    }

    /// Exceptions for things that are no longer there.
    pub(super) fn stale(&self) -> impl Iterator<Item = String> {
        let unused = self.0.iter().filter(|exception| !exception.used);
        unused.map(|e| format!("sizes.allow names {} {}, which is not there", e.place, e.measure))
    }
}

impl Exception {
    fn parse(line: &str) -> Option<Self> {
        let (rule, reason) = line.split_once('#')?;
        let mut words = rule.split_whitespace();
        let (place, measure, most) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || reason.trim().is_empty() {
            return None;
        }
        let most = most.parse().ok()?;
        Some(Self { place: place.to_owned(), measure: measure.to_owned(), most, used: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_needs_a_reason_and_is_stale_when_unused() {
        assert!(AllowList::parse("a.rs file-lines 600").is_err());
        assert!(AllowList::parse("a.rs file-lines 600 #  ").is_err());
        let mut list = AllowList::parse("# header\n\na.rs file-lines 600 # a table").unwrap();
        assert_eq!(list.stale().count(), 1);
        assert_eq!(list.raise("file-lines", "b.rs"), None);
        assert_eq!(list.raise("file-lines", "a.rs"), Some(600));
        assert_eq!(list.stale().count(), 0);
    }
}
