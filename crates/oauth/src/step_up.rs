//! More scopes for an operation: joined with what is held, and not asked for without end.

use std::collections::HashMap;

use crate::error::OAuthError;
use crate::scope::Scopes;

/// Sign-ins for one operation at one resource.
const TRIES: u32 = 2;
/// The most operations that are remembered.
const MOST: usize = 1024;

/// Which operations of one resource wanted more scopes, and how often that was tried.
#[derive(Debug, Default)]
pub struct StepUps {
    tries: HashMap<String, u32>,
}

impl StepUps {
    /// What to ask for, when `operation` was refused with `wanted` though `held` were granted: both
    /// together.
    ///
    /// # Errors
    /// [`OAuthError::StepUpExhausted`] when a sign-in would bring nothing new: the scopes are held
    /// already, or it was tried twice.
    pub fn ask(
        &mut self,
        operation: &str,
        held: &Scopes,
        wanted: Option<&Scopes>,
    ) -> Result<Scopes, OAuthError> {
        let wanted = wanted.cloned().unwrap_or_default();
        let exhausted = || OAuthError::StepUpExhausted { missing: wanted.clone() };
        if held.covers(&wanted) && self.tries.contains_key(operation) {
            return Err(exhausted());
        }
        if self.tries.len() >= MOST && !self.tries.contains_key(operation) {
            return Err(exhausted());
        }
        let tries = self.tries.entry(operation.to_owned()).or_default();
        if *tries >= TRIES {
            return Err(exhausted());
        }
        *tries += 1;
        Ok(held.union(&wanted))
    }

    /// The operation went through: what it wanted counts no more.
    pub fn succeeded(&mut self, operation: &str) {
        self.tries.remove(operation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stepup_union_and_limit() {
        let scopes = |text| Scopes::parse(text).unwrap();
        let mut ups = StepUps::default();
        let read = scopes("files:read");
        let write = scopes("files:write");
        let both = ups.ask("write", &read, Some(&write)).unwrap();
        assert_eq!(both.to_string(), "files:read files:write");
        // Granted, and refused once more with the same words: no second sign-in.
        let error = ups.ask("write", &both, Some(&write)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it needs the scope `files:write`, which was asked for and not granted"
        );
        // Not granted: one more try, then no more.
        assert!(ups.ask("other", &read, Some(&write)).is_ok());
        assert!(ups.ask("other", &read, Some(&write)).is_ok());
        assert!(ups.ask("other", &read, Some(&write)).is_err());
        // An operation that worked in between begins anew; others are not touched.
        ups.succeeded("other");
        assert!(ups.ask("other", &read, Some(&write)).is_ok());
        assert!(ups.ask("third", &read, Some(&write)).is_ok());
    }

    #[test]
    fn operations_without_end_are_not_remembered() {
        let (held, wanted) = (Scopes::default(), Scopes::parse("a").unwrap());
        let mut ups = StepUps::default();
        for number in 0..MOST {
            assert!(ups.ask(&number.to_string(), &held, Some(&wanted)).is_ok());
        }
        assert!(ups.ask("one more", &held, Some(&wanted)).is_err());
    }
}
