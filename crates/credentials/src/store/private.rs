//! Files that only their owner has access to.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::error::StoreFault;

/// Neither group nor others.
const FORBIDDEN: u32 = 0o077;
/// Between two looks at a lock that somebody else has.
const PAUSE: Duration = Duration::from_millis(5);

/// Makes the directory for its owner alone; the ones above it with the usual mode.
pub(in crate::store) fn make_directory(path: &Path) -> Result<(), StoreFault> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => check_directory(path),
    }
}

/// Refuses a directory in which others could put or read files. None at all is fine.
pub(in crate::store) fn check_directory(path: &Path) -> Result<(), StoreFault> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => match check(&metadata) {
            Err(StoreFault::NotPrivate { mode }) if fs::symlink_metadata(path)?.is_symlink() => {
                Err(StoreFault::LinkNotPrivate { mode })
            }
            checked => checked,
        },
        Ok(_) => Err(io::Error::from(io::ErrorKind::NotADirectory).into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads a file of at most `limit` bytes; `None`: there is none.
pub(in crate::store) fn read(path: &Path, limit: usize) -> Result<Option<Vec<u8>>, StoreFault> {
    match open(OpenOptions::new().read(true), path) {
        Ok(file) => content(file, limit).map(Some),
        Err(StoreFault::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// What is in a regular file of whatever mode and owner, if it can be read.
pub(in crate::store) fn peek(path: &Path, limit: usize) -> Option<Vec<u8>> {
    let (file, _) = open_any(OpenOptions::new().read(true), path).ok()?;
    content(file, limit).ok()
}

fn content(file: File, limit: usize) -> Result<Vec<u8>, StoreFault> {
    let mut content = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut content)?;
    match content.len() > limit {
        true => Err(StoreFault::TooLong),
        false => Ok(content),
    }
}

/// Locks a file of `directory` that is there for nothing else, waiting at most for `patience`. The
/// open file is the lock.
pub(in crate::store) fn lock(
    directory: &Path,
    path: &Path,
    patience: Duration,
) -> Result<File, StoreFault> {
    make_directory(directory)?;
    let mut options = OpenOptions::new();
    let file = open(options.write(true).create(true).truncate(false).mode(0o600), path)?;
    let start = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < patience => {
                thread::sleep(PAUSE);
            }
            Err(Errno::WOULDBLOCK) => return Err(StoreFault::Busy { waited: patience }),
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}

/// Opens without following a link, and looks at what was opened.
fn open(options: &mut OpenOptions, path: &Path) -> Result<File, StoreFault> {
    let (file, metadata) = open_any(options, path)?;
    check(&metadata).map(|()| file)
}

fn open_any(options: &mut OpenOptions, path: &Path) -> Result<(File, fs::Metadata), StoreFault> {
    // NONBLOCK: a FIFO in the file's place must not hold us up.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.custom_flags(flags).open(path).map_err(|error| {
        match Errno::from_io_error(&error) {
            // A link; a FIFO or a socket that is to be written; a directory.
            Some(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => StoreFault::NotAFile,
            _ => StoreFault::Io(error),
        }
    })?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(StoreFault::NotAFile),
    }
}

fn check(metadata: &fs::Metadata) -> Result<(), StoreFault> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    match () {
        () if owner != rustix::process::geteuid().as_raw() => Err(StoreFault::NotOwned { owner }),
        () if mode & FORBIDDEN != 0 => Err(StoreFault::NotPrivate { mode }),
        () => Ok(()),
    }
}

/// Puts `content` in the place of `path`: readers find all of the old or all of the new.
pub(in crate::store) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    beside(path, content, |new| fs::rename(new, path))
}

/// As [`replace`], unless there is a file already: then that one stays.
pub(in crate::store) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    beside(path, content, |new| match fs::hard_link(new, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::remove_file(new),
    })
}

/// Removes what a [`replace`] of `path` left behind that never came to its end. Whoever writes `path`
/// at this time loses his work: hold its lock.
pub(in crate::store) fn remove_unfinished(path: &Path) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_unfinished(&entry.file_name(), name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// `NAME.PID.new`, of whatever process.
pub(in crate::store) fn is_unfinished(entry: &OsStr, name: &OsStr) -> bool {
    let rest = entry.to_str().zip(name.to_str()).and_then(|(entry, name)| entry.strip_prefix(name));
    let number = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".new"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

fn beside(
    path: &Path,
    content: &[u8],
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    let new = Path::new(&new);
    // One that an earlier process with this number left behind.
    match fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new).and_then(
        |mut file| {
            file.write_all(content)?;
            file.sync_all()
        },
    );
    if let Err(error) = written.and_then(|()| place(new)) {
        // The first fault is the one to tell.
        drop(fs::remove_file(new));
        return Err(error);
    }
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}
