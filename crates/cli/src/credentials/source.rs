//! Texts that no configuration file holds: of environment variables and of files.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
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
    let fault = |reason: String| SourceFault { place: place(source), reason, hint: None };
    let text = match source {
        TextSource::Variable(name) => {
            let value = env::variable(name).ok_or_else(|| fault("is not set".to_owned()))?;
            value.into_string().map_err(|_| fault("is not UTF-8".to_owned()))?
        }
        TextSource::File(path) => of_file(path, check)?,
        _ => return Err(fault("cannot be read".to_owned())),
    };
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err(fault("is empty".to_owned())),
        text => Ok(Secret::new(text.to_owned())),
    }
}

fn of_file(path: &Path, check: Check<'_>) -> Result<String, SourceFault> {
    let fault = |reason: String| SourceFault { place: file(path), reason, hint: None };
    let unreadable = |error: std::io::Error| fault(format!("cannot be read: {error}"));
    // Without waiting for somebody to write into a FIFO.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let opened = File::from(opened.map_err(|errno| unreadable(errno.into()))?);
    let metadata = opened.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(fault("is no regular file".to_owned()));
    }
    check(path, metadata.mode())?;
    let mut text = String::new();
    opened.take(LONGEST.saturating_add(1)).read_to_string(&mut text).map_err(unreadable)?;
    match u64::try_from(text.len()) {
        Ok(0..=LONGEST) => Ok(text),
        _ => Err(fault(format!("is longer than {LONGEST} bytes"))),
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
                hint: None,
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
