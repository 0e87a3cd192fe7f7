//! The members of a state, one function an object.

use std::num::NonZeroUsize;
use std::path::Path;

use super::State;
use super::file_uri;
use super::members::{Located, Members};
use super::tree::{Tree, quote};
use crate::error::{StateError, StateErrorKind};
use crate::native;
use crate::network::{HostAccess, HostPattern, Hosts, MAX_PATTERNS, PatternError};
use crate::profile::{
    Access, Entry, EntryPath, FileSystem, Missing, Network, PermissionProfile,
    RestrictedFileSystem, Special,
};

const MAX_ENTRIES: usize = 8192;
/// The outer member with what a restricted network still reaches. A launcher that does not know it reaches nothing.
pub(super) const LIMITED_NETWORK: &str = "plenipoNetwork";

pub(super) fn state(tree: Tree<'_>) -> Result<State, StateError> {
    let mut members = Located::root(tree).object()?;
    let mut profile = profile(members.required("permissionProfile")?)?;
    if let Some(limited) = members.optional(LIMITED_NETWORK) {
        limit_network(&mut profile, limited)?;
    }
    let uri = members.required("sandboxCwd")?;
    let cwd = file_uri::decode(uri.text()?)
        .map_err(|reason| uri.fault(StateErrorKind::InvalidPath, reason))?;
    let executable = members.optional("codexLinuxSandboxExe").map(Located::text_or_null);
    let legacy_landlock = members.optional("useLegacyLandlock").map(Located::boolean);
    let use_mxc = members.optional("useMxc").map(Located::boolean);
    Ok(State {
        profile,
        cwd,
        linux_sandbox_executable: executable.transpose()?.flatten(),
        legacy_landlock: legacy_landlock.transpose()?.unwrap_or(false),
        use_mxc: use_mxc.transpose()?.unwrap_or(false),
        unknown_members: members.into_names(),
    })
}

#[derive(Clone, Copy)]
enum ProfileKind {
    Disabled,
    External,
    Managed,
}

fn profile(located: Located<'_>) -> Result<PermissionProfile, StateError> {
    let mut members = located.object()?;
    if members.peek("type").is_none() && matches!(members.peek("network"), Some(Tree::Object(_))) {
        return untagged_profile(members);
    }
    let kind = members.required("type")?.word(
        &[
            ("disabled", ProfileKind::Disabled),
            ("external", ProfileKind::External),
            ("managed", ProfileKind::Managed),
        ],
        3,
    )?;
    let profile = match kind {
        ProfileKind::Disabled => PermissionProfile::Disabled,
        ProfileKind::External => {
            PermissionProfile::External { network: network(&members.required("network")?)? }
        }
        ProfileKind::Managed => PermissionProfile::Managed {
            file_system: file_system(members.required("file_system")?)?,
            network: network(&members.required("network")?)?,
        },
    };
    members.finish()?;
    Ok(profile)
}

/// The older form: `{"file_system":{"entries":[…]},"network":{"enabled":bool}}`.
fn untagged_profile(mut members: Members<'_>) -> Result<PermissionProfile, StateError> {
    let mut inner = members.required("file_system")?.object()?;
    let file_system = FileSystem::Restricted(restricted(&mut inner)?);
    inner.finish()?;
    let mut inner = members.required("network")?.object()?;
    let enabled = inner.required("enabled")?.boolean()?;
    inner.finish()?;
    members.finish()?;
    let network = if enabled { Network::Enabled } else { Network::Restricted };
    Ok(PermissionProfile::Managed { file_system, network })
}

fn network(located: &Located<'_>) -> Result<Network, StateError> {
    let enabled = located.word(&[("restricted", false), ("enabled", true)], 2)?;
    Ok(if enabled { Network::Enabled } else { Network::Restricted })
}

/// `{"mode":"limited","domains":{PATTERN:"allow"|"deny",…}}`, where the profile itself restricts the network.
fn limit_network(profile: &mut PermissionProfile, located: Located<'_>) -> Result<(), StateError> {
    let restricted = match profile {
        PermissionProfile::External { network } | PermissionProfile::Managed { network, .. } => {
            Some(network).filter(|network| **network == Network::Restricted)
        }
        PermissionProfile::Disabled => None,
    };
    let Some(network) = restricted else {
        let reason = "expected only with a profile whose network is restricted";
        return Err(located.fault(StateErrorKind::Unenforceable, reason));
    };
    let mut members = located.object()?;
    members.required("mode")?.word(&[("limited", ())], 1)?;
    let listed = members.required("domains")?;
    members.finish()?;
    *network = Network::Limited(hosts(listed)?);
    Ok(())
}

fn hosts(located: Located<'_>) -> Result<Hosts, StateError> {
    let path = located.path.clone();
    let mut hosts = Vec::new();
    for (name, access) in located.object()?.into_located() {
        let invalid =
            |error: PatternError| access.fault(StateErrorKind::InvalidHost, error.to_string());
        let pattern: HostPattern = name.parse().map_err(invalid)?;
        let words = [("allow", HostAccess::Allow), ("deny", HostAccess::Deny)];
        let word = access.word(&words, 2)?;
        if word == HostAccess::Allow {
            pattern.check_allowed().map_err(invalid)?;
        }
        hosts.push((pattern, word));
    }
    if hosts.len() > MAX_PATTERNS {
        let reason = format!("{} patterns, at most {MAX_PATTERNS}", hosts.len());
        return Err(StateError::new(StateErrorKind::TooLarge, path.to_string(), reason));
    }
    Ok(hosts.into_iter().collect())
}

