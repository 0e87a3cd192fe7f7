//! From a policy's lexical rules to rules on real paths: symbolic links followed once, protections added, places that
//! must not come into being reserved. Reads the file system, changes nothing.

mod glob;
mod path;
mod protect;
mod repository;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use plenipo_policy::{Access, FileSystemPolicy, Missing, Place, Rule, SandboxPolicy};

use crate::error::{ErrorKind, LaunchError};
use crate::protections::Protections;
use crate::tree::{Grant, GrantTree, Kind, Source, is_at_or_below};

use path::{Looks, Walk};

/// A policy on real paths.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) tree: GrantTree,
    /// Missing paths that get a placeholder, because the command could create them.
    pub(crate) reservations: Vec<PathBuf>,
    /// Symbolic links that a profile without a readable root needs, as (place, text).
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// What a person should know: ignored rules, hard links to protected files.
    pub(crate) notes: Vec<String>,
    /// Links followed by a rule or by the base of a glob: link, rule, origin. Each is checked once all rules are known.
    followed: Vec<(PathBuf, PathBuf, String)>,
    /// Whether the policy denies something of a process outside, which a sandbox with its own `/proc` does not have.
    pub(crate) denies_processes: bool,
    /// The command's working directory, its symbolic links followed.
    pub(crate) cwd: PathBuf,
    looks: Looks,
}

/// Resolves `policy` against the file system as it is now. With `strict_globs` a glob that says nothing about what appears
/// later is refused.
pub(crate) fn resolve(
    policy: &SandboxPolicy,
    protections: &Protections,
    strict_globs: bool,
) -> Result<Resolved, LaunchError> {
    let mut resolved = Resolved::default();
    let rules = profile_rules(policy);
    resolved.notes.extend(policy.ignored.iter().cloned());
    // Grants first: what narrows them has to know where the command could have put a symbolic link.
    for access in [Access::Write, Access::Read, Access::Deny] {
        for rule in rules.iter().filter(|rule| rule.access == access) {
            resolved.add_rule(rule, Source::Profile)?;
        }
    }
    resolved.reject_wide_temporary_directory(&rules, &policy.cwd)?;
    protect::names(&mut resolved, &rules, &policy.cwd)?;
    let (denied, notes) = glob::expand(&policy.deny_globs, &policy.cwd, strict_globs)?;
    resolved.notes.extend(notes);
    for deny in denied {
        // A match that is a link itself denies its target, and may be replaced: there is nothing behind it to reach.
        let walked = resolved.looks.walk(&deny.path)?;
        resolved.place(&deny, walked, Source::Profile);
    }
    for glob in &policy.deny_globs {
        let walked = resolved.looks.walk(&glob.base)?;
        resolved.remember_links(&walked, &glob.base, &glob.origin);
    }
    protect::enforcer(&mut resolved, protections)?;
    resolved.tree.narrow_below_enforcer();
    resolved.reject_links_in_writable_places()?;
    resolved.cwd = resolved.working_directory(&policy.cwd)?;
    Ok(resolved)
}

fn profile_rules(policy: &SandboxPolicy) -> Cow<'_, [Rule]> {
    match &policy.file_system {
        FileSystemPolicy::Unrestricted => {
            vec![Rule::new("/", Access::Write).with_origin("unrestricted file system")].into()
        }
        FileSystemPolicy::Restricted(rules) => rules.into(),
    }
}

impl Resolved {
    fn add_rule(&mut self, rule: &Rule, source: Source) -> Result<(), LaunchError> {
        let walked = self.looks.walk(&rule.path)?;
        self.remember_links(&walked, &rule.path, &rule.origin);
        self.place(rule, walked, source);
        Ok(())
    }

    fn place(&mut self, rule: &Rule, walked: Walk, source: Source) {
        self.links.extend(walked.links.iter().cloned());
        if let Some(why) = own_place(&walked.real, rule.access) {
            let of_process =
                is_at_or_below(&walked.real, Path::new("/proc")) && rule.access == Access::Deny;
            self.denies_processes = self.denies_processes || of_process;
            self.notes.push(format!("the rule on {} is not applied: {why}", rule.path.display()));
            return;
        }
        let Some(found) = walked.found else { return self.missing(rule, &walked, source) };
        let narrows =
            || rule.access == Access::Deny || self.would_narrow(&walked.real, rule.access);
        if found.placeholder && narrows() {
            return self.reserve(walked.real, rule, source);
        }
        if rule.access != Access::Write && found.kind == Kind::File && found.links > 1 {
            self.notes.push(format!(
                "{} has {} hard links; the other names are not covered by its rule",
                walked.real.display(),
                found.links
            ));
        }
        let grant = Grant {
            access: rule.access,
            kind: found.kind,
            // The sandbox's own /dev and /proc hold other files of the same names.
            identity: (!is_own_tree(&walked.real)).then_some(found.identity),
            source,
            origin: rule.origin.clone(),
            temporary: rule.place != Place::Named,
        };
        self.tree.add(walked.real, grant);
    }

    /// Whether a rule that reads takes something away at `place`.
    fn would_narrow(&self, place: &Path, access: Access) -> bool {
        access == Access::Read && self.tree.access(place) == Some(Access::Write)
    }

