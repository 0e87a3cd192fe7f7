//! Where a server runs, and with which variables.
//!
//! [`build`] makes the variables of its process: cleared, then an allow-list, then what its configuration names, then
//! what it sets. [`Environment`] is a place other than this machine, bound to a connection when it starts.

mod named;
mod quoting;

use std::collections::BTreeMap;
use std::ffi::OsString;

use plenipo_redact::Secret;

pub use plenipo_authority::EnvironmentId;

pub use named::{BindFault, Environment, NAME, Quoting, VARIABLES};

/// Variables every local server gets when the host has them: user, terminal, locale, time zone,
/// temporary directory, search path, and where certificates are.
pub const ALLOWED: [&str; 17] = [
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "USER",
    "LANG",
    "LC_ALL",
    "TERM",
    "TMPDIR",
    "TZ",
    "__CF_USER_TEXT_ENCODING",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// How the host's variables are looked up; the host decides where from.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Builds an environment: [`ALLOWED`], then `forwarded` by name, then `literal`, each replacing
/// what came before.
#[must_use]
pub fn build(
    lookup: Lookup<'_>,
    forwarded: &[String],
    literal: &BTreeMap<String, Secret<String>>,
) -> Vec<(OsString, OsString)> {
    let mut variables = BTreeMap::new();
    for name in ALLOWED.into_iter().chain(forwarded.iter().map(String::as_str)) {
        if let Some(value) = lookup(name) {
            variables.insert(OsString::from(name), value);
        }
    }
    for (name, value) in literal {
        variables.insert(OsString::from(name), OsString::from(value.expose()));
    }
    variables.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaks_and_the_literal_wins() {
        let host = |name: &str| match name {
            "PATH" | "SECRET" | "WANTED" | "LANG" => Some(OsString::from(format!("host-{name}"))),
            _ => None,
        };
        let literal = BTreeMap::from([("LANG".to_owned(), Secret::new("C".to_owned()))]);
        let built = build(&host, &["WANTED".to_owned(), "ABSENT".to_owned()], &literal);
        let shown: Vec<_> = built
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        assert_eq!(shown, ["LANG=C", "PATH=host-PATH", "WANTED=host-WANTED"]);
    }
}
