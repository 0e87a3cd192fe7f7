//! What the state of a call protects besides the profile: a command may not configure, enforce or account for the next.
//!
//! The launcher protects its own executable and the usual places; only the host knows which files it really used, so
//! they travel as rules of the state, and any launcher honours them.

use std::path::{Path, PathBuf};

use plenipo_config::{IdentityProviderConfig, Origin, TransportSettings};
use plenipo_policy::{
    Access, Entry, EntryPath, FileSystem, PermissionProfile, SandboxPolicy, State,
};

use crate::authority::context;
use crate::env;
use crate::failure::{Code, Failure};
use crate::settings::Settings;

/// Adds a read-only rule for each such place that the profile lets a command write, and one that hides for each that
/// holds secrets, whether it exists yet or not.
pub(crate) fn protect(settings: &Settings, state: &mut State) -> Result<(), Failure> {
    let policy = state
        .profile
        .resolve(&context(state))
        .map_err(|error| Failure::new(Code::Refused, error.to_string()))?;
    let PermissionProfile::Managed { file_system: FileSystem::Restricted(restricted), .. } =
        &mut state.profile
    else {
        return Ok(());
    };
    let kept = places(settings).into_iter().map(|place| (place, Access::Read));
    let hidden = secrets(settings).into_iter().map(|place| (place, Access::Deny));
    for (place, at_most) in kept.chain(hidden) {
        reject_replaceable_links(&policy, &place)?;
        let real = real_path(&place);
        let is_enough = match at_most {
            Access::Deny => [None, Some(Access::Deny)].contains(&policy.access(&real)),
            _ => policy.access(&real) != Some(Access::Write),
        };
        if is_enough {
            continue;
        }
        let Some(path) = real.to_str() else {
            let message = format!("{} cannot be protected: its path is not UTF-8", real.display());
            return Err(Failure::new(Code::Refused, message));
        };
        let entry = Entry::new(EntryPath::Path(path.to_owned()), at_most);
        if !restricted.entries.contains(&entry) {
            restricted.entries.push(entry);
        }
    }
    Ok(())
}

/// Configuration that was read and where it could appear, trust, the audit file, this program, the launcher.
fn places(settings: &Settings) -> Vec<PathBuf> {
    let named = settings.files().chain(settings.audit_file()).chain(settings.launcher());
    let mut places: Vec<PathBuf> = named.map(Path::to_path_buf).collect();
    places.extend(env::configuration_directory());
    places.extend(env::data_directory());
    places.extend(env::executable().ok());
    places
}

/// What the configuration names as a place of credentials or as a file of a secret, and what of it holds one itself.
fn secrets(settings: &Settings) -> Vec<PathBuf> {
    let mut secrets = crate::credentials::files(&settings.credentials());
    let providers = settings.identity_provider().into_iter().chain(settings.account());
    secrets.extend(providers.flat_map(IdentityProviderConfig::files).map(Path::to_path_buf));
    for (path, config) in settings.layers() {
        for server in config.servers.values().flatten() {
            if let TransportSettings::Http(http) = &server.transport {
                secrets.extend(http.oauth.files().map(Path::to_path_buf));
            }
        }
        // A project's own file is no secret of its user.
        let holds = config.origin != Origin::Project && config.written_credential().is_some();
        if holds && path.is_file() {
            secrets.push(path.to_path_buf());
        }
    }
    secrets
}

/// A link that a command could replace would name another file next time.
fn reject_replaceable_links(policy: &SandboxPolicy, place: &Path) -> Result<(), Failure> {
    for prefix in place.ancestors() {
        let is_link = std::fs::symlink_metadata(prefix).is_ok_and(|metadata| metadata.is_symlink());
        let (true, Some(above), Some(name)) = (is_link, prefix.parent(), prefix.file_name()) else {
            continue;
        };
        let link = real_path(above).join(name);
        if policy.access(&link) == Some(Access::Write) {
            let message = format!(
                "{} is reached through the symbolic link {}, which a sandboxed command can replace",
                place.display(),
                link.display()
            );
            return Err(Failure::new(Code::Refused, message)
                .with_hint("name the file itself, or move the link out of places that the profile makes writable"));
        }
    }
    Ok(())
}

/// The path without symbolic links; what does not exist yet is taken as it is written.
fn real_path(path: &Path) -> PathBuf {
    for prefix in path.ancestors() {
        if let Ok(real) = std::fs::canonicalize(prefix) {
            return match path.strip_prefix(prefix) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                _ => real,
            };
        }
    }
    path.to_path_buf()
}
