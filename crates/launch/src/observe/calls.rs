//! Which calls are asked about, and which of their arguments say what.

use super::{ObservedCall, ObservedUse};
use crate::sys::Notice;

/// Directory and path of a call by the positions of its arguments.
#[derive(Clone, Copy)]
enum At {
    /// A path about the working directory.
    Path(usize),
    /// A descriptor and a path.
    Both(usize, usize),
    /// A `sockaddr` and its length.
    Socket(usize, usize),
}

/// What is done; flags by the position of their argument.
#[derive(Clone, Copy)]
enum Doing {
    Open(usize),
    OpenHow(usize),
    Look,
    Change,
    Execute,
    Connect,
    Bind,
}

struct Watched(libc::c_long, Doing, &'static [At]);

use At::{Both, Path, Socket};
use Doing::{Bind, Change, Connect, Execute, Look, Open, OpenHow};

/// Calls that every architecture has.
const EVERYWHERE: &[Watched] = &[
    Watched(libc::SYS_openat, Open(2), &[Both(0, 1)]),
    Watched(libc::SYS_openat2, OpenHow(2), &[Both(0, 1)]),
    Watched(libc::SYS_newfstatat, Look, &[Both(0, 1)]),
    Watched(libc::SYS_statx, Look, &[Both(0, 1)]),
    Watched(libc::SYS_faccessat, Look, &[Both(0, 1)]),
    Watched(libc::SYS_faccessat2, Look, &[Both(0, 1)]),
    Watched(libc::SYS_readlinkat, Look, &[Both(0, 1)]),
    Watched(libc::SYS_chdir, Look, &[Path(0)]),
    Watched(libc::SYS_inotify_add_watch, Look, &[Path(1)]),
    Watched(libc::SYS_execve, Execute, &[Path(0)]),
    Watched(libc::SYS_execveat, Execute, &[Both(0, 1)]),
    Watched(libc::SYS_mkdirat, Change, &[Both(0, 1)]),
    Watched(libc::SYS_mknodat, Change, &[Both(0, 1)]),
    Watched(libc::SYS_unlinkat, Change, &[Both(0, 1)]),
    Watched(libc::SYS_truncate, Change, &[Path(0)]),
    Watched(libc::SYS_fchmodat, Change, &[Both(0, 1)]),
    Watched(libc::SYS_fchmodat2, Change, &[Both(0, 1)]),
    Watched(libc::SYS_fchownat, Change, &[Both(0, 1)]),
    Watched(libc::SYS_utimensat, Change, &[Both(0, 1)]),
    Watched(libc::SYS_symlinkat, Change, &[Both(1, 2)]),
    Watched(libc::SYS_renameat2, Change, &[Both(0, 1), Both(2, 3)]),
    Watched(libc::SYS_linkat, Change, &[Both(0, 1), Both(2, 3)]),
    Watched(libc::SYS_setxattr, Change, &[Path(0)]),
    Watched(libc::SYS_lsetxattr, Change, &[Path(0)]),
    Watched(libc::SYS_connect, Connect, &[Socket(1, 2)]),
    Watched(libc::SYS_sendto, Connect, &[Socket(4, 5)]),
    Watched(libc::SYS_bind, Bind, &[Socket(1, 2)]),
];

/// Calls that younger architectures do not have.
#[cfg(target_arch = "x86_64")]
const OLD: &[Watched] = &[
    Watched(libc::SYS_open, Open(1), &[Path(0)]),
    Watched(libc::SYS_creat, Change, &[Path(0)]),
    Watched(libc::SYS_stat, Look, &[Path(0)]),
    Watched(libc::SYS_lstat, Look, &[Path(0)]),
    Watched(libc::SYS_access, Look, &[Path(0)]),
    Watched(libc::SYS_readlink, Look, &[Path(0)]),
    Watched(libc::SYS_mkdir, Change, &[Path(0)]),
    Watched(libc::SYS_mknod, Change, &[Path(0)]),
    Watched(libc::SYS_rmdir, Change, &[Path(0)]),
    Watched(libc::SYS_unlink, Change, &[Path(0)]),
    Watched(libc::SYS_chmod, Change, &[Path(0)]),
    Watched(libc::SYS_chown, Change, &[Path(0)]),
    Watched(libc::SYS_lchown, Change, &[Path(0)]),
    Watched(libc::SYS_utime, Change, &[Path(0)]),
    Watched(libc::SYS_utimes, Change, &[Path(0)]),
    Watched(libc::SYS_futimesat, Change, &[Both(0, 1)]),
    Watched(libc::SYS_symlink, Change, &[Path(1)]),
    Watched(libc::SYS_rename, Change, &[Path(0), Path(1)]),
    Watched(libc::SYS_link, Change, &[Path(0), Path(1)]),
    Watched(libc::SYS_renameat, Change, &[Both(0, 1), Both(2, 3)]),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Watched] = &[];

fn watched() -> impl Iterator<Item = &'static Watched> {
    EVERYWHERE.iter().chain(OLD)
}

