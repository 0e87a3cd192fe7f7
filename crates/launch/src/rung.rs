//! The rungs of the ladder: how a sandbox can be built on a machine, strongest first.

use serde::{Deserialize, Serialize};

/// How a sandbox was built: what the kernel, the container and the caller's rights allowed.
///
/// The first three hold the same and count as equal; each of the others holds less, and has to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rung {
    /// User, mount, PID, IPC (and network) namespaces, Landlock and seccomp.
    Full,
    /// The same without a user namespace, by a caller with `CAP_SYS_ADMIN`; every capability is dropped afterwards.
    FullPrivileged,
    /// Namespaces and mounts by `/usr/bin/bwrap`, where the machine lets that program alone make them; Landlock and
    /// seccomp by this program inside.
    Bwrap,
    /// As [`Rung::Full`], with the surrounding container's `/proc`, read-only: foreign processes are visible.
    NoProc,
    /// Landlock and seccomp alone, for policies that they can express.
    Landlock,
    /// The profile is `disabled`: nothing is enforced.
    None,
}

/// Every rung that enforces something, best first.
const ALL: [Rung; 5] =
    [Rung::FullPrivileged, Rung::Full, Rung::Bwrap, Rung::NoProc, Rung::Landlock];

impl Rung {
    /// Its name in reports, options and configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::FullPrivileged => "full-privileged",
            Self::Bwrap => "bwrap",
            Self::NoProc => "no-proc",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }

    /// The enforcing rung of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|rung| rung.name() == name)
    }

    /// Whether this rung holds at least what `minimum` holds.
    pub fn suffices(self, minimum: Self) -> bool {
        self.strength() >= minimum.strength()
    }

    /// The stronger of two rungs; the first of equal ones.
    #[must_use]
    pub fn or_stronger(self, other: Self) -> Self {
        if self.suffices(other) { self } else { other }
    }

    fn strength(self) -> u8 {
        match self {
            Self::Full | Self::FullPrivileged | Self::Bwrap => 3,
            Self::NoProc => 2,
            Self::Landlock => 1,
            Self::None => 0,
        }
    }
}

/// The order in which rungs are tried. With `CAP_SYS_ADMIN` no user namespace is needed.
pub(crate) fn order(capable: bool) -> &'static [Rung] {
    if capable { &ALL } else { ALL.split_first().map_or(&ALL[..], |(_, rest)| rest) }
}

/// A rung that was tried and is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RungAttempt {
    /// Which.
    pub rung: Rung,
    /// What is missing.
    pub why: String,
    /// What a person can do about it, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_strong_rungs_are_equal_and_the_weak_ones_are_not() {
        let strong = [Rung::Full, Rung::FullPrivileged, Rung::Bwrap];
        for rung in strong {
            assert!(strong.iter().all(|other| rung.suffices(*other)));
            assert!(!Rung::NoProc.suffices(rung));
            assert!(rung.suffices(Rung::NoProc));
        }
        assert!(!Rung::Landlock.suffices(Rung::NoProc));
        assert!(!Rung::None.suffices(Rung::Landlock));
    }

    #[test]
    fn a_minimum_is_only_ever_raised() {
        assert_eq!(Rung::NoProc.or_stronger(Rung::Landlock), Rung::NoProc);
        assert_eq!(Rung::Landlock.or_stronger(Rung::Bwrap), Rung::Bwrap);
        assert_eq!(Rung::Full.or_stronger(Rung::Bwrap), Rung::Full);
    }

    #[test]
    fn names_are_those_of_the_report() {
        for rung in ALL {
            assert_eq!(Rung::from_name(rung.name()), Some(rung));
            assert_eq!(serde_json::to_value(rung).unwrap(), rung.name());
        }
        assert_eq!(Rung::from_name("none"), None);
        assert_eq!(Rung::from_name("Full"), None);
    }

    #[test]
    fn each_weaker_rung_is_tried_after_every_stronger_one() {
        for capable in [false, true] {
            let order = order(capable);
            assert!(order.windows(2).all(|pair| pair[0].suffices(pair[1])));
            assert_eq!(order.contains(&Rung::FullPrivileged), capable);
        }
    }
}
