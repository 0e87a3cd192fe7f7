//! Installing a seccomp filter, and asking the kernel for its Landlock version.

use std::io;

use plenipo_filter::Instruction;

#[repr(C)]
pub(super) struct Program {
    length: libc::c_ushort,
    instructions: *const Instruction,
}

impl Program {
    /// It points at the instructions, which have to outlive it.
    pub(super) fn of(instructions: &[Instruction]) -> io::Result<Self> {
        let length = libc::c_ushort::try_from(instructions.len())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Self { length, instructions: instructions.as_ptr() })
    }
}

/// Installs the program for this thread and everything it starts. Needs `no_new_privs`.
pub(crate) fn install_filter(instructions: &[Instruction]) -> io::Result<()> {
    let program = Program::of(instructions)?;
    // SAFETY: the program points at `length` instructions that outlive the call; the kernel copies and checks them.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `plenipo_filter::QUESTION`; the type of a request is not the same in every C library.
const QUESTION: libc::Ioctl = 0x504C_4E49;

/// What the kernel, or a filter, says to an ioctl(2) with the question and no file: 0, or an error's number.
pub(crate) fn ask_filter() -> i32 {
    // SAFETY: there is no file -1 for the request to be carried out on, and it has no argument.
    match unsafe { libc::ioctl(-1, QUESTION) } {
        0 => 0,
        _ => io::Error::last_os_error().raw_os_error().unwrap_or_default(),
    }
}

/// The Landlock ABI version of the running kernel; 0 where Landlock is absent or off.
pub(crate) fn landlock_abi() -> i32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with a null attribute of size 0 and the VERSION flag the call only returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION)
    };
    i32::try_from(version).unwrap_or(0).max(0)
}
