//! Which profile is in force, and whether a project's profile narrows.

use std::path::{Path, PathBuf};

use plenipo_policy::{PermissionProfile, State, WorkspaceRoots};

use super::{Project, Settings};
use crate::authority;
use crate::failure::{Code, Failure};

const DEFAULT_PROFILE: &str = ":workspace";
/// Stands for a `$TMPDIR` that a launcher may have and this process has not.
const SOME_TMPDIR: &str = "/plenipo/some/temporary/directory";

impl Settings {
    /// The profile called `asked`, else the project's default, else the user's, else `:workspace`; with its name.
    ///
    /// A project's profile is refused unless it is within the profile that would be in force without the project.
    pub(crate) fn profile(
        &self,
        asked: Option<&str>,
        roots: &WorkspaceRoots,
    ) -> Result<(String, PermissionProfile), Failure> {
        let limit = self.default_permissions().unwrap_or(DEFAULT_PROFILE);
        let project = self.project.as_ref().filter(|project| project.is_trusted());
        let by_project =
            project.and_then(|project| project.in_force()?.default_permissions.as_deref());
        let name = asked.or(by_project).unwrap_or(limit);
        let trusted = self.permissions()?;
        let known = name.starts_with(':') || trusted.names().any(|(known, _)| known == name);
        if known && (asked.is_some() || by_project.is_none()) {
            // A project's tables take no part, not even as what one of these extends.
            return Ok((name.to_owned(), trusted.profile(name, roots)?));
        }
        let Some(project) = project.filter(|project| !known && project.defines(name)) else {
            return match (by_project, project) {
                (Some(default), Some(project)) if asked.is_none() => {
                    Err(foreign_default(default, project))
                }
                _ => Ok((name.to_owned(), trusted.profile(name, roots)?)),
            };
        };
        Ok((name.to_owned(), self.of_project(project, name, roots)?))
    }

    /// A project's profile, which has to be within the user's.
    fn of_project(
        &self,
        project: &Project,
        name: &str,
        roots: &WorkspaceRoots,
    ) -> Result<PermissionProfile, Failure> {
        let limit = self.default_permissions().unwrap_or(DEFAULT_PROFILE);
        let trusted = self.permissions()?;
        let limit_profile = trusted.profile(limit, roots)?;
        let profile = trusted.or(project.permissions.clone()).profile(name, roots)?;
        narrows(&profile, &limit_profile, roots).map_err(|why| {
            let message = format!(
                "profile `{name}` of the project's {} is refused, because it would widen `{limit}`: {why}",
                project.path().display()
            );
            Failure::new(Code::Refused, message).with_hint(format!(
                "define it in your own configuration, or choose another with --profile {limit}"
            ))
        })?;
        Ok(profile)
    }

    /// What is wrong with a project's profiles in its directory, trusted or not.
    pub(crate) fn widening(&self, project: &Project, directory: &Path) -> Vec<Failure> {
        let roots = crate::env::real_home().and_then(|home| {
            WorkspaceRoots::new(directory, home.as_deref(), true).map_err(Failure::from)
        });
        let roots = match roots {
            Ok(roots) => roots,
            Err(failure) => return vec![failure],
        };
        let names = project.permissions.names().map(|(name, _)| name);
        let faults = names.filter_map(|name| self.of_project(project, name, &roots).err());
        faults.collect()
    }
}

impl Project {
    fn defines(&self, name: &str) -> bool {
        self.permissions.names().any(|(known, _)| known == name)
    }
}

fn foreign_default(default: &str, project: &Project) -> Failure {
    let message = format!(
        "the project's {} makes `{default}` its default profile, which is none of its own",
        project.path().display()
    );
    Failure::new(Code::Refused, message).with_hint("choose a profile with --profile")
}

/// Whatever `$TMPDIR` the launcher will have.
fn narrows(
    profile: &PermissionProfile,
    limit: &PermissionProfile,
    roots: &WorkspaceRoots,
) -> Result<(), String> {
    let cwd = roots.paths().next().unwrap_or("/");
    let resolved = |profile: &PermissionProfile, tmpdir: Option<PathBuf>| {
        let state = State::new(profile.clone(), cwd);
        let mut context = authority::context(&state);
        context.tmpdir = tmpdir;
        profile.resolve(&context).map_err(|error| error.to_string())
    };
    let usual = crate::env::temporary_directory();
    for tmpdir in [usual, Some(PathBuf::from(SOME_TMPDIR))] {
        let limit = resolved(limit, tmpdir.clone())?;
        resolved(profile, tmpdir)?.within(&limit).map_err(|widening| widening.to_string())?;
    }
    Ok(())
}
