//! Starting the command with the signal mask that the launcher was given.
//!
//! `std::process` lets a child inherit the mask of its parent, and init has the forwarded signals blocked.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Pid;

use super::signal::SignalMask;

/// Starts `program` (looked up in `PATH` if it has no slash) in a process group of its own, with `mask` and with the
/// default action for SIGPIPE, which the Rust runtime ignores.
pub(crate) fn spawn(
    program: &OsStr,
    arguments: &[OsString],
    environment: Vec<(OsString, OsString)>,
    mask: &SignalMask,
) -> io::Result<Pid> {
    let program = text(program.to_os_string())?;
    let mut words = vec![program.clone()];
    for argument in arguments {
        words.push(text(argument.clone())?);
    }
    let mut variables = Vec::with_capacity(environment.len());
    for (mut name, value) in environment {
        name.push("=");
        name.push(value);
        variables.push(text(name)?);
    }
    let attributes = Attributes::new(mask)?;
    let (argv, envp) = (pointers(&words), pointers(&variables));
    let mut child: libc::pid_t = 0;
    // SAFETY: argv and envp are null-terminated arrays of nul-terminated strings that outlive the call; the attributes
    // are initialised; posix_spawn writes none of them.
    let result = unsafe {
        libc::posix_spawnp(
            &raw mut child,
            program.as_ptr(),
            std::ptr::null(),
            &raw const attributes.0,
            argv.as_ptr(),
            envp.as_ptr(),
        )
    };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(result));
    }
    Pid::from_raw(child).ok_or_else(|| io::Error::from(io::ErrorKind::Other))
}

/// The same for a command that has the terminal on its standard input: its group is the terminal's foreground group
/// before it exists. `posix_spawn` has no portable word for that, so this forks.
pub(crate) fn spawn_in_terminal(
    program: &OsStr,
    arguments: &[OsString],
    environment: Vec<(OsString, OsString)>,
    mask: &SignalMask,
) -> io::Result<Pid> {
    let mask = *mask;
    #[expect(clippy::disallowed_methods, reason = "starting the command is what this crate is for")]
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment);
    let take_terminal = move || {
        rustix::process::setpgid(None, None)?;
        super::signal::block(libc::SIGTTOU)?; // a group in the background may not make itself the foreground's
        rustix::termios::tcsetpgrp(io::stdin(), rustix::process::getpid())?;
        mask.restore()
    };
    // SAFETY: the closure makes system calls only.
    let child = unsafe { command.pre_exec(take_terminal) }.spawn()?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::from(io::ErrorKind::Other))
}

fn text(word: OsString) -> io::Result<CString> {
    CString::new(word.into_vec()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn pointers(words: &[CString]) -> Vec<*mut libc::c_char> {
    words.iter().map(|word| word.as_ptr().cast_mut()).chain([std::ptr::null_mut()]).collect()
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new(mask: &SignalMask) -> io::Result<Self> {
        const FLAGS: libc::c_int = libc::POSIX_SPAWN_SETPGROUP
            | libc::POSIX_SPAWN_SETSIGMASK
            | libc::POSIX_SPAWN_SETSIGDEF;
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: init initialises the attributes it is given.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised above.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let flags = libc::c_short::try_from(FLAGS).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the attributes are initialised, in this and the three calls below.
        check(unsafe { libc::posix_spawnattr_setflags(&raw mut attributes.0, flags) })?;
        // SAFETY: as above; 0 means a group named after the child.
        check(unsafe { libc::posix_spawnattr_setpgroup(&raw mut attributes.0, 0) })?;
        // SAFETY: as above; the mask is an initialised set.
        check(unsafe { libc::posix_spawnattr_setsigmask(&raw mut attributes.0, mask.as_ptr()) })?;
        let pipe = SignalMask::of(&[libc::SIGPIPE]);
        // SAFETY: as above; the set is initialised.
        check(unsafe {
            libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, pipe.as_ptr())
        })?;
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new` and destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}
