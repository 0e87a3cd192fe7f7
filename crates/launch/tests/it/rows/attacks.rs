//! The attacks, by row of the threat model. `probe` is a name in `tests/data/probe.py`.

use serde_json::Value;

/// One attack.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) row: u8,
    pub(crate) name: &'static str,
    pub(crate) probe: &'static str,
    pub(crate) setting: Setting,
    pub(crate) judge: Judge,
    pub(crate) control: Control,
    pub(crate) expected: Expected,
}

/// Under what the attack runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// `/` readable, two writable roots, some denied places, network off.
    Plain,
    /// The same with the network on.
    Network,
    /// Nothing writable.
    ReadOnly,
    /// Standard input is a pseudo-terminal of the host.
    Terminal,
    /// Descriptors 6 to 8 are open.
    Inherited,
}

/// What tells whether an attack had its effect.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Judge {
    /// A protected file changed on the host.
    Files,
    /// A listener on the host was reached.
    Arrival,
    /// The probe's own word; the host shows nothing.
    Answer,
}

/// What the control run has to show.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Control {
    Succeeds,
    /// An ordinary user is refused without a sandbox, too.
    RootOnly(&'static str),
    /// Succeeds, unless this machine lacks the thing or keeps it from everybody: then with one of these errors.
    Depends(&'static [&'static str], &'static str),
    /// Cannot succeed anywhere.
    Never(&'static str),
    /// The kernel looks at the (senseless) arguments and says so.
    Reaches(&'static str),
    /// The same for root; an ordinary user gets EPERM.
    RootReaches(&'static [&'static str], &'static str),
}

/// What the sandboxed run has to show.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    /// The probe is told one of these, and nothing happens outside.
    Denied(&'static [&'static str]),
    /// It works, and what it did stays inside.
    Private,
}

impl Attack {
    /// What the report should say about the layer that holds this row, if it does not.
    pub(crate) fn report_fault(&self, report: &Value) -> Option<String> {
        let network = if self.setting == Setting::Network { "not-requested" } else { "enforced" };
        let layers = [
            ("namespaces", "enforced"),
            ("mounts", "enforced"),
            ("landlock", "enforced"),
            ("seccomp", "enforced"),
            ("network", network),
        ];
        layers.iter().find_map(|(layer, state)| {
            let said = &report["layers"][layer];
            (said != state).then(|| format!("layer {layer} is {said}, not {state}"))
        })
    }
}

const fn attack(
    row: u8,
    name: &'static str,
    probe: &'static str,
    judge: Judge,
    control: Control,
    errnos: &'static [&'static str],
) -> Attack {
    let (setting, expected) = (Setting::Plain, Expected::Denied(errnos));
    Attack { row, name, probe, setting, judge, control, expected }
}

impl Attack {
    const fn under(mut self, setting: Setting) -> Self {
        self.setting = setting;
        self
    }

    const fn private(mut self) -> Self {
        self.expected = Expected::Private;
        self
    }
}

use Control::{Depends, Never, Reaches, RootOnly, RootReaches, Succeeds};
use Judge::{Answer, Arrival, Files};

const READ_ONLY: &[&str] = &["EROFS", "EACCES"];
const ACROSS: &[&str] = &["EXDEV", "EROFS", "EACCES"];
const NO_PERMISSION: &[&str] = &["EPERM"];
const HIDDEN: &[&str] = &["EACCES", "ENOENT"];
const NO_PROCESS: &[&str] = &["ESRCH", "EPERM", "ENOENT"];
const CLOSED: &[&str] = &["EBADF"];
const BUSY: &[&str] = &["EBUSY", "EROFS", "EACCES"];
const ROOT_FILE: &str = "root's file";
const INIT: &str = "init is out of reach";
const NO_FAMILY: Control = Depends(&["EAFNOSUPPORT", "EPERM"], "not in this kernel");
const NEEDS_RIGHTS: &str = "needs a capability";

