//! Everything is allowed but a short list, because the file system and the network are confined by other layers; the
//! list holds what could undo them or reach the kernel's more exposed parts. It is built once a launch. The kernel runs
//! it once per system call number to make its own bitmap, so it is short (80 instructions at most) and looks the number
//! up by halves instead of one after the other. Sources: seccomp(2), `linux/seccomp.h`, `linux/filter.h`.

mod calls;
mod proxied;

use calls::{Architecture, Call};
pub use proxied::build_proxied;

/// One classic BPF instruction, laid out as `struct sock_filter` (seccomp(2)).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// How many instructions to leave out if what it compares holds.
    pub jump_true: u8,
    /// And if it does not.
    pub jump_false: u8,
    /// A number, or an offset in `struct seccomp_data`.
    pub operand: u32,
}

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

/// Calls with this bit are x32: the same kernel entry with other numbers.
const X32: u32 = 0x4000_0000;
/// Every `CLONE_NEW…` flag of clone(2).
const NEW_NAMESPACES: u32 = 0x7E02_0000;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;
const SOCKET_TYPE_MASK: u32 = 0xf;
/// Connects and sends in one call.
const FAST_OPEN: u32 = libc::MSG_FASTOPEN.cast_unsigned();

/// A request of ioctl(2) that no driver has.
pub const QUESTION: u32 = 0x504C_4E49;
/// The number of the error that these filters answer it with: no kernel and no other filter says that.
pub const ANSWER: i32 = 1009;
const ANSWERED: u32 = libc::SECCOMP_RET_ERRNO | ANSWER.cast_unsigned();

/// Refused whatever the policy says (except `disabled`, which has no filter).
const ALWAYS: &[Call] = &[
    // other processes
    calls::PTRACE,
    calls::PROCESS_VM_READV,
    calls::PROCESS_VM_WRITEV,
    calls::PIDFD_GETFD,
    // a second way to do what this filter looks at
    calls::IO_URING_SETUP,
    calls::IO_URING_ENTER,
    calls::IO_URING_REGISTER,
    // mounts and namespaces
    calls::MOUNT,
    calls::UMOUNT2,
    calls::PIVOT_ROOT,
    calls::SETNS,
    calls::UNSHARE,
    calls::OPEN_TREE,
    calls::MOVE_MOUNT,
    calls::FSOPEN,
    calls::FSCONFIG,
    calls::FSMOUNT,
    calls::FSPICK,
    calls::MOUNT_SETATTR,
    // keys outlive the process
    calls::KEYCTL,
    calls::ADD_KEY,
    calls::REQUEST_KEY,
    // kernel surface that commands do not need
    calls::BPF,
    calls::USERFAULTFD,
    calls::PERF_EVENT_OPEN,
    calls::FANOTIFY_INIT,
    calls::OPEN_BY_HANDLE_AT,
    calls::KEXEC_LOAD,
    calls::KEXEC_FILE_LOAD,
    calls::INIT_MODULE,
    calls::FINIT_MODULE,
    calls::DELETE_MODULE,
];

/// Refused as well while the network is off: with no way to reach or offer an address, a socket is a pipe.
const WITHOUT_NETWORK: &[Call] =
    &[calls::CONNECT, calls::BIND, calls::LISTEN, calls::ACCEPT, calls::ACCEPT4, calls::SENDMMSG];

/// Refused as well where no mount holds the file system: Landlock has no rights for what describes a file.
const METADATA: &[Call] = &[
    calls::CHMOD,
    calls::FCHMOD,
    calls::FCHMODAT,
    calls::FCHMODAT2,
    calls::CHOWN,
    calls::LCHOWN,
    calls::FCHOWN,
    calls::FCHOWNAT,
    calls::UTIME,
    calls::UTIMES,
    calls::FUTIMESAT,
    calls::UTIMENSAT,
    calls::SETXATTR,
    calls::LSETXATTR,
    calls::FSETXATTR,
    calls::SETXATTRAT,
    calls::REMOVEXATTR,
    calls::LREMOVEXATTR,
    calls::FREMOVEXATTR,
    calls::REMOVEXATTRAT,
    calls::FILE_SETATTR,
];

/// Refused as well where the host's IPC and process namespaces are the command's: what reaches other processes of the
/// same user past Landlock's scopes.
const NEIGHBOURS: &[Call] = &[
    calls::SHMGET,
    calls::SHMAT,
    calls::SHMCTL,
    calls::SHMDT,
    calls::SEMGET,
    calls::SEMOP,
    calls::SEMCTL,
    calls::SEMTIMEDOP,
    calls::MSGGET,
    calls::MSGSND,
    calls::MSGRCV,
    calls::MSGCTL,
    calls::MQ_OPEN,
    calls::MQ_UNLINK,
    calls::SETPRIORITY,
    calls::IOPRIO_SET,
    calls::SCHED_SETSCHEDULER,
    calls::SCHED_SETPARAM,
    calls::SCHED_SETATTR,
];