    /// A missing path is enforced where the command could make it; elsewhere there is nothing to do.
    fn missing(&mut self, rule: &Rule, walked: &Walk, source: Source) {
        let could_appear = self.tree.access(&walked.parent) == Some(Access::Write);
        // One that another launch keeps for the same rule. (A granted directory that looks like one is what it is.)
        let shared = walked.parent_is_placeholder && self.tree.at(&walked.parent).is_none();
        if walked.out_of_reach {
            self.notes.push(format!("{} is out of reach of this user", rule.path.display()));
        } else if rule.access == Access::Write {
            self.notes
                .push(format!("{} does not exist and is not made writable", rule.path.display()));
        } else if rule.missing == Missing::Enforce && could_appear {
            let place = if shared { &walked.parent } else { &walked.first_missing };
            self.reserve(place.clone(), rule, source);
        }
    }

    fn reserve(&mut self, place: PathBuf, rule: &Rule, source: Source) {
        let grant = Grant {
            access: rule.access,
            kind: Kind::Directory,
            identity: None,
            source,
            origin: rule.origin.clone(),
            temporary: false,
        };
        self.tree.add(place.clone(), grant);
        if !self.reservations.contains(&place) {
            self.reservations.push(place);
        }
    }

    fn working_directory(&mut self, cwd: &Path) -> Result<PathBuf, LaunchError> {
        let walked = self.looks.walk(cwd)?;
        let fault = match walked.found {
            None => "is not there",
            Some(found) if found.kind != Kind::Directory => "is not a directory",
            Some(_) if matches!(self.tree.access(&walked.real), None | Some(Access::Deny)) => {
                "is not readable under the policy"
            }
            Some(_) => return Ok(walked.real),
        };
        let message = format!("the working directory {} {fault}", cwd.display());
        Err(LaunchError::new(ErrorKind::Invalid, message))
    }

    /// A rule through a symbolic link that an earlier command could have replaced means something else each time.
    fn reject_links_in_writable_places(&self) -> Result<(), LaunchError> {
        self.followed
            .iter()
            .try_for_each(|(link, rule, origin)| self.reject_link(link, rule, origin))
    }

    /// The policy compared paths as text; links may make more of them equal.
    fn reject_wide_temporary_directory(
        &mut self,
        rules: &[Rule],
        cwd: &Path,
    ) -> Result<(), LaunchError> {
        let Some(temporary) = rules.iter().find(|rule| rule.place == Place::Tmpdir) else {
            return Ok(());
        };
        let real = self.looks.walk(&temporary.path)?.real;
        let named = rules.iter().filter(|rule| rule.place == Place::Named);
        for path in named.map(|rule| rule.path.as_path()).chain([cwd]) {
            let covered = self.looks.walk(path)?.real;
            if covered.starts_with(&real) && self.tree.at(&real).is_some_and(|at| at.temporary) {
                let message = format!(
                    "TMPDIR {} equals or contains {}",
                    temporary.path.display(),
                    path.display()
                );
                return Err(LaunchError::unenforceable(message)
                    .with_hint("set TMPDIR to a directory of its own, or unset it"));
            }
        }
        Ok(())
    }

    fn remember_links(&mut self, walked: &Walk, rule: &Path, origin: &str) {
        for (link, _) in &walked.links {
            self.followed.push((link.clone(), rule.to_path_buf(), origin.to_owned()));
        }
    }

    fn reject_link(&self, link: &Path, rule: &Path, origin: &str) -> Result<(), LaunchError> {
        let writable = link.parent().is_some_and(|p| self.tree.access(p) == Some(Access::Write));
        if !writable || self.tree.access(link) != Some(Access::Write) {
            return Ok(());
        }
        let message = format!(
            "the rule on {} ({origin}) leads through the symbolic link {}, which a sandboxed command can replace",
            rule.display(),
            link.display()
        );
        Err(LaunchError::unenforceable(message).with_hint(
            "name the link's target in the profile, or move the link out of writable places",
        ))
    }
}

/// What the sandbox's own `/dev` hides of the host's, and must go on hiding.
const OWN_DEVICES: [&str; 8] = [
    "/dev",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts",
];

fn is_own_tree(real: &Path) -> bool {
    let is_in = |place| is_at_or_below(real, Path::new(place));
    (is_in("/dev") && !is_in("/dev/shm")) || is_in("/proc")
}

/// Why a rule on `real` has nothing to be applied to: the sandbox has a `/dev` and a `/proc` of its own, and showing the
/// host's would undo that. The host's shared memory can be granted.
fn own_place(real: &Path, access: Access) -> Option<&'static str> {
    if !is_own_tree(real) {
        return None;
    }
    let parts: Vec<&[u8]> = real.iter().map(std::ffi::OsStr::as_encoded_bytes).collect();
    let inside = match parts.as_slice() {
        [_, b"dev", ..] => OWN_DEVICES.iter().any(|own| real == Path::new(own)),
        [_, b"proc"] => true,
        [_, b"proc", name, ..] => !name.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    match (access, inside) {
        (Access::Deny, true) => None,
        (Access::Deny, false) => Some("the sandbox does not have it"),
        _ => Some("the sandbox has a /dev and a /proc of its own"),
    }
}

#[cfg(test)]
mod fuzz;
