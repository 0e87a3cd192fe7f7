//! What can be wrong with a launcher.

use std::{io, path::PathBuf};

use super::ErrorKind;

/// Why a path is no launcher that could be sent, or not the one that was verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherFault {
    /// The path is relative (or empty).
    #[error("launcher path {path:?} is not absolute")]
    NotAbsolute {
        /// The path.
        path: PathBuf,
    },
    /// The path cannot be written as JSON text.
    #[error("launcher path {path:?} is not UTF-8")]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// The path holds a NUL.
    #[error("launcher path {path:?} holds a NUL")]
    Nul {
        /// The path.
        path: PathBuf,
    },
    /// The path of a running executable that was removed or replaced.
    #[error("launcher {path:?} was removed while it runs")]
    Deleted {
        /// The path, as the kernel shows it.
        path: PathBuf,
    },
    /// A part of the path does not exist or cannot be looked at.
    #[error("launcher cannot be checked at {path:?}")]
    Unreadable {
        /// The part.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, device or the like.
    #[error("launcher {path:?} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// No execute bit.
    #[error("launcher {path:?} is not executable")]
    NotExecutable {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else owns the file, or a directory or link on the way to it.
    #[error("launcher {path:?} could be replaced by user {owner}, who owns {at:?}")]
    ForeignOwner {
        /// The launcher.
        path: PathBuf,
        /// What is owned.
        at: PathBuf,
        /// The user id.
        owner: u32,
    },
    /// Group or others may write the file or a directory on the way to it.
    #[error("launcher {path:?} could be replaced by others: {at:?} has mode {mode:04o}")]
    WritableByOthers {
        /// The launcher.
        path: PathBuf,
        /// What is writable.
        at: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Too many symbolic links.
    #[error("launcher {path:?} leads through too many symbolic links")]
    TooManyLinks {
        /// The path.
        path: PathBuf,
    },
    /// The current user is unknown, so no owner can be judged.
    #[error("launcher {path:?} cannot be checked: the effective user is unknown")]
    UserUnknown {
        /// The launcher.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This system has no owners and modes to check.
    #[error("launcher {path:?} cannot be checked on this system")]
    Unsupported {
        /// The launcher.
        path: PathBuf,
    },
    /// Another file is at the path now.
    #[error("launcher {path:?} is no longer the file that was verified")]
    Changed {
        /// The path.
        path: PathBuf,
    },
}

impl LauncherFault {
    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UserUnknown { .. } | Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::ForeignOwner { .. } | Self::WritableByOthers { .. } | Self::Changed { .. } => {
                ErrorKind::Denied
            }
            _ => ErrorKind::Config,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotAbsolute { .. } => Some("write the whole path, starting with `/`"),
            Self::Deleted { .. } | Self::Changed { .. } => {
                Some("restart this program, so that the installed launcher is found again")
            }
            Self::ForeignOwner { .. } => {
                Some("install the launcher where only root or you own every directory")
            }
            Self::WritableByOthers { .. } => {
                Some("take the write permission from group and others: `chmod go-w`")
            }
            Self::NotExecutable { .. } => Some("set its execute bit: `chmod +x`"),
            _ => None,
        }
    }
}
