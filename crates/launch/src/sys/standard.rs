//! Whether this process was given a standard output.

use std::sync::atomic::{AtomicBool, Ordering};

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// The C library runs what is listed here before `main`, and so before the standard library puts `/dev/null` in the place of
/// each standard stream that is closed.
#[used]
// SAFETY: the section is a table of functions of this type, called once each (System V gABI, "Initialization and Termination
// Functions"); what is called needs nothing of the standard library.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD looks at the descriptor's flags and changes nothing, whether it is open or not.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    OUTPUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether standard output was closed when this process began (`>&-`): what is written there since goes to `/dev/null`.
#[must_use]
pub fn output_was_closed() -> bool {
    OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}
