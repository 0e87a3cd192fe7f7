//! Texts that no configuration file holds: of environment variables and of files.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use plenipo_config::TextSource;
use plenipo_connect::ServerName;
use plenipo_connect::oauth::{AssertionSource, GrantError, Granting};
use plenipo_redact::Secret;
use rustix::fs::{Mode, OFlags};

use super::is_private;
use crate::env;

/// A key, a JWT, a connection string: nothing is longer.
const LONGEST: u64 = 64 * 1024;
/// Of a file's mode.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// A source without a text. Reads after "needs a client secret in ".
#[derive(Debug)]
pub(super) struct SourceFault {
    pub(super) place: String,
    pub(super) reason: String,
    pub(super) hint: Option<String>,
}

/// The JWT of a workload, read anew for each token.
#[derive(Debug)]
pub(super) struct Assertion {
    pub(super) server: ServerName,
    pub(super) source: TextSource,
}

/// A secret, without the line end that editors put after it. A file that others may read is refused.
pub(super) fn text(source: &TextSource) -> Result<Secret<String>, SourceFault> {
    read(source, &is_private)
}

/// Where a text is, for a person.
pub(super) fn place(source: &TextSource) -> String {
    match source {
        TextSource::Variable(name) => format!("the variable `{name}`"),
        TextSource::File(path) => file(path),
        _ => "an unknown place".to_owned(),
    }
}

pub(super) fn file(path: &Path) -> String {
    format!("the file {}", path.display())
}

type Check<'a> = &'a dyn Fn(&Path, u32) -> Result<(), SourceFault>;

fn read(source: &TextSource, check: Check<'_>) -> Result<Secret<String>, SourceFault> {
    let hint = match source {
        TextSource::Variable(name) => {
            format!("set `{name}` in the environment that plenipo runs in")
        }
        _ => "write it there, in one line of text that you alone can read (mode 0600)".to_owned(),
    };
    let fault = |reason: &str| SourceFault {
        place: place(source),
        reason: reason.to_owned(),
        hint: Some(hint.clone()),
    };
    let text = match source {
        TextSource::Variable(name) => {
            let value = env::variable(name).ok_or_else(|| fault("is not set"))?;
            value.into_string().map_err(|_| fault("is not UTF-8"))?
        }
        TextSource::File(path) => of_file(path, check)?,
        _ => return Err(fault("cannot be read")),
    };
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err(fault("is empty")),
        text => Ok(Secret::new(text.to_owned())),
    }
}

fn of_file(path: &Path, check: Check<'_>) -> Result<String, SourceFault> {
    let fault = |reason: String, hint: &str| SourceFault {
        place: file(path),
        reason,
        hint: Some(hint.to_owned()),
    };
    let unreadable = |error: std::io::Error| {
        let hint = match error.kind() {
            ErrorKind::NotFound => {
                "write it there, readable by you alone (mode 0600), or name another file"
            }
            ErrorKind::PermissionDenied => "let the user who runs this own it, with mode 0600",
            _ => "name a file of text",
        };
        fault(format!("cannot be read: {error}"), hint)
    };
    // Without waiting for somebody to write into a FIFO.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let opened = File::from(opened.map_err(|errno| unreadable(errno.into()))?);
    let metadata = opened.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(fault("is no regular file".to_owned(), "name a file, and no pipe or device"));
    }
    check(path, metadata.mode())?;
    let mut text = String::new();
    opened.take(LONGEST.saturating_add(1)).read_to_string(&mut text).map_err(unreadable)?;
    match u64::try_from(text.len()) {
        Ok(0..=LONGEST) => Ok(text),
        _ => Err(fault(
            format!("is longer than {LONGEST} bytes"),
            "name the file of the secret alone",
        )),
    }
}

impl AssertionSource for Assertion {
    fn assertion(&self) -> Granting<'_, Secret<String>> {
        // Platforms let every process of a workload read it; nobody else may put another one there.
        let check = |path: &Path, mode: u32| match mode & OTHERS_MAY_WRITE {
            0 => Ok(()),
            _ => Err(SourceFault {
                place: file(path),
                reason: "can be written by others than its owner".to_owned(),
                hint: Some(format!("run `chmod go-w {}`", path.display())),
            }),
        };
        let read = read(&self.source, &check).map_err(|fault| {
            let text = format!("server `{}` needs a workload's assertion in {fault}", self.server);
            GrantError::Prompt(text.into())
        });
        Box::pin(async move { read })
    }
}

impl fmt::Display for SourceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, which {}", self.place, self.reason)
    }
}
