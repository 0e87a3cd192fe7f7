//! The person's browser: a program of its own, without a shell, that shares nothing with us but the display.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use plenipo_connect::input::ElicitationUrl;

use crate::env;

const OPENER: &str = if cfg!(target_os = "macos") { "/usr/bin/open" } else { "xdg-open" };

/// Whether there is a display that a browser could open on. Without one the usual opener would start a browser in
/// this very terminal.
pub(super) fn is_there() -> bool {
    cfg!(target_os = "macos") || env::is_set("DISPLAY") || env::is_set("WAYLAND_DISPLAY")
}

/// Opens a URL that the person agreed to. It is an absolute http or https URL of plain ASCII, so it is one word and no
/// option.
pub(super) fn open(url: &ElicitationUrl) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a program of the person's, outside every call")]
    let mut command = Command::new(OPENER);
    command.arg(url.as_str()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    plenipo_keeper::befriend();
    let mut child = command.spawn()?;
    // It may run for as long as the browser does.
    std::thread::spawn(move || child.wait());
    Ok(())
}
