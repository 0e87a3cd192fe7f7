//! The only reader of environment variables and other process state.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Bytes of the passwd file that are looked at.
const MAX_PASSWD_BYTES: u64 = 4 * 1024 * 1024;

/// `$TMPDIR`, if it is an existing absolute directory.
pub(crate) fn temporary_directory() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "this module is the one that reads it")]
    let path = PathBuf::from(std::env::var_os("TMPDIR")?);
    (path.is_absolute() && path.is_dir()).then_some(path)
}

/// The current directory.
pub(crate) fn current_directory() -> std::io::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "this module is the one that reads it")]
    std::env::current_dir()
}

/// The home directory that the passwd file names for the user of this process: nothing that a caller's environment
/// says can change it.
pub(crate) fn passwd_home() -> Option<PathBuf> {
    use std::io::Read;
    let user = rustix::process::getuid().as_raw().to_string();
    let mut text = Vec::new();
    let file = std::fs::File::open("/etc/passwd").ok()?;
    file.take(MAX_PASSWD_BYTES).read_to_end(&mut text).ok()?;
    let home = text.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        match fields.as_slice() {
            [_, _, id, _, _, home, ..] if *id == user.as_bytes() => Some(home.to_vec()),
            _ => None,
        }
    })?;
    let home = PathBuf::from(OsString::from_vec(home));
    home.is_absolute().then_some(home)
}
