//! `shell_environment_policy`: which variables a command gets, in the reference schema's spelling.
//!
//! The steps, in order: what is inherited, minus names that look like secrets, minus `exclude`,
//! plus `set`, then only `include_only` if it is given. Patterns are globs (`*`, `?`) that match the
//! whole name without regard to case.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::error::ConfigError;
use crate::node::{Node, Place};
use crate::{keys, scalar};

/// Names that look like secrets.
const SECRETS: [&str; 3] = ["*KEY*", "*SECRET*", "*TOKEN*"];
/// What `inherit = "core"` keeps.
const CORE: [&str; 11] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR",
    "USER",
];

/// What a command inherits before anything is taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inherit {
    /// Everything.
    #[default]
    All,
    /// What a shell needs: `HOME`, `PATH`, the language, temporary directories and the user's name.
    Core,
    /// Nothing.
    None,
}

/// One `[shell_environment_policy]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvironmentPolicy {
    /// `inherit`; absent: everything that the kind of command is given at all.
    pub inherit: Option<Inherit>,
    /// `ignore_default_excludes`: whether names that look like secrets are kept; absent: as is usual for the kind of
    /// command.
    pub keeps_secrets: Option<bool>,
    /// `exclude`: patterns of names that are taken away.
    pub exclude: Vec<String>,
    /// `set`: added, whatever was taken away before.
    pub set: BTreeMap<String, String>,
    /// `include_only`: if there are any, patterns of the only names that are left in the end.
    pub include_only: Vec<String>,
}

impl EnvironmentPolicy {
    /// What a command gets of `variables`. `keeps_secrets` holds where the policy does not say.
    pub fn apply<I>(&self, variables: I, keeps_secrets: bool) -> Vec<(OsString, OsString)>
    where
        I: IntoIterator<Item = (OsString, OsString)>,
    {
        let inherit = self.inherit.unwrap_or_default();
        let keeps_secrets = self.keeps_secrets.unwrap_or(keeps_secrets);
        let is_kept = |name: &OsStr| {
            let inherited = match inherit {
                Inherit::All => true,
                Inherit::Core => CORE.iter().any(|core| name == *core),
                Inherit::None => false,
            };
            inherited && (keeps_secrets || !any(SECRETS, name)) && !any(&self.exclude, name)
        };
        let mut kept: Vec<(OsString, OsString)> = variables
            .into_iter()
            .filter(|(name, _)| is_kept(name) && self.set.keys().all(|set| *name != **set))
            .collect();
        kept.extend(self.set.iter().map(|(name, value)| (name.into(), value.into())));
        if !self.include_only.is_empty() {
            kept.retain(|(name, _)| any(&self.include_only, name));
        }
        kept
    }
}

fn any<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>, name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    patterns.into_iter().any(|pattern| matches(pattern.as_ref().as_bytes(), name))
}

/// Whether a glob of `*` and `?` matches all of `name`. Linear in both, but for one step back to the last star.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(position) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, position));
                at += 1;
                continue;
            }
            Some(wanted) if *wanted == b'?' || wanted.eq_ignore_ascii_case(byte) => {
                at += 1;
                position += 1;
                continue;
            }
            _ => {}
        }
        let Some((place, taken)) = star else { return false };
        star = Some((place, taken + 1));
        (at, position) = (place + 1, taken + 1);
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

pub(crate) fn read(node: &Node, place: &Place<'_>) -> Result<EnvironmentPolicy, ConfigError> {
    let mut policy = EnvironmentPolicy::default();
    place.all(node, |key, value, place| policy.take(key, value, place))?;
    Ok(policy)
}

impl EnvironmentPolicy {
    fn take(&mut self, key: &str, value: &Node, place: &Place<'_>) -> Result<(), ConfigError> {
        match key {
            "inherit" => self.inherit = Some(inherit(&place.string(value)?, place)?),
            "ignore_default_excludes" => self.keeps_secrets = Some(place.boolean(value)?),
            "exclude" => self.exclude = place.strings(value)?,
            "include_only" => self.include_only = place.strings(value)?,
            "set" => {
                for (name, value) in place.table(value)? {
                    let place = place.member(name);
                    let name = place.note(scalar::variable_name(&name.text, &place));
                    self.set.extend(name.zip(place.note(place.string(value))));
                }
            }
            unknown => return Err(place.unknown_key(unknown, keys::ENVIRONMENT.into_iter())),
        }
        Ok(())
    }
}

fn inherit(text: &str, place: &Place<'_>) -> Result<Inherit, ConfigError> {
    match text {
        "all" => Ok(Inherit::All),
        "core" => Ok(Inherit::Core),
        "none" => Ok(Inherit::None),
        _ => Err(place.fault("should be `all`, `core` or `none`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(policy: &EnvironmentPolicy, keeps_secrets: bool) -> String {
        let variables = ["PATH", "HOME", "GITHUB_TOKEN", "api_key", "MONKEY", "EDITOR", "LC_ALL"];
        let variables = variables.map(|name| (name.into(), "x".into()));
        let kept = policy.apply(variables, keeps_secrets);
        kept.iter().map(|(name, _)| name.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_step_takes_away_or_adds() {
        let policy = EnvironmentPolicy::default();
        assert_eq!(names(&policy, true), "PATH HOME GITHUB_TOKEN api_key MONKEY EDITOR LC_ALL");
        assert_eq!(names(&policy, false), "PATH HOME EDITOR LC_ALL");
        let core = EnvironmentPolicy { inherit: Some(Inherit::Core), ..policy.clone() };
        assert_eq!(names(&core, false), "PATH HOME LC_ALL");
        let none = EnvironmentPolicy {
            inherit: Some(Inherit::None),
            set: [("MY_TOKEN".to_owned(), "1".to_owned())].into(),
            ..policy.clone()
        };
        assert_eq!(names(&none, false), "MY_TOKEN", "what is set is wanted");
        let exclude = EnvironmentPolicy { exclude: vec!["edit*".into()], ..policy.clone() };
        assert_eq!(names(&exclude, false), "PATH HOME LC_ALL");
        let only = EnvironmentPolicy {
            include_only: vec!["p?th".into(), "*_all".into()],
            keeps_secrets: Some(false),
            ..policy.clone()
        };
        assert_eq!(names(&only, true), "PATH LC_ALL");
        let kept = EnvironmentPolicy { keeps_secrets: Some(true), ..policy };
        assert_eq!(names(&kept, false), "PATH HOME GITHUB_TOKEN api_key MONKEY EDITOR LC_ALL");
    }

    #[test]
    fn what_is_set_replaces_what_is_inherited() {
        let policy = EnvironmentPolicy {
            set: [("PATH".to_owned(), "/bin".to_owned())].into(),
            ..EnvironmentPolicy::default()
        };
        let kept = policy.apply([("PATH".into(), "/evil".into())], true);
        assert_eq!(kept, [(OsString::from("PATH"), OsString::from("/bin"))]);
    }

    #[test]
    fn patterns_are_globs_of_the_whole_name() {
        for (pattern, name, wanted) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("A?C", "abc", true),
            ("A?C", "ac", false),
            ("*KEY*", "KEY", true),
            ("*KEY*", "MONKEYS", true),
            ("*KEY", "KEYS", false),
            ("A*B*C", "axxbxbxc", true),
            ("A*B*C", "axxbxbx", false),
            ("**", "x", true),
            ("*a*a*a*a*a*a*a*b", &"a".repeat(5000), false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), wanted, "{pattern} {name}");
        }
    }
}
