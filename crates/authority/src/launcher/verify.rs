//! Could somebody else have replaced this file? The walk from `/` to it.

#[cfg(not(unix))]
pub(super) use other::{identity, verify};
#[cfg(unix)]
pub(super) use unix::{identity, verify};

#[cfg(not(unix))]
mod other {
    use std::path::Path;

    use crate::{LauncherFault, launcher::FileIdentity};

    pub(in crate::launcher) fn verify(path: &Path) -> Result<FileIdentity, LauncherFault> {
        identity(path)
    }

    pub(in crate::launcher) fn identity(path: &Path) -> Result<FileIdentity, LauncherFault> {
        Err(LauncherFault::Unsupported { path: path.to_path_buf() })
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        collections::VecDeque,
        ffi::OsString,
        fs::{self, Metadata},
        io,
        os::unix::fs::MetadataExt as _,
        path::{Component, Path, PathBuf},
    };

    use crate::{LauncherFault, launcher::FileIdentity};

    /// As many links as Linux follows (`path_resolution(7)`).
    const MAXIMUM_LINKS: usize = 40;
    const STICKY: u32 = 0o1000;
    const GROUP_OR_OTHER_WRITE: u32 = 0o022;
    const ANY_EXECUTE: u32 = 0o111;

    pub(in crate::launcher) fn verify(path: &Path) -> Result<FileIdentity, LauncherFault> {
        let walk = Walk { launcher: path, user: effective_user(path)? };
        let file = walk.to_file()?;
        if !file.is_file() {
            return Err(LauncherFault::NotAFile { path: path.to_path_buf() });
        }
        if file.mode() & ANY_EXECUTE == 0 {
            return Err(LauncherFault::NotExecutable { path: path.to_path_buf() });
        }
        identity(path)
    }

    pub(in crate::launcher) fn identity(path: &Path) -> Result<FileIdentity, LauncherFault> {
        let file = fs::metadata(path).map_err(unreadable(path))?;
        Ok(FileIdentity([
            file.dev().into(),
            file.ino().into(),
            file.size().into(),
            file.mtime().into(),
            file.mtime_nsec().into(),
            file.ctime().into(),
            file.ctime_nsec().into(),
        ]))
    }

    /// The effective user id, by `proc_pid_status(5)`: `Uid:` real, effective, saved, file system.
    fn effective_user(path: &Path) -> Result<u32, LauncherFault> {
        let unknown = |source| LauncherFault::UserUnknown { path: path.to_path_buf(), source };
        let status = fs::read_to_string("/proc/self/status").map_err(unknown)?;
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        line.and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok())
            .ok_or_else(|| unknown(io::Error::from(io::ErrorKind::InvalidData)))
    }

    struct Walk<'a> {
        launcher: &'a Path,
        user: u32,
    }

    impl Walk<'_> {
        /// Checks every directory and link on the way, and what the path leads to.
        fn to_file(&self) -> Result<Metadata, LauncherFault> {
            let mut at = PathBuf::from("/");
            let mut last = self.checked(&at)?;
            let mut ahead = components(self.launcher);
            let mut links = 0;
            while let Some(component) = ahead.pop_front() {
                if component == ".." {
                    at.pop();
                    last = self.checked(&at)?;
                    continue;
                }
                let next = at.join(component);
                let found = self.checked(&next)?;
                if !found.is_symlink() {
                    (at, last) = (next, found);
                    continue;
                }
                links += 1;
                if links > MAXIMUM_LINKS {
                    return Err(LauncherFault::TooManyLinks { path: self.launcher.to_path_buf() });
                }
                let target = fs::read_link(&next).map_err(unreadable(&next))?;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                let mut rest = components(&target);
                rest.append(&mut ahead);
                ahead = rest;
            }
            Ok(last)
        }

        /// The metadata of `path` itself (not what a link leads to), if nobody else controls it.
        fn checked(&self, path: &Path) -> Result<Metadata, LauncherFault> {
            let found = fs::symlink_metadata(path).map_err(unreadable(path))?;
            if found.uid() != 0 && found.uid() != self.user {
                return Err(LauncherFault::ForeignOwner {
                    path: self.launcher.to_path_buf(),
                    at: path.to_path_buf(),
                    owner: found.uid(),
                });
            }
            // In a sticky directory only an entry's owner (checked next), the directory's and root
            // rename or remove it. The mode of a symbolic link means nothing.
            let is_shielded = found.is_symlink() || (found.is_dir() && found.mode() & STICKY != 0);
            if found.mode() & GROUP_OR_OTHER_WRITE != 0 && !is_shielded {
                return Err(LauncherFault::WritableByOthers {
                    path: self.launcher.to_path_buf(),
                    at: path.to_path_buf(),
                    mode: found.mode() & 0o7777,
                });
            }
            Ok(found)
        }
    }

    /// The names and `..` of a path; its root and `.` are dropped.
    fn components(path: &Path) -> VecDeque<OsString> {
        let kept = |component: &Component<'_>| {
            matches!(component, Component::Normal(_) | Component::ParentDir)
        };
        path.components().filter(kept).map(|component| component.as_os_str().to_owned()).collect()
    }

    fn unreadable(path: &Path) -> impl Fn(io::Error) -> LauncherFault {
        let path = path.to_path_buf();
        move |source| LauncherFault::Unreadable { path: path.clone(), source }
    }
}
