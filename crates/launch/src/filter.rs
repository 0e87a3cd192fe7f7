//! The seccomp filter: which kernel surface a sandboxed command can touch.
//!
//! Everything is allowed but a short list, because the file system and the network are confined by other layers; the
//! list holds what could undo them or reach the kernel's more exposed parts. It is a table built once a launch (the
//! kernel runs it once per system call number to make its own bitmap, so it has to stay short: 80 instructions at
//! most). Sources: seccomp(2), `linux/seccomp.h`, `linux/filter.h`.

use crate::sys::Instruction;

const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const REFUSE: u32 = 0x0005_0000 | libc::EPERM.cast_unsigned();
const ABSENT: u32 = 0x0005_0000 | libc::ENOSYS.cast_unsigned();

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
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
    libc::SYS_init_module,
    libc::SYS_finit_module,
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

/// Builds the filter. With `network` off, sockets are AF_UNIX streams only; with it on, the usual internet families.
pub(crate) fn build(network: bool) -> Vec<Instruction> {
    let mut program = Vec::with_capacity(96);
    check_architecture(&mut program);
    absent(&mut program, libc::SYS_clone3); // its flags are behind a pointer; libc falls back to clone
    refuse_flags(&mut program, libc::SYS_clone, NEW_NAMESPACES);
    refuse_terminal_injection(&mut program);
    if network {
        sockets_by_family(&mut program);
        refuse_listed(&mut program, &[ALWAYS]);
    } else {
        refuse_addressed_send(&mut program);
        unix_streams_only(&mut program);
        refuse_listed(&mut program, &[ALWAYS, WITHOUT_NETWORK]);
    }
    program
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
fn unix_streams_only(program: &mut Vec<Instruction>) {
    const STREAM: u32 = libc::SOCK_STREAM.cast_unsigned();
    const SEQUENCED: u32 = libc::SOCK_SEQPACKET.cast_unsigned();
    program.extend([
        jump(EQUAL, number(libc::SYS_socket), 1, 0),
        jump(EQUAL, number(libc::SYS_socketpair), 0, 8),
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

/// AF_NETLINK stays: resolvers list interfaces with it, and without capabilities it can only read.
fn sockets_by_family(program: &mut Vec<Instruction>) {
    program.extend([
        jump(EQUAL, number(libc::SYS_socket), 0, 7),
        load(argument(0)),
        jump(EQUAL, libc::AF_UNIX.cast_unsigned(), 4, 0),
        jump(EQUAL, libc::AF_INET.cast_unsigned(), 3, 0),
        jump(EQUAL, libc::AF_INET6.cast_unsigned(), 2, 0),
        jump(EQUAL, libc::AF_NETLINK.cast_unsigned(), 1, 0),
        answer(REFUSE),
        answer(ALLOW),
    ]);
}

fn refuse_listed(program: &mut Vec<Instruction>, lists: &[&[libc::c_long]]) {
    let calls: Vec<u32> = lists.iter().copied().flatten().map(|call| number(*call)).collect();
    for (index, call) in calls.iter().enumerate() {
        let to_refusal = u8::try_from(calls.len() - index).unwrap_or(u8::MAX);
        program.push(jump(EQUAL, *call, to_refusal, 0));
    }
    program.extend([answer(ALLOW), answer(REFUSE)]);
}

#[cfg(test)]
mod tests;
