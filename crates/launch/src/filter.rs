//! The seccomp filter: which kernel surface a sandboxed command can touch.
//!
//! Everything is allowed but a short list, because the file system and the network are confined by other layers; the
//! list holds what could undo them or reach the kernel's more exposed parts. It is built once a launch. The kernel runs
//! it once per system call number to make its own bitmap, so it is short (80 instructions at most) and looks the number
//! up by halves instead of one after the other. Sources: seccomp(2), `linux/seccomp.h`, `linux/filter.h`.

use crate::sys::Instruction;

const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const REFUSE: u32 = 0x0005_0000 | libc::EPERM.cast_unsigned();
const NOT_A_TERMINAL: u32 = 0x0005_0000 | libc::ENOTTY.cast_unsigned();
const ABSENT: u32 = 0x0005_0000 | libc::ENOSYS.cast_unsigned();

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const ABOVE: u16 = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xC000_00B7;

/// Calls with this bit are x32: the same kernel entry with other numbers.
const X32: u32 = 0x4000_0000;
/// Every `CLONE_NEW…` flag of clone(2).
const NEW_NAMESPACES: u32 = 0x7E02_0000;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;
const SOCKET_TYPE_MASK: u32 = 0xf;

/// Refused whatever the policy says (except `disabled`, which has no filter).
const ALWAYS: &[libc::c_long] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    // a second way to do what this filter looks at
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // mounts and namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // keys outlive the process
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // kernel surface that commands do not need
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// Refused as well while the network is off: with no way to reach or offer an address, a socket is a pipe.
const WITHOUT_NETWORK: &[libc::c_long] = &[
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendmmsg,
];

/// Refused as well where no mount holds the file system: Landlock has no rights for what describes a file.
const METADATA: &[libc::c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// Refused as well where the host's IPC and process namespaces are the command's: what reaches other processes of the
/// same user past Landlock's scopes.
const NEIGHBOURS: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// The same, but a process may do it to itself: a first argument of 0.
const TO_ITSELF: [libc::c_long; 2] = [libc::SYS_prlimit64, libc::SYS_sched_setaffinity];

// One number on every architecture; younger than some C libraries.
const FCHMODAT2: libc::c_long = 452;
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;

/// Builds the filter of a sandbox that has neither mounts nor namespaces of its own: it holds what they would.
pub(crate) fn build_alone(network: bool) -> Vec<Instruction> {
    let mut program = start();
    terminals_only(&mut program, network);
    to_itself(&mut program);
    finish(&mut program, network, &[METADATA, NEIGHBOURS]);
    program
}

/// Builds the filter.
///
/// With `network` off, sockets are connected AF_UNIX pairs in effect: they can neither be aimed nor bound. With it on,
/// `socket` gives the internet families and, as before, pairs: a filter cannot see which path an AF_UNIX socket is
/// connected to, and one of the host's would be a way out (a container daemon, a session bus).
pub(crate) fn build(network: bool) -> Vec<Instruction> {
    let mut program = start();
    refuse_terminal_injection(&mut program);
    finish(&mut program, network, &[]);
    program
}

fn start() -> Vec<Instruction> {
    let mut program = Vec::with_capacity(160);
    check_architecture(&mut program);
    absent(&mut program, libc::SYS_clone3); // its flags are behind a pointer; libc falls back to clone
    refuse_flags(&mut program, libc::SYS_clone, NEW_NAMESPACES);
    program
}

fn finish(program: &mut Vec<Instruction>, network: bool, more: &[&[libc::c_long]]) {
    let mut lists = vec![ALWAYS];
    lists.extend(more);
    if network {
        internet_sockets(program);
        unix_streams_only(program, &[libc::SYS_socketpair]);
    } else {
        refuse_addressed_send(program);
        unix_streams_only(program, &[libc::SYS_socket, libc::SYS_socketpair]);
        lists.push(WITHOUT_NETWORK);
    }
    refuse_listed(program, &lists);
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, jump_true: 0, jump_false: 0, operand: offset }
}

