//! The only reader of environment variables and other process state.

#![expect(clippy::disallowed_methods, reason = "this module is the one that reads them")]

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use plenipo_connect::HttpClientOptions;
use plenipo_redact::Secret;

use crate::failure::Failure;

/// Bytes of the passwd file that are looked at.
const MAX_PASSWD_BYTES: u64 = 4 * 1024 * 1024;

/// The words of the command line, the program's name first.
pub(crate) fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// One variable.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The whole environment.
pub(crate) fn variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// `$TMPDIR`, if it is an existing absolute directory, without symbolic links.
pub(crate) fn temporary_directory() -> Option<PathBuf> {
    let path = absolute("TMPDIR")?;
    let real = std::fs::canonicalize(path).ok()?;
    real.is_dir().then_some(real)
}

/// The current directory.
pub(crate) fn current_directory() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}

/// This program's file.
pub(crate) fn executable() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// `$HOME`, else what the passwd file says.
pub(crate) fn home() -> Option<PathBuf> {
    absolute("HOME").or_else(passwd_home)
}

/// [`home`] without symbolic links; `None` where there is none. One that cannot be looked at is no absent one: rules about
/// it would silently not be applied.
pub(crate) fn real_home() -> Result<Option<PathBuf>, Failure> {
    let Some(home) = home() else { return Ok(None) };
    match std::fs::canonicalize(&home) {
        Ok(real) => Ok(Some(real)),
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(None)
        }
        Err(error) => {
            let message =
                format!("failed to look at the home directory {}: {error}", home.display());
            Err(Failure::usage(message).with_hint("set HOME to a directory that you may enter"))
        }
    }
}

/// Where the user's own configuration is: `$XDG_CONFIG_HOME/plenipo` or `~/.config/plenipo`.
pub(crate) fn configuration_directory() -> Option<PathBuf> {
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?;
    Some(base.join("plenipo"))
}

/// Where what must survive is kept: `$XDG_DATA_HOME/plenipo` or `~/.local/share/plenipo`.
pub(crate) fn data_directory() -> Option<PathBuf> {
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local/share")))?;
    Some(base.join("plenipo"))
}

/// The address of the desktop session's bus: `$DBUS_SESSION_BUS_ADDRESS`, else the socket `bus` in
/// `$XDG_RUNTIME_DIR`, where systemd puts it.
pub(crate) fn session_bus() -> Option<String> {
    let named = variable("DBUS_SESSION_BUS_ADDRESS").and_then(|value| value.into_string().ok());
    named.filter(|value| !value.is_empty()).or_else(|| {
        let socket = absolute("XDG_RUNTIME_DIR")?.join("bus");
        let socket = socket.to_str().filter(|_| socket.exists())?;
        Some(format!(
            "unix:path={}",
            socket.replace('%', "%25").replace(',', "%2c").replace(';', "%3b")
        ))
    })
}

/// How to get to HTTP servers: `https_proxy`, `HTTP_PROXY` and their like, `NO_PROXY`, `SSL_CERT_FILE`.
///
/// The lower-case names win, and `HTTP_PROXY` counts in lower case only: a CGI program's caller sets the other.
pub(crate) fn http_client_options() -> HttpClientOptions {
    let text = |names: &[&str]| {
        let values = names.iter().filter_map(|name| variable(name)?.into_string().ok());
        values.into_iter().find(|value| !value.is_empty())
    };
    let mut options = HttpClientOptions::default();
    options.proxy.http = text(&["http_proxy", "all_proxy", "ALL_PROXY"]).map(Secret::new);
    options.proxy.https =
        text(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]).map(Secret::new);
    options.proxy.no = text(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
    options.extra_roots = absolute("SSL_CERT_FILE");
    options
}

/// The home directory that the passwd file names for the user of this process: nothing that a caller's environment
/// says can change it.
///
/// Read once: the launcher asks three times on its way to the command.
pub(crate) fn passwd_home() -> Option<PathBuf> {
    static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();
    HOME.get_or_init(read_passwd_home).clone()
}

fn read_passwd_home() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw().to_string();
    let mut text = Vec::new();
    let file = std::fs::File::open("/etc/passwd").ok()?;
    file.take(MAX_PASSWD_BYTES).read_to_end(&mut text).ok()?;
    let home = text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':').skip(2);
        if fields.next() != Some(user.as_bytes()) {
            return None;
        }
        fields.nth(2).map(<[u8]>::to_vec)
    })?;
    let home = PathBuf::from(OsString::from_vec(home));
    home.is_absolute().then_some(home)
}

fn absolute(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from).filter(|path| Path::is_absolute(path))
}
