//! System calls by architecture: their numbers, as in the kernel's tables (`arch/x86/entry/syscalls/syscall_64.tbl`,
//! `include/uapi/asm-generic/unistd.h`).

/// Which kernel table the numbers of a filter are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// That of this program. Others have no filter: a launch is refused there before it comes to one.
    pub(super) const NATIVE: Self =
        if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 };

    /// `AUDIT_ARCH_…` of `linux/audit.h`: what the kernel says a call was made for.
    pub(super) fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::Aarch64 => 0xC000_00B7,
        }
    }
}

/// One system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    x86_64: u32,
    aarch64: Option<u32>,
}

impl Call {
    /// Its number; `None` if the architecture never had it.
    pub(super) fn number(self, architecture: Architecture) -> Option<u32> {
        match architecture {
            Architecture::X86_64 => Some(self.x86_64),
            Architecture::Aarch64 => self.aarch64,
        }
    }
}

macro_rules! calls {
    ($known:ident: $($name:ident = $libc:ident($x86_64:literal, $aarch64:literal);)*) => {
        $(pub(in crate::program) const $name: Call = Call { x86_64: $x86_64, aarch64: Some($aarch64) };)*

        /// The same with the C library's number for this architecture.
        #[cfg(test)]
        pub(in crate::program) const $known: &[(Call, libc::c_long)] = &[$(($name, libc::$libc)),*];
    };
}

/// Calls that only x86_64 has; younger architectures have their `…at` forms alone.
macro_rules! old_calls {
    ($($name:ident = $libc:ident($x86_64:literal);)*) => {
        $(pub(in crate::program) const $name: Call = Call { x86_64: $x86_64, aarch64: None };)*

        /// The same with the C library's number.
        #[cfg(all(test, target_arch = "x86_64"))]
        pub(super) const OLD_KNOWN: &[(Call, libc::c_long)] = &[$(($name, libc::$libc)),*];
    };
}

calls! {
    KNOWN:
    ACCEPT = SYS_accept(43, 202);
    ACCEPT4 = SYS_accept4(288, 242);
    ADD_KEY = SYS_add_key(248, 217);
    BIND = SYS_bind(49, 200);
    BPF = SYS_bpf(321, 280);
    CLONE = SYS_clone(56, 220);
    CLONE3 = SYS_clone3(435, 435);
    CONNECT = SYS_connect(42, 203);
    DELETE_MODULE = SYS_delete_module(176, 106);
    FANOTIFY_INIT = SYS_fanotify_init(300, 262);
    FCHMOD = SYS_fchmod(91, 52);
    FCHMODAT = SYS_fchmodat(268, 53);
    FCHOWN = SYS_fchown(93, 55);
    FCHOWNAT = SYS_fchownat(260, 54);
    FINIT_MODULE = SYS_finit_module(313, 273);
    FREMOVEXATTR = SYS_fremovexattr(199, 16);
    FSCONFIG = SYS_fsconfig(431, 431);
    FSETXATTR = SYS_fsetxattr(190, 7);
    FSMOUNT = SYS_fsmount(432, 432);
    FSOPEN = SYS_fsopen(430, 430);
    FSPICK = SYS_fspick(433, 433);
    INIT_MODULE = SYS_init_module(175, 105);
    IO_URING_ENTER = SYS_io_uring_enter(426, 426);
    IO_URING_REGISTER = SYS_io_uring_register(427, 427);
    IO_URING_SETUP = SYS_io_uring_setup(425, 425);
    IOCTL = SYS_ioctl(16, 29);
    IOPRIO_SET = SYS_ioprio_set(251, 30);
    KEXEC_FILE_LOAD = SYS_kexec_file_load(320, 294);
    KEXEC_LOAD = SYS_kexec_load(246, 104);
    KEYCTL = SYS_keyctl(250, 219);
    LISTEN = SYS_listen(50, 201);
    LREMOVEXATTR = SYS_lremovexattr(198, 15);
    LSETXATTR = SYS_lsetxattr(189, 6);
    MOUNT = SYS_mount(165, 40);
    MOUNT_SETATTR = SYS_mount_setattr(442, 442);
    MOVE_MOUNT = SYS_move_mount(429, 429);
    MQ_OPEN = SYS_mq_open(240, 180);
    MQ_UNLINK = SYS_mq_unlink(241, 181);
    MSGCTL = SYS_msgctl(71, 187);
    MSGGET = SYS_msgget(68, 186);
    MSGRCV = SYS_msgrcv(70, 188);
    MSGSND = SYS_msgsnd(69, 189);
    OPEN_BY_HANDLE_AT = SYS_open_by_handle_at(304, 265);
    OPEN_TREE = SYS_open_tree(428, 428);
    PERF_EVENT_OPEN = SYS_perf_event_open(298, 241);
    PIDFD_GETFD = SYS_pidfd_getfd(438, 438);
    PIVOT_ROOT = SYS_pivot_root(155, 41);
    PRLIMIT64 = SYS_prlimit64(302, 261);
    PROCESS_VM_READV = SYS_process_vm_readv(310, 270);
    PROCESS_VM_WRITEV = SYS_process_vm_writev(311, 271);
    PTRACE = SYS_ptrace(101, 117);
    REMOVEXATTR = SYS_removexattr(197, 14);
    REQUEST_KEY = SYS_request_key(249, 218);
    SCHED_SETAFFINITY = SYS_sched_setaffinity(203, 122);
    SCHED_SETATTR = SYS_sched_setattr(314, 274);
    SCHED_SETPARAM = SYS_sched_setparam(142, 118);
    SCHED_SETSCHEDULER = SYS_sched_setscheduler(144, 119);
    SEMCTL = SYS_semctl(66, 191);
    SEMGET = SYS_semget(64, 190);
    SEMOP = SYS_semop(65, 193);
    SEMTIMEDOP = SYS_semtimedop(220, 192);
    SENDMMSG = SYS_sendmmsg(307, 269);
    SENDMSG = SYS_sendmsg(46, 211);
    SENDTO = SYS_sendto(44, 206);
    SETNS = SYS_setns(308, 268);
    SETPRIORITY = SYS_setpriority(141, 140);
    SETXATTR = SYS_setxattr(188, 5);
    SHMAT = SYS_shmat(30, 196);
    SHMCTL = SYS_shmctl(31, 195);
    SHMDT = SYS_shmdt(67, 197);
    SHMGET = SYS_shmget(29, 194);
    SOCKET = SYS_socket(41, 198);
    SOCKETPAIR = SYS_socketpair(53, 199);
    UMOUNT2 = SYS_umount2(166, 39);
    UNSHARE = SYS_unshare(272, 97);
    USERFAULTFD = SYS_userfaultfd(323, 282);
    UTIMENSAT = SYS_utimensat(280, 88);
}

