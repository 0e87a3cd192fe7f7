//! From a written profile to absolute rules.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::error::ResolveError;
use crate::native;
use crate::policy::{DenyGlob, FileSystemPolicy, Mode, Place, Rule, SandboxPolicy};
use crate::profile::{
    Access, Entry, EntryPath, FileSystem, Missing, Network, PermissionProfile,
    RestrictedFileSystem, Special,
};

/// What a dynamically linked program needs to start.
const MINIMAL: [&str; 8] =
    ["/bin", "/sbin", "/usr", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw"];

/// What `slash_tmp` stands for.
const SLASH_TMP: &str = "/tmp";

/// What the place where the command runs adds to a profile.
///
/// Everything is passed in: nothing is read from the environment or the file system. Symbolic
/// links are compared as text, so a caller that wants `$TMPDIR` and `$HOME` compared by what they
/// point to passes them resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolveContext {
    /// The working directory (`sandboxCwd`): absolute.
    pub cwd: PathBuf,
    /// `$TMPDIR`, only if it exists; `None` makes `tmpdir` entries grant nothing.
    pub tmpdir: Option<PathBuf>,
    /// The user's home directory, which `$TMPDIR` may not cover.
    pub home: Option<PathBuf>,
    /// Directories to make readable in addition; never where something is denied.
    pub readable_roots: Vec<PathBuf>,
    /// Restrict the network whatever the profile says.
    pub disable_network: bool,
}

impl ResolveContext {
    /// A context with only a working directory.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: cwd.into(), ..Self::default() }
    }
}

impl PermissionProfile {
    /// Turns the profile into absolute rules.
    ///
    /// # Errors
    ///
    /// A path that is not absolute or contains `..`; something that cannot be enforced (a glob
    /// that grants, a deny of an unknown special place); a `$TMPDIR` that covers the home
    /// directory, the working directory or the path of another rule (`TMPDIR=/tmp` together with
    /// `slash_tmp` excepted) or would open a denied or protected place;
    /// `disable_network` with a disabled profile.
    pub fn resolve(&self, context: &ResolveContext) -> Result<SandboxPolicy, ResolveError> {
        let cwd = absolute("working directory", &context.cwd)?;
        let mut policy = match self {
            Self::Disabled if context.disable_network => {
                return Err(ResolveError::DisableNetworkOfDisabled);
            }
            Self::Disabled => {
                let mut policy =
                    SandboxPolicy::new(FileSystemPolicy::Unrestricted, Network::Enabled, cwd);
                policy.mode = Mode::Disabled;
                policy
            }
            Self::External { network } => {
                let root = Rule::new("/", Access::Read).with_origin("external");
                let rules = FileSystemPolicy::Restricted(vec![root]);
                let mut policy = SandboxPolicy::new(rules, network.clone(), cwd);
                policy.mode = Mode::External;
                policy
            }
            Self::Managed { file_system: FileSystem::Unrestricted, network } => {
                SandboxPolicy::new(FileSystemPolicy::Unrestricted, network.clone(), cwd)
            }
            Self::Managed { file_system: FileSystem::Restricted(restricted), network } => {
                let mut resolver = Resolver::new(&cwd, restricted.glob_scan_max_depth);
                resolver.add_entries(restricted, context)?;
                resolver.into_policy(network.clone(), cwd.clone())
            }
        };
        add_readable_roots(&mut policy, &context.readable_roots)?;
        if context.disable_network {
            policy.network = Network::Restricted;
        }
        Ok(policy)
    }
}

/// Rules by path while entries are added; one rule a path at any time.
struct Resolver<'a> {
    cwd: &'a Path,
    max_depth: Option<NonZeroUsize>,
    rules: BTreeMap<Vec<u8>, Rule>,
    deny_globs: Vec<DenyGlob>,
    ignored: Vec<String>,
    /// What `slash_tmp` entries grant.
    slash_tmp: Option<Access>,
}

impl<'a> Resolver<'a> {
    fn new(cwd: &'a Path, max_depth: Option<NonZeroUsize>) -> Self {
        let (rules, deny_globs, ignored) = Default::default();
        Self { cwd, max_depth, rules, deny_globs, ignored, slash_tmp: None }
    }