/// The same, but a process may do it to itself: a first argument of 0.
const TO_ITSELF: [Call; 2] = [calls::PRLIMIT64, calls::SCHED_SETAFFINITY];

/// Builds the filter of a sandbox that has neither mounts nor namespaces of its own: it holds what they would.
pub fn build_alone(network: bool) -> Vec<Instruction> {
    build_alone_for(Architecture::NATIVE, network)
}

fn build_alone_for(architecture: Architecture, network: bool) -> Vec<Instruction> {
    let mut program = start(architecture);
    refuse_flags(&mut program, calls::CLONE, NEW_NAMESPACES);
    terminals_only(&mut program, network);
    to_itself(&mut program);
    finish(&mut program, network, &[METADATA, NEIGHBOURS]);
    program.instructions
}

/// Builds the filter.
///
/// With `network` off, sockets are connected AF_UNIX pairs in effect: they can neither be aimed nor bound. With it on,
/// `socket` gives the internet families and, as before, pairs: a filter cannot see which path an AF_UNIX socket is
/// connected to, and one of the host's would be a way out (a container daemon, a session bus).
pub fn build(network: bool) -> Vec<Instruction> {
    build_for(Architecture::NATIVE, network)
}

fn build_for(architecture: Architecture, network: bool) -> Vec<Instruction> {
    let mut program = start(architecture);
    refuse_namespaces_and_injection(&mut program);
    finish(&mut program, network, &[]);
    program.instructions
}

/// Builds a filter that asks about the calls with these numbers and refuses nothing, but a second way to make them.
pub fn asking(numbers: impl IntoIterator<Item = u32>) -> Vec<Instruction> {
    let mut program = Program { architecture: Architecture::NATIVE, instructions: Vec::new() };
    program.extend([
        load(ARCHITECTURE),
        jump(EQUAL, program.architecture.audit(), 1, 0),
        answer(ALLOW),
        load(NUMBER),
    ]);
    absent(&mut program, calls::IO_URING_SETUP);
    for number in numbers {
        program.extend([jump(EQUAL, number, 0, 1), answer(libc::SECCOMP_RET_USER_NOTIF)]);
    }
    program.push(answer(ALLOW));
    program.instructions
}

/// A filter in the making.
struct Program {
    architecture: Architecture,
    instructions: Vec<Instruction>,
}

impl Program {
    fn push(&mut self, instruction: Instruction) {
        self.instructions.push(instruction);
    }

    fn extend(&mut self, instructions: impl IntoIterator<Item = Instruction>) {
        self.instructions.extend(instructions);
    }

    /// A number that no call has where the architecture lacks this one.
    fn number(&self, call: Call) -> u32 {
        call.number(self.architecture).unwrap_or(u32::MAX)
    }
}

fn start(architecture: Architecture) -> Program {
    let mut program = Program { architecture, instructions: Vec::with_capacity(160) };
    check_architecture(&mut program);
    absent(&mut program, calls::CLONE3); // its flags are behind a pointer; libc falls back to clone
    program
}

