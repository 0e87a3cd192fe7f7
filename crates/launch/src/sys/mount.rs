//! `mount_setattr(2)`.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What a mount (and everything mounted below it) is set to. Nothing is ever cleared.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MountAttributes {
    pub(crate) read_only: bool,
    pub(crate) no_devices: bool,
    pub(crate) no_execution: bool,
    /// No mount event goes to or comes from the host.
    pub(crate) private: bool,
}

#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Sets attributes on the mount at `directory` + `path` and, recursively, below it. `nosuid` is always set.
/// An empty `path` means the mount that `directory` itself is open on.
pub(crate) fn set_mount_attributes(
    directory: BorrowedFd<'_>,
    path: &CStr,
    attributes: MountAttributes,
) -> io::Result<()> {
    let pick = |wanted: bool, flag: u64| if wanted { flag } else { 0 };
    let attr = MountAttr {
        set: libc::MOUNT_ATTR_NOSUID
            | pick(attributes.read_only, libc::MOUNT_ATTR_RDONLY)
            | pick(attributes.no_devices, libc::MOUNT_ATTR_NODEV)
            | pick(attributes.no_execution, libc::MOUNT_ATTR_NOEXEC),
        clear: 0,
        propagation: if attributes.private { libc::MS_PRIVATE } else { 0 },
        user_namespace: 0,
    };
    let flags = libc::AT_RECURSIVE | if path.is_empty() { libc::AT_EMPTY_PATH } else { 0 };
    // SAFETY: the descriptor is open, the path is nul-terminated, the struct is mount_attr v0; all outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            directory.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
