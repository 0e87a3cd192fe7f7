//! Files that are replaced whole: a reader sees the old text or the new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes `content` beside `path`, then puts it in its place. `mode` is the new file's, whatever the umask.
pub(crate) fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("the path names no file"));
    };
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.new", std::process::id()));
    let beside = directory.join(beside);
    // One that an earlier process with this number left behind.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = fill(&beside, content, mode).and_then(|()| std::fs::rename(&beside, path));
    if let Err(error) = written {
        // The first fault is the one to tell.
        drop(std::fs::remove_file(&beside));
        return Err(error);
    }
    File::open(directory)?.sync_all()
}

fn fill(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(mode))?;
    file.sync_all()
}