fn file_system(located: Located<'_>) -> Result<FileSystem, StateError> {
    let mut members = located.object()?;
    let is_restricted =
        members.required("type")?.word(&[("unrestricted", false), ("restricted", true)], 2)?;
    let file_system = if is_restricted {
        FileSystem::Restricted(restricted(&mut members)?)
    } else {
        FileSystem::Unrestricted
    };
    members.finish()?;
    Ok(file_system)
}

fn restricted(members: &mut Members<'_>) -> Result<RestrictedFileSystem, StateError> {
    let listed = members.required("entries")?;
    let (path, items) = listed.list()?;
    if items.len() > MAX_ENTRIES {
        let reason = format!("{} entries, at most {MAX_ENTRIES}", items.len());
        return Err(StateError::new(StateErrorKind::TooLarge, path.to_string(), reason));
    }
    let items = items.into_iter().enumerate();
    let entries = items
        .map(|(index, value)| entry(Located { path: path.item(index), value }))
        .collect::<Result<_, _>>()?;
    let glob_scan_max_depth =
        members.optional("glob_scan_max_depth").map(|located| depth(&located));
    Ok(RestrictedFileSystem { entries, glob_scan_max_depth: glob_scan_max_depth.transpose()? })
}

fn depth(located: &Located<'_>) -> Result<NonZeroUsize, StateError> {
    let value = located.unsigned()?;
    usize::try_from(value).ok().and_then(NonZeroUsize::new).ok_or_else(|| {
        let reason = format!("expected a whole number of at least 1, found {value}");
        located.fault(StateErrorKind::UnknownValue, reason)
    })
}

fn entry(located: Located<'_>) -> Result<Entry, StateError> {
    let mut members = located.object()?;
    let place = members.required("path")?;
    let place_path = place.path.clone();
    let path = entry_path(place)?;
    let access_member = members.required("access")?;
    let access = access_member.word(
        &[
            ("read", Access::Read),
            ("write", Access::Write),
            ("deny", Access::Deny),
            ("none", Access::Deny),
        ],
        3,
    )?;
    let missing = match members.optional("missing_path_behavior") {
        None => Missing::Enforce,
        Some(located) => located.word(&[("skip", Missing::Skip)], 1)?,
    };
    members.finish()?;
    match (&path, access) {
        (EntryPath::Glob(_), Access::Read | Access::Write) => {
            let reason = format!("expected deny for a glob_pattern, found {:?}", access.as_str());
            Err(access_member.fault(StateErrorKind::Unenforceable, reason))
        }
        (EntryPath::Special(Special::Unknown { path, .. }), Access::Deny) => {
            let reason = format!("cannot deny the unknown special path {}", quote(path));
            Err(StateError::new(StateErrorKind::Unenforceable, place_path.to_string(), reason))
        }
        _ => Ok(Entry { path, access, missing }),
    }
}

#[derive(Clone, Copy)]
enum PathKind {
    Path,
    Glob,
    Special,
}

fn entry_path(located: Located<'_>) -> Result<EntryPath, StateError> {
    let mut members = located.object()?;
    let kind = members.required("type")?.word(
        &[
            ("path", PathKind::Path),
            ("glob_pattern", PathKind::Glob),
            ("special", PathKind::Special),
        ],
        3,
    )?;
    let path = match kind {
        PathKind::Path => {
            let check = |path: &str| native::check_absolute(Path::new(path));
            EntryPath::Path(checked(&members.required("path")?, check)?)
        }
        PathKind::Glob => EntryPath::Glob(checked(&members.required("pattern")?, native::glob)?),
        PathKind::Special => EntryPath::Special(special(members.required("value")?)?),
    };
    members.finish()?;
    Ok(path)
}

#[derive(Clone, Copy)]
enum SpecialKind {
    Root,
    Minimal,
    ProjectRoots,
    Tmpdir,
    SlashTmp,
    Unknown,
}

fn special(located: Located<'_>) -> Result<Special, StateError> {
    let mut members = located.object()?;
    let kind = members.required("kind")?.word(
        &[
            ("root", SpecialKind::Root),
            ("minimal", SpecialKind::Minimal),
            ("project_roots", SpecialKind::ProjectRoots),
            ("tmpdir", SpecialKind::Tmpdir),
            ("slash_tmp", SpecialKind::SlashTmp),
            ("unknown", SpecialKind::Unknown),
            ("current_working_directory", SpecialKind::ProjectRoots),
        ],
        6,
    )?;
    let special = match kind {
        SpecialKind::Root => Special::Root,
        SpecialKind::Minimal => Special::Minimal,
        SpecialKind::Tmpdir => Special::Tmpdir,
        SpecialKind::SlashTmp => Special::SlashTmp,
        SpecialKind::ProjectRoots => {
            let check = |path: &str| native::relative(path).map(drop);
            let subpath = members.optional("subpath").map(|located| checked(&located, check));
            Special::ProjectRoots { subpath: subpath.transpose()? }
        }
        SpecialKind::Unknown => {
            let path = checked(&members.required("path")?, native::carried)?;
            let subpath =
                members.optional("subpath").map(|located| checked(&located, native::carried));
            Special::Unknown { path, subpath: subpath.transpose()? }
        }
    };
    members.finish()?;
    Ok(special)
}

/// A string that passes `check`, which says what it must be.
fn checked(
    located: &Located<'_>,
    check: impl Fn(&str) -> Result<(), &'static str>,
) -> Result<String, StateError> {
    let text = located.text()?;
    match check(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(rule) => {
            let reason = format!("{rule}, found {}", quote(text));
            Err(located.fault(StateErrorKind::InvalidPath, reason))
        }
    }
}