/// Numbers of the calls that are asked about.
pub(super) fn numbers() -> impl Iterator<Item = u32> {
    watched().filter_map(|Watched(number, _, _)| u32::try_from(*number).ok())
}

/// What a call names; nothing where it is about a descriptor only.
pub(super) fn read(notice: &Notice) -> Vec<ObservedCall> {
    let wanted = libc::c_long::from(notice.number);
    let found = watched().find(|Watched(number, _, _)| *number == wanted);
    let Some(Watched(_, doing, places)) = found else { return Vec::new() };
    let argument = |index: usize| notice.arguments.get(index).copied().unwrap_or_default();
    let what = match doing {
        Open(flags) => ObservedUse::Open { flags: argument(*flags) },
        OpenHow(how) => ObservedUse::OpenHow { address: argument(*how) },
        Look => ObservedUse::Look,
        Change => ObservedUse::Change,
        Execute => ObservedUse::Execute,
        Connect => ObservedUse::Connect,
        Bind => ObservedUse::Bind,
    };
    let calls = places.iter().map(|place| {
        let (directory, address, length) = match place {
            Path(path) => (None, argument(*path), 0),
            Both(directory, path) => (descriptor(argument(*directory)), argument(*path), 0),
            Socket(address, length) => (None, argument(*address), argument(*length)),
        };
        ObservedCall { thread: notice.thread, what, directory, address, length }
    });
    // A path that is null means the descriptor itself; one to send to, where the socket is connected to.
    calls.filter(|call| call.address != 0).collect()
}

/// The kernel looks at 32 bits of it.
fn descriptor(argument: u64) -> Option<i32> {
    let low = u32::try_from(argument & u64::from(u32::MAX)).ok()?.cast_signed();
    (low != libc::AT_FDCWD).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(number: libc::c_long, arguments: [u64; 6]) -> Vec<ObservedCall> {
        let number = i32::try_from(number).unwrap();
        read(&Notice { id: 1, thread: 7, number, arguments })
    }

    #[test]
    fn a_call_says_what_it_names_and_where() {
        let here = u64::from(libc::AT_FDCWD.cast_unsigned());
        let flags = u64::from(libc::O_CREAT.cast_unsigned());
        let opened = read_of(libc::SYS_openat, [here, 0x1000, flags, 0, 0, 0]);
        let what = ObservedUse::Open { flags };
        let call = ObservedCall { thread: 7, what, directory: None, address: 0x1000, length: 0 };
        assert_eq!(opened, [call]);
        // The upper half of a descriptor is not the kernel's business.
        let below = read_of(libc::SYS_unlinkat, [3 | (1 << 40), 0x1000, 0, 0, 0, 0]);
        assert_eq!((below[0].directory, below[0].what), (Some(3), ObservedUse::Change));
        let renamed = read_of(libc::SYS_renameat2, [here, 0x1000, 5, 0x2000, 0, 0]);
        assert_eq!(renamed.iter().map(|call| call.address).collect::<Vec<_>>(), [0x1000, 0x2000]);
        // What gets another name is had by that.
        let linked = read_of(libc::SYS_linkat, [here, 0x1000, 5, 0x2000, 0, 0]);
        assert_eq!(linked.iter().map(|call| call.address).collect::<Vec<_>>(), [0x1000, 0x2000]);
        let how = read_of(libc::SYS_openat2, [here, 0x1000, 0x3000, 24, 0, 0]);
        assert_eq!(how[0].what, ObservedUse::OpenHow { address: 0x3000 });
        let reached = read_of(libc::SYS_connect, [4, 0x1000, 16, 0, 0, 0]);
        assert_eq!((reached[0].address, reached[0].length), (0x1000, 16));
    }

    #[test]
    fn a_call_about_a_descriptor_only_names_nothing() {
        assert_eq!(read_of(libc::SYS_utimensat, [3, 0, 0, 0, 0, 0]), []);
        assert_eq!(read_of(libc::SYS_sendto, [3, 0x1000, 5, 0, 0, 0]), [], "it is connected");
        assert_eq!(read_of(libc::SYS_getpid, [0; 6]), []);
    }

    #[test]
    fn each_call_is_asked_about_once() {
        let mut all: Vec<u32> = numbers().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(!all.contains(&u32::try_from(libc::SYS_sendmsg).unwrap()), "it sends the listener");
        assert!(!all.contains(&u32::try_from(libc::SYS_write).unwrap()), "it says why not");
    }
}
