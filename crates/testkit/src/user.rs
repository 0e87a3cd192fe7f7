//! Somebody else to run as: root's tests prove little about what an ordinary user gets.

use std::ffi::{OsStr, OsString};

/// A numeric user and group; no passwd entry has to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "tests build their own")]
pub struct OrdinaryUser {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Whether the test runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// An unprivileged user. As root: one that nobody else uses (20000 to 59999, the same throughout
/// this process and very likely another one in the next); as an ordinary user: the user itself.
#[must_use]
pub fn ordinary_user() -> OrdinaryUser {
    if is_root() {
        let id = 20_000 + std::process::id() % 40_000;
        OrdinaryUser { uid: id, gid: id }
    } else {
        OrdinaryUser {
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
        }
    }
}

/// The words that run `argv` as `uid` (and the group of the same number), without supplementary
/// groups or inheritable capabilities. Nothing is wrapped when `uid` already is who runs the test.
/// The environment passes through: set `HOME` and `TMPDIR` for the user where they matter.
#[must_use]
pub fn as_user<W: AsRef<OsStr>>(argv: impl IntoIterator<Item = W>, uid: u32) -> Vec<OsString> {
    let words = argv.into_iter().map(|word| word.as_ref().to_owned());
    if rustix::process::getuid().as_raw() == uid {
        return words.collect();
    }
    let identity = [format!("--reuid={uid}"), format!("--regid={uid}")].map(OsString::from);
    let rest = ["--clear-groups", "--inh-caps=-all", "--"].map(OsString::from);
    std::iter::once(OsString::from("/usr/bin/setpriv"))
        .chain(identity)
        .chain(rest)
        .chain(words)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn as_user_runs_without_any_capability() {
        let user = ordinary_user();
        let script = "id -u; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status";
        let argv = as_user(["/bin/sh", "-c", script], user.uid);
        let (program, rest) = argv.split_first().unwrap();
        let output = Command::new(program).args(rest).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(user.uid.to_string().as_str()), "{text}");
        assert!(lines.all(|line| line.ends_with("0000000000000000")), "{text}");
    }
}
