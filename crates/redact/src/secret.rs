//! A value that is never printed by accident.

use std::fmt;

use crate::REDACTED;

/// Holds a value that `Debug` and `Display` show as `[redacted]`, whatever its type.
///
/// There is no `Deref`, `AsRef` or comparison: every read is an [`expose`](Self::expose) or
/// [`into_exposed`](Self::into_exposed) that a reviewer can find.
#[derive(Clone, Default)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Reads the value, to use it; not to print it.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Takes the value out.
    pub fn into_exposed(self) -> T {
        self.0
    }

    /// Makes another secret from this one.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Secret<U> {
        Secret(change(self.0))
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_format_shows_the_value() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "only shown")]
        struct Holder {
            token: Secret<String>,
            keys: Vec<Secret<u64>>,
        }
        let holder =
            Holder { token: Secret::new("hunter2".to_owned()), keys: vec![Secret::new(42)] };
        for shown in [format!("{holder:?}"), format!("{holder:#?}"), format!("{}", holder.token)] {
            assert!(shown.contains(REDACTED), "{shown}");
            assert!(!shown.contains("hunter2") && !shown.contains("42"), "{shown}");
        }
    }

    #[test]
    fn the_value_is_read_by_asking_for_it() {
        let secret = Secret::from("abc").map(str::len);
        assert_eq!(*secret.expose(), 3);
        assert_eq!(secret.into_exposed(), 3);
    }
}