    fn add_entries(
        &mut self,
        restricted: &RestrictedFileSystem,
        context: &ResolveContext,
    ) -> Result<(), ResolveError> {
        // `$TMPDIR` is judged against all other rules, so it comes last.
        let mut temporary = Vec::new();
        for (index, entry) in restricted.entries.iter().enumerate() {
            let origin = format!("entries[{index}]");
            if entry.path == EntryPath::Special(Special::Tmpdir) {
                temporary.push((entry, origin));
            } else {
                self.add_entry(entry, origin)?;
            }
        }
        let Some(tmpdir) = &context.tmpdir else { return Ok(()) };
        let mut rules = Vec::new();
        for (entry, origin) in temporary {
            let path = absolute("TMPDIR", tmpdir)?;
            let rule = Rule::new(path, entry.access).with_missing(entry.missing);
            let rule = rule.with_origin(origin).with_place(Place::Tmpdir);
            self.check_tmpdir(&rule, context)?;
            rules.push(rule);
        }
        rules.into_iter().for_each(|rule| self.add(rule));
        Ok(())
    }

    fn add_entry(&mut self, entry: &Entry, origin: String) -> Result<(), ResolveError> {
        let rule = |path| Rule::new(path, entry.access).with_missing(entry.missing);
        match &entry.path {
            EntryPath::Path(path) => {
                let path = absolute(&origin, Path::new(path))?;
                self.add(rule(path).with_origin(origin));
            }
            EntryPath::Glob(pattern) => self.add_glob(pattern, entry.access, origin)?,
            EntryPath::Special(Special::Root) => self.add(rule("/".into()).with_origin(origin)),
            EntryPath::Special(Special::SlashTmp) => {
                self.slash_tmp = self.slash_tmp.max(Some(entry.access));
                self.add(rule(SLASH_TMP.into()).with_origin(origin).with_place(Place::SlashTmp));
            }
            EntryPath::Special(Special::Minimal) => {
                for path in MINIMAL {
                    let rule = rule(path.into()).with_missing(Missing::Skip);
                    self.add(rule.with_origin(origin.clone()));
                }
            }
            EntryPath::Special(Special::ProjectRoots { subpath }) => {
                let path = match subpath {
                    None => self.cwd.to_path_buf(),
                    Some(subpath) => join(self.cwd, subpath, &origin)?,
                };
                self.add(rule(path).with_origin(origin));
            }
            // Added by `add_entries`, after everything else.
            EntryPath::Special(Special::Tmpdir) => {}
            EntryPath::Special(Special::Unknown { path, .. }) => {
                if entry.access == Access::Deny {
                    return Err(ResolveError::DenyUnknownSpecial { origin, name: path.clone() });
                }
                let access = entry.access;
                self.ignored.push(format!("{origin}: unknown special path {path:?} ({access})"));
            }
        }
        Ok(())
    }

    /// At equal path the stronger access wins; a deny keeps the stronger missing behaviour of the
    /// two, since it grants nothing that the weaker rule withheld.
    fn add(&mut self, rule: Rule) {
        let key = native::sort_key(&rule.path);
        let Some(present) = self.rules.get_mut(&key) else {
            self.rules.insert(key, rule);
            return;
        };
        let strictest = present.missing.max(rule.missing);
        let equal = present.access == rule.access;
        if equal && present.place != rule.place {
            present.place = match (present.place, rule.place) {
                (Place::Named, _) | (_, Place::Named) => Place::Named,
                _ => Place::SlashTmp,
            };
        }
        if rule.access > present.access {
            *present = rule;
        }
        if equal || present.access == Access::Deny {
            present.missing = strictest;
        }
    }

    fn add_glob(
        &mut self,
        pattern: &str,
        access: Access,
        origin: String,
    ) -> Result<(), ResolveError> {
        if access != Access::Deny {
            let (pattern, access) = (pattern.to_owned(), access.as_str());
            return Err(ResolveError::GrantingGlob { origin, pattern, access });
        }
        native::glob(pattern).map_err(|reason| invalid(&origin, Path::new(pattern), reason))?;
        let start = if pattern.starts_with('/') { Path::new("/") } else { self.cwd };
        let mut glob = split_glob(start, pattern);
        (glob.max_depth, glob.origin) = (self.max_depth, origin);
        self.deny_globs.push(glob);
        Ok(())
    }

