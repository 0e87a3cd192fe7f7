//! Whether `/usr/bin/bwrap` can be trusted with a sandbox.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{ErrorKind, LaunchError};

/// The one place it is taken from; never looked up.
pub(super) const PATH: &str = "/usr/bin/bwrap";
/// The first version that is safe with the set-user-ID bit (CVE-2026-41163).
const SAFE_SET_USER_ID: [u32; 3] = [0, 11, 2];

const GROUP_AND_OTHERS_MAY_WRITE: u32 = 0o022;
const SET_USER_ID: u32 = 0o4000;

/// Root's, and nobody else's to replace, up to `/`.
pub(super) fn verify() -> Result<(), LaunchError> {
    for place in Path::new(PATH).ancestors() {
        let metadata = std::fs::symlink_metadata(place).map_err(|error| {
            LaunchError::unsupported(&format!("look at {}", place.display()), error)
                .with_hint("install bubblewrap from the distribution")
        })?;
        let fault = if place == Path::new(PATH) && !metadata.is_file() {
            "is not a regular file"
        } else if metadata.uid() != 0 {
            "does not belong to root"
        } else if metadata.mode() & GROUP_AND_OTHERS_MAY_WRITE != 0 {
            "can be written by others than root"
        } else {
            continue;
        };
        let message = format!("{} {fault}", place.display());
        return Err(LaunchError::new(ErrorKind::Unsupported, message)
            .with_hint("install bubblewrap from the distribution"));
    }
    let metadata = std::fs::metadata(PATH)
        .map_err(|error| LaunchError::unsupported("look at /usr/bin/bwrap", error))?;
    if metadata.mode() & SET_USER_ID != 0 && !version().is_some_and(is_safe_set_user_id) {
        let message = "/usr/bin/bwrap has the set-user-ID bit and is older than 0.11.2";
        return Err(LaunchError::new(ErrorKind::Unsupported, message)
            .with_hint("chmod u-s /usr/bin/bwrap, or update bubblewrap"));
    }
    Ok(())
}

fn version() -> Option<[u32; 3]> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one helper program there is, by its full path"
    )]
    let mut command = Command::new(PATH);
    let output = command.arg("--version").env_clear().stdin(Stdio::null()).output().ok()?;
    parse_version(std::str::from_utf8(&output.stdout).ok()?)
}

/// `bubblewrap 0.11.2`
fn parse_version(text: &str) -> Option<[u32; 3]> {
    let mut numbers = text.trim().strip_prefix("bubblewrap ")?.split('.');
    let mut next = || numbers.next()?.parse().ok();
    Some([next()?, next()?, next()?])
}

fn is_safe_set_user_id(version: [u32; 3]) -> bool {
    version >= SAFE_SET_USER_ID
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_user_id_bwrap_has_to_be_new() {
        let safe = |text: &str| parse_version(text).is_some_and(is_safe_set_user_id);
        assert!(
            safe("bubblewrap 0.11.2\n") && safe("bubblewrap 1.0.0") && safe("bubblewrap 0.12.0")
        );
        for other in [
            "bubblewrap 0.8.0\n",
            "bubblewrap 0.11.1",
            "bubblewrap 0.11",
            "bubblewrap",
            "",
            "9.9.9",
        ] {
            assert!(!safe(other), "{other}");
        }
    }
}