pub(crate) const ATTACKS: &[Attack] = &[
    attack(1, "create outside", "create", Files, Succeeds, READ_ONLY),
    attack(1, "append outside", "append", Files, Succeeds, READ_ONLY),
    attack(1, "truncate outside", "truncate", Files, Succeeds, READ_ONLY),
    attack(1, "unlink outside", "unlink", Files, Succeeds, READ_ONLY),
    attack(1, "mkdir outside", "make-directory", Files, Succeeds, READ_ONLY),
    attack(1, "mkfifo outside", "make-fifo", Files, Succeeds, READ_ONLY),
    attack(1, "create, nothing writable", "create", Files, Succeeds, READ_ONLY)
        .under(Setting::ReadOnly),
    attack(2, "chmod outside", "chmod", Files, Succeeds, READ_ONLY),
    attack(2, "utimes outside", "touch", Files, Succeeds, READ_ONLY),
    attack(2, "setxattr outside", "set-attribute", Files, Succeeds, READ_ONLY),
    attack(2, "chown outside", "chown", Files, Succeeds, READ_ONLY),
    attack(3, "through a symlink", "through-link", Files, Succeeds, READ_ONLY),
    attack(3, "symlink swapped in a loop", "link-race", Files, Succeeds, READ_ONLY),
    attack(4, "hard link in", "hard-link", Files, Succeeds, ACROSS),
    attack(5, "rename in", "rename-in", Files, Succeeds, ACROSS),
    attack(5, "rename out", "rename-out", Files, Succeeds, ACROSS),
    attack(5, "RENAME_EXCHANGE", "rename-exchange", Files, Succeeds, ACROSS),
    attack(6, "/proc/self/root", "self-root", Files, Succeeds, READ_ONLY),
    attack(6, "/proc/self/cwd/..", "self-cwd", Files, Succeeds, READ_ONLY),
    attack(6, "/proc/1/root", "init-root", Files, Depends(&["EACCES"], INIT), HIDDEN),
    attack(6, "/proc/1/cwd", "init-directory", Files, Depends(&["EACCES"], INIT), HIDDEN),
    attack(6, "/proc/1/mem", "init-memory", Answer, Depends(&["EACCES"], INIT), HIDDEN),
    attack(6, "host process's root", "host-root", Files, Succeeds, HIDDEN),
    attack(6, "host process's environ", "host-environ", Answer, Succeeds, HIDDEN),
    attack(6, "host process's fd", "host-descriptors", Answer, Succeeds, HIDDEN),
    attack(6, "host process's mem", "host-memory", Answer, Succeeds, HIDDEN),
    attack(7, "core_pattern", "core-pattern", Answer, RootOnly(ROOT_FILE), READ_ONLY),
    attack(
        7,
        "sysrq-trigger",
        "sysrq",
        Answer,
        Depends(&["ENOENT", "EACCES"], "root's file, or not in this kernel"),
        &["EROFS", "EACCES", "ENOENT"],
    ),
    attack(7, "/sys file", "sysfs", Answer, RootOnly(ROOT_FILE), READ_ONLY),
    attack(7, "cgroup.procs", "cgroup", Answer, RootOnly(ROOT_FILE), READ_ONLY),
    attack(7, "/dev/kmsg", "kernel-log", Answer, RootOnly(ROOT_FILE), HIDDEN),
    attack(7, "raw disk", "raw-disk", Answer, RootOnly(ROOT_FILE), &["EPERM", "EACCES"]),
    attack(7, "mknod", "make-device", Answer, RootOnly(NEEDS_RIGHTS), &["EPERM", "EACCES"]),
    attack(8, "mount tmpfs", "mount-memory", Answer, Succeeds, NO_PERMISSION),
    attack(8, "bind from outside", "bind-outside", Answer, Succeeds, NO_PERMISSION),
    attack(8, "umount a mask", "unmount-mask", Answer, Succeeds, NO_PERMISSION),
    attack(8, "remount a bind rw", "remount-writable", Answer, Succeeds, NO_PERMISSION),
    attack(8, "remount / rw", "remount-root", Answer, Succeeds, NO_PERMISSION),
    attack(8, "fsopen", "file-system-open", Answer, Succeeds, NO_PERMISSION),
    attack(8, "open_tree(CLONE)", "clone-mount", Answer, Succeeds, NO_PERMISSION),
    attack(8, "mount_setattr", "set-mount", Answer, Succeeds, NO_PERMISSION),
    attack(8, "setns", "enter-namespace", Answer, Succeeds, NO_PERMISSION),
    attack(8, "chroot", "change-root", Answer, Succeeds, NO_PERMISSION),
    attack(9, "unshare(NEWUSER)", "unshare-user", Answer, Succeeds, NO_PERMISSION),
    attack(9, "unshare(NEWUSER|NEWNS)", "unshare-mount", Answer, Succeeds, NO_PERMISSION),
    attack(9, "unshare(NEWUSER|NEWNET)", "unshare-network", Answer, Succeeds, NO_PERMISSION),
    attack(9, "clone(NEWUSER)", "clone-user", Answer, Succeeds, NO_PERMISSION),
    attack(9, "clone3(NEWUSER)", "clone3-user", Answer, Succeeds, &["ENOSYS"]),
    attack(10, "ptrace", "trace", Answer, Succeeds, NO_PROCESS),
    attack(10, "ptrace inside", "trace-own-child", Answer, Succeeds, NO_PERMISSION),
    attack(10, "process_vm_readv", "read-memory", Answer, Succeeds, NO_PROCESS),
    attack(10, "process_vm_readv inside", "read-own-memory", Answer, Succeeds, NO_PERMISSION),
    attack(10, "pidfd_open", "process-descriptor", Answer, Succeeds, NO_PROCESS),
    attack(10, "pidfd_getfd inside", "take-descriptor", Answer, Succeeds, NO_PERMISSION),
    attack(10, "kill(0)", "kill", Answer, Succeeds, NO_PROCESS),
    attack(10, "kill(URG)", "kill-everything", Answer, Succeeds, NO_PROCESS),
    attack(11, "abstract stream", "abstract-stream", Arrival, Succeeds, NO_PERMISSION),
    attack(11, "abstract datagram", "abstract-datagram", Arrival, Succeeds, NO_PERMISSION),
    attack(11, "abstract stream, network on", "abstract-stream", Arrival, Succeeds, NO_PERMISSION)
        .under(Setting::Network),
    attack(12, "socket at a path", "path-stream", Arrival, Succeeds, NO_PERMISSION),
    attack(12, "socket at a path, network on", "path-stream", Arrival, Succeeds, NO_PERMISSION)
        .under(Setting::Network),
    attack(
        12,
        "socketpair, connect",
        "pair-connect",
        Answer,
        Never("already connected"),
        NO_PERMISSION,
    ),
    attack(13, "datagram sendto", "path-datagram-sendto", Arrival, Succeeds, NO_PERMISSION),
    attack(13, "datagram sendmsg", "path-datagram-sendmsg", Arrival, Succeeds, NO_PERMISSION),
    attack(13, "datagram sendmmsg", "path-datagram-sendmmsg", Arrival, Succeeds, NO_PERMISSION),
    attack(13, "datagram connect", "path-datagram-connect", Arrival, Succeeds, NO_PERMISSION),
    attack(13, "datagram pair, sendmsg", "pair-sendmsg", Arrival, Succeeds, NO_PERMISSION),
    attack(13, "raw pair, sendmsg", "pair-raw", Arrival, Succeeds, NO_PERMISSION),
    attack(13, "datagram pair, network on", "pair-sendmsg", Arrival, Succeeds, NO_PERMISSION)
        .under(Setting::Network),
    attack(13, "datagram, network on", "path-datagram-sendmsg", Arrival, Succeeds, NO_PERMISSION)
        .under(Setting::Network),
    attack(14, "TCP socket", "tcp", Answer, Succeeds, NO_PERMISSION),
    attack(14, "TCP6 socket", "tcp6", Answer, Succeeds, NO_PERMISSION),
    attack(14, "UDP socket", "udp", Answer, Succeeds, NO_PERMISSION),
    attack(14, "ICMP socket", "icmp", Answer, RootOnly(NEEDS_RIGHTS), NO_PERMISSION),
    attack(14, "netlink socket", "netlink", Answer, Succeeds, NO_PERMISSION),
    attack(14, "packet socket", "packet", Answer, RootOnly(NEEDS_RIGHTS), NO_PERMISSION),
    attack(
        14,
        "packet socket, network on",
        "packet",
        Answer,
        RootOnly(NEEDS_RIGHTS),
        NO_PERMISSION,
    )
    .under(Setting::Network),
    attack(14, "vsock socket", "vsock", Answer, NO_FAMILY, NO_PERMISSION),
    attack(14, "AF_ALG socket", "crypto", Answer, NO_FAMILY, NO_PERMISSION),
    attack(14, "bluetooth socket", "bluetooth", Answer, NO_FAMILY, NO_PERMISSION),
    attack(15, "UDP to the host", "udp-to-host", Arrival, Succeeds, NO_PERMISSION),
    attack(15, "TCP to the host", "tcp-to-host", Arrival, Succeeds, NO_PERMISSION),
    attack(
        15,
        "metadata address",
        "metadata-service",
        Answer,
        Depends(&["ENETUNREACH"], "no route"),
        NO_PERMISSION,
    ),
    attack(16, "TIOCSTI", "type-ahead", Answer, Succeeds, NO_PERMISSION).under(Setting::Terminal),
    attack(16, "TIOCSTI + 2^32", "type-ahead-wide", Answer, Succeeds, NO_PERMISSION)
        .under(Setting::Terminal),
    attack(16, "TIOCLINUX", "console-request", Answer, Reaches("ENOTTY"), NO_PERMISSION)
        .under(Setting::Terminal),
    attack(
        17,
        "io_uring_setup",
        "ring",
        Answer,
        Depends(&["EPERM", "ENOSYS"], "io_uring_disabled"),
        NO_PERMISSION,
    ),
    attack(18, "inherited file", "inherited-file", Files, Succeeds, CLOSED)
        .under(Setting::Inherited),
    attack(18, "inherited directory", "inherited-directory", Files, Succeeds, CLOSED)
        .under(Setting::Inherited),
    attack(18, "inherited socket", "inherited-socket", Arrival, Succeeds, CLOSED)
        .under(Setting::Inherited),
    attack(20, "session keyring", "session-keyring", Answer, Succeeds, NO_PERMISSION),
    attack(20, "add_key", "add-key", Answer, Succeeds, NO_PERMISSION),
    attack(20, "request_key", "request-key", Answer, Succeeds, NO_PERMISSION),
    attack(
        21,
        "bpf",
        "bpf",
        Answer,
        Depends(&["EPERM"], "unprivileged_bpf_disabled"),
        NO_PERMISSION,
    ),
    attack(
        21,
        "perf_event_open",
        "perf-event",
        Answer,
        Depends(&["EACCES", "EPERM"], "perf_event_paranoid"),
        NO_PERMISSION,
    ),
    attack(
        21,
        "userfaultfd",
        "fault-handler",
        Answer,
        Depends(&["EPERM"], "unprivileged_userfaultfd is off"),
        NO_PERMISSION,
    ),
    attack(21, "fanotify_init", "watch-everything", Answer, RootOnly(NEEDS_RIGHTS), NO_PERMISSION),
    attack(
        21,
        "open_by_handle_at",
        "open-by-handle",
        Answer,
        RootOnly(NEEDS_RIGHTS),
        NO_PERMISSION,
    ),
    attack(
        21,
        "kexec_load",
        "load-kernel",
        Answer,
        RootReaches(&["EINVAL", "ENOSYS"], NEEDS_RIGHTS),
        NO_PERMISSION,
    ),
    attack(
        21,
        "init_module",
        "load-module",
        Answer,
        RootReaches(&["ENOEXEC", "ENOSYS"], NEEDS_RIGHTS),
        NO_PERMISSION,
    ),
    attack(
        21,
        "finit_module",
        "load-module-file",
        Answer,
        RootReaches(&["EBADF", "ENOSYS"], NEEDS_RIGHTS),
        NO_PERMISSION,
    ),
    attack(
        22,
        "int 0x80",
        "old-entry",
        Answer,
        Depends(&["SIGSEGV", "ENOSYS"], "no ia32 in this kernel"),
        &["SIGSYS"],
    ),
    attack(
        22,
        "x32",
        "x32-entry",
        Answer,
        Depends(&["ENOSYS"], "no x32 in this kernel"),
        &["ENOSYS"],
    ),
    attack(23, ".git/config", "git-config", Files, Succeeds, READ_ONLY),
    attack(23, ".git/hooks", "git-hook", Files, Succeeds, READ_ONLY),
    attack(23, "mv .git", "git-move", Files, Succeeds, BUSY),
    attack(23, "rm .git/config", "git-remove", Files, Succeeds, READ_ONLY),
    attack(24, "mkdir a missing .git", "git-make", Files, Succeeds, &["EEXIST"]),
    attack(24, "ln -s a missing .git", "git-link", Files, Succeeds, &["EEXIST"]),
    attack(24, "git init", "git-init", Files, Succeeds, READ_ONLY),
    attack(24, "mv onto a missing .git", "git-rename-onto", Files, Succeeds, BUSY),
    attack(24, "fill a missing .git", "git-fill", Files, Succeeds, READ_ONLY),
    attack(26, "mv an ancestor", "move-ancestor", Files, Succeeds, BUSY),
    attack(26, "exchange an ancestor", "exchange-ancestor", Files, Succeeds, BUSY),
    attack(26, "mv the protected place", "move-protected", Files, Succeeds, BUSY),
    attack(26, "rm -rf an ancestor", "remove-ancestor", Files, Succeeds, BUSY),
    attack(26, "mv the writable root", "move-root", Files, Succeeds, BUSY),
    attack(27, "list a denied directory", "list-denied", Answer, Succeeds, HIDDEN),
    attack(27, "read in a denied directory", "read-below-denied", Answer, Succeeds, HIDDEN),
    attack(27, "read a denied file", "read-denied-file", Answer, Succeeds, HIDDEN),
    attack(27, "read denied, outside", "read-denied-outside", Answer, Succeeds, HIDDEN),
    attack(27, "by a symlink", "read-denied-link", Answer, Succeeds, HIDDEN),
    attack(27, "by /proc/self/fd", "read-by-descriptor", Answer, Succeeds, HIDDEN),
    attack(27, "by mv", "move-denied", Answer, Succeeds, &["EBUSY"]),
    attack(27, "by ln", "link-denied", Answer, Succeeds, &["EXDEV"]),
    attack(27, "by chmod", "chmod-denied", Answer, Succeeds, READ_ONLY),
    attack(27, "write into the mask", "write-into-mask", Files, Succeeds, READ_ONLY),
    attack(27, "write onto the mask", "write-onto-mask", Files, Succeeds, READ_ONLY),
    attack(27, "match of a deny glob", "read-glob-match", Answer, Succeeds, HIDDEN),
    attack(30, "/tmp", "write-tmp", Files, Succeeds, READ_ONLY),
    attack(30, "/dev/shm", "write-shared-memory", Files, Succeeds, &[]).private(),
    attack(30, "/var/tmp", "write-var-tmp", Files, Succeeds, READ_ONLY),
];