    /// `$TMPDIR` comes from the environment of whoever starts the launcher, so it may not reach
    /// what the profile itself decided.
    fn check_tmpdir(&self, rule: &Rule, context: &ResolveContext) -> Result<(), ResolveError> {
        let by_slash_tmp = self.slash_tmp.is_some_and(|access| access >= rule.access);
        if by_slash_tmp && rule.path == Path::new(SLASH_TMP) {
            return Ok(());
        }
        let others = self.rules.values().map(|other| (other.origin.as_str(), &other.path));
        let home = context.home.iter().map(|home| ("HOME", home));
        let cwd = self.cwd.to_path_buf();
        let covered = home
            .chain([("the working directory", &cwd)])
            .chain(others)
            .find(|(_, path)| path.starts_with(&rule.path));
        if let Some((covers, covered)) = covered {
            return Err(ResolveError::TmpdirTooBroad {
                origin: rule.origin.clone(),
                tmpdir: rule.path.clone(),
                covers: covers.to_owned(),
                covered: covered.clone(),
            });
        }
        let opened = self.carve_out(&rule.path).filter(|protected| match rule.access {
            Access::Write => true,
            Access::Read => protected.access == Access::Deny,
            Access::Deny => false,
        });
        match opened {
            None => Ok(()),
            Some(protected) => Err(ResolveError::TmpdirProtected {
                origin: rule.origin.clone(),
                tmpdir: rule.path.clone(),
                protected_by: protected.origin.clone(),
                protected: protected.path.clone(),
            }),
        }
    }

    /// The rule above `path` that denies it, or makes it read-only inside something writable.
    /// A deny of `/` is how a profile says that it lists everything it grants: no carve-out.
    fn carve_out(&self, path: &Path) -> Option<&Rule> {
        let mut writable_above = false;
        let mut protecting = None;
        // A path's ancestors are sorted before it, so this goes from shallow to deep.
        for rule in self.rules.values().filter(|rule| path.starts_with(&rule.path)) {
            match rule.access {
                Access::Write => (writable_above, protecting) = (true, None),
                Access::Read => protecting = writable_above.then_some(rule),
                Access::Deny => protecting = rule.path.parent().map(|_| rule),
            }
        }
        protecting
    }

    fn into_policy(self, network: Network, cwd: PathBuf) -> SandboxPolicy {
        let rules = shallow_to_deep(self.rules.into_values().collect());
        let mut policy = SandboxPolicy::new(FileSystemPolicy::Restricted(rules), network, cwd);
        (policy.deny_globs, policy.ignored) = (self.deny_globs, self.ignored);
        policy
    }
}

/// A readable root adds reading where there was none: it neither opens what is denied nor narrows
/// what is writable.
fn add_readable_roots(policy: &mut SandboxPolicy, roots: &[PathBuf]) -> Result<(), ResolveError> {
    for root in roots {
        let path = absolute("readable root", root)?;
        match policy.access(&path) {
            Some(Access::Read | Access::Write) => {}
            Some(Access::Deny) => {
                policy.ignored.push(format!("readable root {path:?}: the profile denies it"));
            }
            None => {
                if let FileSystemPolicy::Restricted(rules) = &mut policy.file_system {
                    let rule = Rule::new(path, Access::Read).with_missing(Missing::Skip);
                    rules.push(rule.with_origin("readable root"));
                    *rules = shallow_to_deep(std::mem::take(rules));
                }
            }
        }
    }
    Ok(())
}

fn shallow_to_deep(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.sort_by_cached_key(|rule| {
        let key = native::sort_key(&rule.path);
        let depth = if key.is_empty() { 0 } else { 1 + key.iter().filter(|b| **b == 0).count() };
        (depth, key)
    });
    rules
}

/// Moves the components that mean one name from the pattern to the base, but for the last.
fn split_glob(start: &Path, pattern: &str) -> DenyGlob {
    let parts = pattern.split('/').filter(|part| !part.is_empty() && *part != ".");
    let mut rest: Vec<&str> = parts.collect();
    let candidates = rest.iter().take(rest.len().saturating_sub(1));
    let literals: Vec<String> = candidates.map_while(|part| literal(part)).collect();
    rest.drain(..literals.len());
    let mut base = start.to_path_buf();
    base.extend(literals);
    DenyGlob::new(base, rest.join("/"))
}

/// The only name that a glob component matches, if there is only one: classes of one character
/// (`[*]`) and escapes (`\*`) stand for that character.
fn literal(component: &str) -> Option<String> {
    let mut name = String::with_capacity(component.len());
    let mut rest = component.chars();
    while let Some(character) = rest.next() {
        let meant = match character {
            '*' | '?' | ']' | '{' | '}' => return None,
            '\\' => rest.next()?,
            '[' => {
                let meant = rest.next()?;
                if matches!(meant, '!' | '^') || rest.next() != Some(']') {
                    return None;
                }
                meant
            }
            plain => plain,
        };
        name.push(meant);
    }
    // A name that would not be one component stays in the pattern.
    (!matches!(name.as_str(), "" | "." | "..")).then_some(name)
}