old_calls! {
    CHMOD = SYS_chmod(90);
    CHOWN = SYS_chown(92);
    FUTIMESAT = SYS_futimesat(261);
    LCHOWN = SYS_lchown(94);
    UTIME = SYS_utime(132);
    UTIMES = SYS_utimes(235);
}

// Younger than some C libraries; one number everywhere.
pub(super) const FCHMODAT2: Call = young(452);
pub(super) const SETXATTRAT: Call = young(463);
pub(super) const REMOVEXATTRAT: Call = young(466);
pub(super) const FILE_SETATTR: Call = young(469);

const fn young(number: u32) -> Call {
    Call { x86_64: number, aarch64: Some(number) }
}

/// Calls that tests make.
#[cfg(test)]
pub(super) mod made_by_tests {
    use super::Call;

    calls! {
        KNOWN:
        CHROOT = SYS_chroot(161, 51);
        CLOSE_RANGE = SYS_close_range(436, 436);
        EXECVE = SYS_execve(59, 221);
        FACCESSAT2 = SYS_faccessat2(439, 439);
        FUTEX = SYS_futex(202, 98);
        GETRANDOM = SYS_getrandom(318, 278);
        LANDLOCK_RESTRICT_SELF = SYS_landlock_restrict_self(446, 446);
        MMAP = SYS_mmap(9, 222);
        OPENAT = SYS_openat(257, 56);
        OPENAT2 = SYS_openat2(437, 437);
        PIDFD_OPEN = SYS_pidfd_open(434, 434);
        PIDFD_SEND_SIGNAL = SYS_pidfd_send_signal(424, 424);
        READ = SYS_read(0, 63);
        RECVMSG = SYS_recvmsg(47, 212);
        RSEQ = SYS_rseq(334, 293);
        SECCOMP = SYS_seccomp(317, 277);
        STATX = SYS_statx(332, 291);
        WAIT4 = SYS_wait4(61, 260);
        WRITE = SYS_write(1, 64);
    }
}