fn jump(code: u16, operand: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code, jump_true, jump_false, operand }
}

fn answer(verdict: u32) -> Instruction {
    Instruction { code: RETURN, jump_true: 0, jump_false: 0, operand: verdict }
}

/// Offset of the low 32 bits of a system call's argument in `struct seccomp_data` (little endian).
fn argument(index: u32) -> u32 {
    16 + 8 * index
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

fn check_architecture(program: &mut Vec<Instruction>) {
    program.extend([
        load(ARCHITECTURE),
        jump(EQUAL, NATIVE, 1, 0),
        answer(KILL_PROCESS),
        load(NUMBER),
    ]);
    if cfg!(target_arch = "x86_64") {
        program.extend([jump(AT_LEAST, X32, 0, 1), answer(ABSENT)]);
    }
}

fn absent(program: &mut Vec<Instruction>, call: libc::c_long) {
    program.extend([jump(EQUAL, number(call), 0, 1), answer(ABSENT)]);
}

fn refuse_flags(program: &mut Vec<Instruction>, call: libc::c_long, flags: u32) {
    program.extend([
        jump(EQUAL, number(call), 0, 4),
        load(argument(0)),
        jump(ANY_BIT, flags, 0, 1),
        answer(REFUSE),
        answer(ALLOW),
    ]);
}

/// The kernel looks at 32 bits of an ioctl's request, so only those are compared.
fn refuse_terminal_injection(program: &mut Vec<Instruction>) {
    program.extend([
        jump(EQUAL, number(libc::SYS_ioctl), 0, 5),
        load(argument(1)),
        jump(EQUAL, TIOCSTI, 1, 0),
        jump(EQUAL, TIOCLINUX, 0, 1),
        answer(REFUSE),
        answer(ALLOW),
    ]);
}

/// Requests to terminals (and with `network` to sockets) and no others: some file systems change files by a request on
/// a descriptor that is open for reading, past Landlock.
fn terminals_only(program: &mut Vec<Instruction>, network: bool) {
    const KIND: u32 = 0xff00;
    const TERMINAL: u32 = 0x5400;
    const SOCKET: u32 = 0x8900;
    let other = if network { SOCKET } else { TERMINAL };
    program.extend([
        jump(EQUAL, number(libc::SYS_ioctl), 0, 9),
        load(argument(1)),
        jump(EQUAL, TIOCSTI, 4, 0),
        jump(EQUAL, TIOCLINUX, 3, 0),
        Instruction { code: AND, jump_true: 0, jump_false: 0, operand: KIND },
        jump(EQUAL, TERMINAL, 2, 0),
        jump(EQUAL, other, 1, 2),
        answer(REFUSE),
        answer(ALLOW),
        answer(NOT_A_TERMINAL),
    ]);
}

fn to_itself(program: &mut Vec<Instruction>) {
    let [one, other] = TO_ITSELF;
    program.extend([
        jump(EQUAL, number(one), 1, 0),
        jump(EQUAL, number(other), 0, 4),
        load(argument(0)),
        jump(EQUAL, 0, 0, 1),
        answer(ALLOW),
        answer(REFUSE),
    ]);
}

/// `sendto` with an address could aim an inherited socket somewhere else.
fn refuse_addressed_send(program: &mut Vec<Instruction>) {
    program.extend([
        jump(EQUAL, number(libc::SYS_sendto), 0, 6),
        load(argument(4)),
        jump(EQUAL, 0, 0, 2),
        load(argument(4) + 4),
        jump(EQUAL, 0, 1, 0),
        answer(REFUSE),
        answer(ALLOW),
    ]);
}

/// SOCK_DGRAM (and SOCK_RAW, its alias in AF_UNIX) can be aimed at any named socket per message, so it is not offered.
fn unix_streams_only(program: &mut Vec<Instruction>, calls: &[libc::c_long]) {
    const STREAM: u32 = libc::SOCK_STREAM.cast_unsigned();
    const SEQUENCED: u32 = libc::SOCK_SEQPACKET.cast_unsigned();
    const BODY: u8 = 8;
    let last = calls.len().saturating_sub(1);
    for (index, call) in calls.iter().enumerate() {
        let to_body = u8::try_from(last - index).unwrap_or(u8::MAX);
        let otherwise = if index == last { BODY } else { 0 };
        program.push(jump(EQUAL, number(*call), to_body, otherwise));
    }
    program.extend([
        load(argument(0)),
        jump(EQUAL, libc::AF_UNIX.cast_unsigned(), 0, 5),
        load(argument(1)),
        Instruction { code: AND, jump_true: 0, jump_false: 0, operand: SOCKET_TYPE_MASK },
        jump(EQUAL, STREAM, 1, 0),
        jump(EQUAL, SEQUENCED, 0, 1),
        answer(ALLOW),
        answer(REFUSE),
    ]);
}

/// AF_NETLINK stays for NETLINK_ROUTE: resolvers list interfaces with it, and without capabilities it can only read.
fn internet_sockets(program: &mut Vec<Instruction>) {
    program.extend([
        jump(EQUAL, number(libc::SYS_socket), 0, 8),
        load(argument(0)),
        jump(EQUAL, libc::AF_INET.cast_unsigned(), 5, 0),
        jump(EQUAL, libc::AF_INET6.cast_unsigned(), 4, 0),
        jump(EQUAL, libc::AF_NETLINK.cast_unsigned(), 0, 2),
        load(argument(2)),
        jump(EQUAL, libc::NETLINK_ROUTE.cast_unsigned(), 1, 0),
        answer(REFUSE),
        answer(ALLOW),
    ]);
}

/// Neighbouring call numbers, first and last.
type Range = (u32, u32);

/// Ends the program: a search by halves among the listed numbers, then the two answers.
fn refuse_listed(program: &mut Vec<Instruction>, lists: &[&[libc::c_long]]) {
    let ranges = ranges(lists.iter().copied().flatten().map(|call| number(*call)).collect());
    let Some((lowest, _)) = ranges.first() else { return program.push(answer(ALLOW)) };
    let start = program.len() + 1;
    let mut search = Vec::with_capacity(2 * ranges.len());
    halve(&mut search, &ranges);
    program.push(jump(AT_LEAST, *lowest, 0, u8::try_from(search.len()).unwrap_or(u8::MAX)));
    program.extend(search);
    let end = program.len();
    for (index, instruction) in program.iter_mut().enumerate().skip(start) {
        if instruction.code == ABOVE {
            let to_answers = u8::try_from(end - index - 1).unwrap_or(u8::MAX);
            *instruction = jump(ABOVE, instruction.operand, to_answers, to_answers + 1);
        }
    }
    program.extend([answer(ALLOW), answer(REFUSE)]);
}

fn ranges(mut calls: Vec<u32>) -> Vec<Range> {
    calls.sort_unstable();
    let mut ranges: Vec<Range> = Vec::new();
    for call in calls {
        match ranges.last_mut() {
            Some((_, last)) if call <= *last + 1 => *last = call,
            _ => ranges.push((call, call)),
        }
    }
    ranges
}

/// Finds the range that starts at or below the number, and compares with its end; the jumps from there are filled in
/// by the caller.
fn halve(search: &mut Vec<Instruction>, ranges: &[Range]) {
    if let [(_, last)] = ranges {
        return search.push(jump(ABOVE, *last, 0, 0));
    }
    let (below, above) = ranges.split_at(ranges.len() / 2);
    let Some((first, _)) = above.first() else { return };
    let at = search.len();
    search.push(jump(AT_LEAST, *first, 0, 0));
    halve(search, below);
    let skipped = u8::try_from(search.len() - at - 1).unwrap_or(u8::MAX);
    if let Some(instruction) = search.get_mut(at) {
        instruction.jump_true = skipped;
    }
    halve(search, above);
}

#[cfg(test)]
mod tests;