fn join(base: &Path, subpath: &str, origin: &str) -> Result<PathBuf, ResolveError> {
    let below =
        native::relative(subpath).map_err(|reason| invalid(origin, Path::new(subpath), reason))?;
    // Joining an empty path would leave a trailing separator.
    Ok(base.join(below).components().collect())
}

fn absolute(origin: &str, path: &Path) -> Result<PathBuf, ResolveError> {
    native::absolute(path).map_err(|reason| invalid(origin, path, reason))
}

fn invalid(origin: &str, path: &Path, reason: &'static str) -> ResolveError {
    ResolveError::InvalidPath { origin: origin.to_owned(), path: path.to_path_buf(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str, access: Access) -> Entry {
        Entry::new(EntryPath::Path(path.to_owned()), access)
    }

    fn special(special: Special, access: Access) -> Entry {
        Entry::new(EntryPath::Special(special), access)
    }

    fn resolve(entries: Vec<Entry>, context: &ResolveContext) -> SandboxPolicy {
        let file_system = FileSystem::Restricted(RestrictedFileSystem::new(entries));
        let network = Network::Restricted;
        PermissionProfile::Managed { file_system, network }.resolve(context).unwrap()
    }

    /// `path access missing origin`, one rule a line.
    fn rules(policy: &SandboxPolicy) -> String {
        let FileSystemPolicy::Restricted(rules) = &policy.file_system else { unreachable!() };
        let lines = rules.iter().map(|rule| {
            format!("{} {} {:?} {}", rule.path.display(), rule.access, rule.missing, rule.origin)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn equal_paths_merge_to_the_stronger_access_and_the_stricter_missing_behaviour() {
        let context = ResolveContext::new("/work");
        let policy = resolve(
            vec![
                path("/a", Access::Read).skip_missing(),
                path("/a/.", Access::Read),
                path("/b", Access::Write).skip_missing(),
                path("/b/", Access::Read),
                path("/c", Access::Read),
                path("//c", Access::Deny).skip_missing(),
                special(Special::ProjectRoots { subpath: Some("./x/".into()) }, Access::Write),
                special(Special::ProjectRoots { subpath: Some(".".into()) }, Access::Read),
            ],
            &context,
        );
        insta::assert_snapshot!(rules(&policy), @r"
    /a read Enforce entries[0]
    /b write Skip entries[2]
    /c deny Enforce entries[5]
    /work read Enforce entries[7]
    /work/x write Enforce entries[6]
    ");
    }

    #[test]
    fn special_places_become_absolute_rules() {
        let mut context = ResolveContext::new("/work");
        context.tmpdir = Some("/var/tmp/session".into());
        let policy = resolve(
            vec![
                special(Special::Tmpdir, Access::Write),
                special(Special::Minimal, Access::Read),
                special(Special::SlashTmp, Access::Write),
                special(Special::Root, Access::Deny),
                special(Special::Unknown { path: ":new".into(), subpath: None }, Access::Read),
            ],
            &context,
        );
        insta::assert_snapshot!(rules(&policy), @r"
    / deny Enforce entries[3]
    /bin read Skip entries[1]
    /etc read Skip entries[1]
    /lib read Skip entries[1]
    /lib64 read Skip entries[1]
    /sbin read Skip entries[1]
    /tmp write Enforce entries[2]
    /usr read Skip entries[1]
    /nix/store read Skip entries[1]
    /run/current-system/sw read Skip entries[1]
    /var/tmp/session write Enforce entries[0]
    ");
        insta::assert_snapshot!(policy.ignored.join("\n"), @r#"
    entries[4]: unknown special path ":new" (read)
    "#);
    }

    #[test]
    fn a_glob_is_split_where_its_pattern_starts() {
        let split = |pattern: &str| {
            let start = Path::new(if pattern.starts_with('/') { "/" } else { "/work [1]" });
            let glob = split_glob(start, pattern);
            format!("{} | {}", glob.base.display(), glob.pattern)
        };
        let patterns = [
            "**/*.env",
            "a/b/*.env",
            "/srv/.env",
            "/.env",
            "/srv/[[]x[]]/*.key",
            "/srv/\\*/x",
            "/srv/[ab]/x/*",
            "/srv/{a,b}/x",
            "./a//b/./c*",
            "/srv/[.][.]/x",
            "/srv/*/",
        ];
        insta::assert_snapshot!(patterns.map(split).join("\n"), @r"
    /work [1] | **/*.env
    /work [1]/a/b | *.env
    /srv | .env
    / | .env
    /srv/[x] | *.key
    /srv/* | x
    /srv | [ab]/x/*
    /srv | {a,b}/x
    /work [1]/a/b | c*
    /srv | [.][.]/x
    /srv | *
    ");
    }
}
