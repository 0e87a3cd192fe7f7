//! Opening a page in the person's browser: the desktop's own opener with the address as its only
//! argument, never a shell.

use std::process::{Command, Stdio};

use plenipo_redact::Secret;

use crate::env;

const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Opens the page where there is a desktop. That it did is not certain: the address was shown too.
#[expect(clippy::disallowed_methods, reason = "a browser is no server and no sandboxed command")]
pub(super) fn open(url: &Secret<String>) {
    let has_desktop = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| env::variable(name).is_some_and(|value| !value.is_empty()));
    let is_page = ["https://", "http://"].iter().any(|scheme| url.expose().starts_with(scheme));
    if !has_desktop || !is_page {
        return;
    }
    let started = Command::new(OPENER)
        .arg(url.expose())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut child) = started {
        // Collected when it ends; it does not have to for the sign-in to go on.
        std::thread::spawn(move || drop(child.wait()));
    }
}