fn finish(program: &mut Program, network: bool, more: &[&[Call]]) {
    let mut lists = vec![ALWAYS];
    lists.extend(more);
    if network {
        internet_sockets(program);
        unix_streams_only(program, &[calls::SOCKETPAIR]);
    } else {
        refuse_addressed_send(program);
        unix_streams_only(program, &[calls::SOCKET, calls::SOCKETPAIR]);
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

fn check_architecture(program: &mut Program) {
    program.extend([
        load(ARCHITECTURE),
        jump(EQUAL, program.architecture.audit(), 1, 0),
        answer(KILL_PROCESS),
        load(NUMBER),
    ]);
    if program.architecture == Architecture::X86_64 {
        program.extend([jump(AT_LEAST, X32, 0, 1), answer(ABSENT)]);
    }
}

fn absent(program: &mut Program, call: Call) {
    program.extend([jump(EQUAL, program.number(call), 0, 1), answer(ABSENT)]);
}

fn refuse_flags(program: &mut Program, call: Call, flags: u32) {
    program.extend([
        jump(EQUAL, program.number(call), 0, 4),
        load(argument(0)),
        jump(ANY_BIT, flags, 0, 1),
        answer(REFUSE),
        answer(ALLOW),
    ]);
}

/// New namespaces, and typing into a terminal: the kernel looks at 32 bits of an ioctl's request, so only those are
/// compared.
fn refuse_namespaces_and_injection(program: &mut Program) {
    program.extend([
        jump(EQUAL, program.number(calls::CLONE), 0, 2),
        load(argument(0)),
        jump(ANY_BIT, NEW_NAMESPACES, 5, 6),
        jump(EQUAL, program.number(calls::IOCTL), 0, 7),
        load(argument(1)),
        jump(EQUAL, TIOCSTI, 2, 0),
        jump(EQUAL, TIOCLINUX, 1, 0),
        jump(EQUAL, QUESTION, 2, 1),
        answer(REFUSE),
        answer(ALLOW),
        answer(ANSWERED),
    ]);
}

/// Requests to terminals (and with `network` to sockets) and no others: some file systems change files by a request on
/// a descriptor that is open for reading, past Landlock.
fn terminals_only(program: &mut Program, network: bool) {
    const KIND: u32 = 0xff00;
    const TERMINAL: u32 = 0x5400;
    const SOCKET: u32 = 0x8900;
    let other = if network { SOCKET } else { TERMINAL };
    program.extend([
        jump(EQUAL, program.number(calls::IOCTL), 0, 11),
        load(argument(1)),
        jump(EQUAL, TIOCSTI, 5, 0),
        jump(EQUAL, TIOCLINUX, 4, 0),
        jump(EQUAL, QUESTION, 6, 0),
        Instruction { code: AND, jump_true: 0, jump_false: 0, operand: KIND },
        jump(EQUAL, TERMINAL, 2, 0),
        jump(EQUAL, other, 1, 2),
        answer(REFUSE),
        answer(ALLOW),
        answer(NOT_A_TERMINAL),
        answer(ANSWERED),
    ]);
}

fn to_itself(program: &mut Program) {
    let [one, other] = TO_ITSELF;
    program.extend([
        jump(EQUAL, program.number(one), 1, 0),
        jump(EQUAL, program.number(other), 0, 4),
        load(argument(0)),
        jump(EQUAL, 0, 0, 1),
        answer(ALLOW),
        answer(REFUSE),
    ]);
}

/// `sendto` with an address could aim an inherited socket somewhere else, and so could `sendmsg` with MSG_FASTOPEN.
/// (Otherwise the address of `sendmsg`, behind a pointer, moves no stream socket.) Jumps to the answers of
/// [`unix_streams_only`] for two calls, which has to follow.
fn refuse_addressed_send(program: &mut Program) {
    program.extend([
        jump(EQUAL, program.number(calls::SENDMSG), 0, 2),
        load(argument(2)),
        jump(ANY_BIT, FAST_OPEN, 14, 13),
        jump(EQUAL, program.number(calls::SENDTO), 0, 4),
        load(argument(4)),
        jump(EQUAL, 0, 0, 11),
        load(argument(4) + 4),
        jump(EQUAL, 0, 8, 9),
    ]);
}

/// SOCK_DGRAM (and SOCK_RAW, its alias in AF_UNIX) can be aimed at any named socket per message, so it is not offered.
fn unix_streams_only(program: &mut Program, calls: &[Call]) {
    const STREAM: u32 = libc::SOCK_STREAM.cast_unsigned();
    const SEQUENCED: u32 = libc::SOCK_SEQPACKET.cast_unsigned();
    const BODY: u8 = 8;
    let last = calls.len().saturating_sub(1);
    for (index, call) in calls.iter().enumerate() {
        let to_body = u8::try_from(last - index).unwrap_or(u8::MAX);
        let otherwise = if index == last { BODY } else { 0 };
        program.push(jump(EQUAL, program.number(*call), to_body, otherwise));
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
fn internet_sockets(program: &mut Program) {
    program.extend([
        jump(EQUAL, program.number(calls::SOCKET), 0, 8),
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
fn refuse_listed(program: &mut Program, lists: &[&[Call]]) {
    let calls = lists.iter().copied().flatten();
    let ranges = ranges(calls.filter_map(|call| call.number(program.architecture)).collect());
    let Some((lowest, _)) = ranges.first() else { return program.push(answer(ALLOW)) };
    let start = program.instructions.len() + 1;
    let mut search = Vec::with_capacity(2 * ranges.len());
    halve(&mut search, &ranges);
    program.push(jump(AT_LEAST, *lowest, 0, u8::try_from(search.len()).unwrap_or(u8::MAX)));
    program.extend(search);
    let end = program.instructions.len();
    for (index, instruction) in program.instructions.iter_mut().enumerate().skip(start) {
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
