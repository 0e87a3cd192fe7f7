//! Name resolution of a statically linked program.

/// Lets this process look names up in `/etc/hosts` and by DNS only, whatever `nsswitch.conf` says.
///
/// glibc has these two built in. For every other service it loads a shared library, which a static program can do right
/// with the libraries of the very glibc that it was linked with, and from wherever `LD_LIBRARY_PATH` says.
///
/// # Errors
/// There is no memory for it.
#[cfg(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static"))]
pub fn resolve_without_modules() -> std::io::Result<()> {
    unsafe extern "C" {
        /// nss.h, glibc 2.2.5 and later.
        fn __nss_configure_lookup(
            database: *const libc::c_char,
            services: *const libc::c_char,
        ) -> libc::c_int;
    }
    // SAFETY: both strings end with a nul and are only read. What was in force before is replaced by one store of a pointer
    // and stays allocated, so a thread that looks a name up meanwhile goes on with the one or the other.
    let result = unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// A dynamically linked program resolves names as the system says: nothing to do.
///
/// # Errors
/// None.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static")))]
pub fn resolve_without_modules() -> std::io::Result<()> {
    Ok(())
}
