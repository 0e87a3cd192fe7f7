//! The filter, run by an interpreter of the few instructions it is made of.

use super::*;

mod proxied;

use calls::made_by_tests as made;

const BOTH: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];
/// `AUDIT_ARCH_…`
const OTHERS: [u32; 5] = [
    0x4000_0003, // I386: int 0x80
    0x4000_0028, // ARM
    0xC000_00F3, // RISCV64
    0,
    u32::MAX,
];

/// `struct seccomp_data`, little endian.
fn data(architecture: u32, number: u32, arguments: [u64; 6]) -> Vec<u8> {
    let mut data = Vec::new();
    data.extend(number.to_le_bytes());
    data.extend(architecture.to_le_bytes());
    data.extend(0u64.to_le_bytes());
    arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
    data
}

/// The verdict, and how many instructions it took.
fn run(program: &[Instruction], data: &[u8]) -> (u32, usize) {
    let (mut at, mut accumulator) = (0, 0u32);
    for steps in 1.. {
        let Instruction { code, jump_true, jump_false, operand } = program[at];
        let holds = match code {
            LOAD => {
                let start = usize::try_from(operand).unwrap();
                accumulator = u32::from_le_bytes(data[start..start + 4].try_into().unwrap());
                at += 1;
                continue;
            }
            AND => {
                accumulator &= operand;
                at += 1;
                continue;
            }
            RETURN => return (operand, steps),
            EQUAL => accumulator == operand,
            AT_LEAST => accumulator >= operand,
            ABOVE => accumulator > operand,
            ANY_BIT => accumulator & operand != 0,
            other => panic!("unknown instruction {other:#x}"),
        };
        at += 1 + usize::from(if holds { jump_true } else { jump_false });
    }
    unreachable!()
}

/// The verdict, which has to be the same on every architecture that has the call.
fn verdict_of(
    build: impl Fn(Architecture, bool) -> Vec<Instruction>,
    network: bool,
    call: Call,
    arguments: [u64; 6],
) -> u32 {
    let seen: Vec<u32> = BOTH
        .into_iter()
        .filter_map(|architecture| {
            let data = data(architecture.audit(), call.number(architecture)?, arguments);
            Some(run(&build(architecture, network), &data).0)
        })
        .collect();
    assert!(seen.iter().all(|verdict| *verdict == seen[0]), "{call:?}: {seen:x?}");
    seen[0]
}

fn verdict(network: bool, call: Call, arguments: [u64; 6]) -> u32 {
    verdict_of(build_for, network, call, arguments)
}

/// Every filter of the plain kind.
fn programs() -> impl Iterator<Item = (Architecture, bool, Vec<Instruction>)> {
    BOTH.into_iter().flat_map(|architecture| {
        [false, true].map(|network| (architecture, network, build_for(architecture, network)))
    })
}

#[test]
fn the_numbers_are_the_c_librarys() {
    for (call, number) in calls::KNOWN.iter().chain(made::KNOWN) {
        assert_eq!(call.number(Architecture::NATIVE).map(libc::c_long::from), Some(*number));
    }
    #[cfg(target_arch = "x86_64")]
    for (call, number) in calls::OLD_KNOWN {
        assert_eq!(call.number(Architecture::X86_64).map(libc::c_long::from), Some(*number));
        assert_eq!(call.number(Architecture::Aarch64), None);
    }
}

/// A few of `asm-generic/unistd.h`, typed by hand.
#[test]
fn the_other_table_is_the_generic_one() {
    for (call, number) in [
        (calls::MOUNT, 40),
        (calls::PTRACE, 117),
        (calls::CLONE, 220),
        (calls::IOCTL, 29),
        (calls::SOCKET, 198),
        (calls::CONNECT, 203),
        (calls::SENDTO, 206),
        (calls::BPF, 280),
        (calls::IO_URING_SETUP, 425),
        (made::READ, 63),
    ] {
        assert_eq!(call.number(Architecture::Aarch64), Some(number));
    }
}

/// For both network settings.
fn both(call: Call, arguments: [u64; 6]) -> [u32; 2] {
    [false, true].map(|network| verdict(network, call, arguments))
}

const NONE: [u64; 6] = [0; 6];

fn wide(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

#[test]
fn what_is_built_is_for_this_machine() {
    let native = Architecture::NATIVE;
    for network in [false, true] {
        assert_eq!(build(network), build_for(native, network));
        assert_eq!(build_alone(network), build_alone_for(native, network));
    }
    assert_eq!(build_proxied(), super::proxied::build_proxied_for(native));
    let asked = |number| run(&asking([7]), &data(native.audit(), number, NONE)).0;
    assert_eq!((asked(7), asked(8)), (libc::SECCOMP_RET_USER_NOTIF, ALLOW));
    let ring = calls::IO_URING_SETUP.number(native).unwrap();
    assert_eq!(asked(ring), ABSENT);
}

#[test]
fn it_stays_short_and_decides_in_few_steps() {
    for (architecture, _, program) in programs() {
        assert!(program.len() <= 82, "{} instructions", program.len());
        let steps = |nr| run(&program, &data(architecture.audit(), nr, NONE)).1;
        let most = (0..600).map(steps).max().unwrap();
        assert!(most <= 22, "{most} steps");
    }
}

/// What the kernel checks when it takes a filter: forward jumps that stay inside, and a return at the end.
#[test]
fn every_jump_stays_inside() {
    for (_, _, program) in programs() {
        for (at, instruction) in program.iter().enumerate() {
            let jumps = [EQUAL, AT_LEAST, ABOVE, ANY_BIT].contains(&instruction.code);
            let furthest = instruction.jump_true.max(instruction.jump_false);
            assert!(jumps || furthest == 0, "instruction {at}");
            assert!(at + usize::from(furthest) + 1 < program.len() || !jumps, "instruction {at}");
        }
        assert_eq!(program.last().unwrap().code, RETURN);
    }
}

#[test]
fn another_architecture_is_killed() {
    for (own, _, program) in programs() {
        let foreign = BOTH.into_iter().filter(|other| *other != own).map(Architecture::audit);
        for other in OTHERS.into_iter().chain(foreign) {
            for call in [20, 63, 0] {
                let (verdict, _) = run(&program, &data(other, call, NONE));
                assert_eq!(verdict, KILL_PROCESS, "{other:#x} in {own:?}");
            }
        }
    }
}

#[test]
fn x32_calls_are_absent() {
    let native = Architecture::X86_64;
    for call in [X32, X32 | 39, X32 | 101, X32 | 547, u32::MAX, 0x8000_0000] {
        for network in [false, true] {
            let program = build_for(native, network);
            assert_eq!(run(&program, &data(native.audit(), call, NONE)).0, ABSENT, "{call:#x}");
        }
    }
}

/// Independent of the search: the lists, and nothing else, are refused.
#[test]
fn exactly_the_listed_numbers_are_refused() {
    let special = [
        calls::CLONE,
        calls::CLONE3,
        calls::IOCTL,
        calls::SENDMSG,
        calls::SENDTO,
        calls::SOCKET,
        calls::SOCKETPAIR,
    ];
    for (architecture, network, program) in programs() {
        let holds = |list: &[Call], number| {
            list.iter().any(|call| call.number(architecture) == Some(number))
        };
        for number in (0..600).filter(|number| !holds(&special, *number)) {
            let listed = holds(ALWAYS, number) || (!network && holds(WITHOUT_NETWORK, number));
            let wanted = if listed { REFUSE } else { ALLOW };
            let seen = run(&program, &data(architecture.audit(), number, [u64::MAX; 6])).0;
            assert_eq!(seen, wanted, "call {number}, network {network}, {architecture:?}");
        }
    }
}

#[test]
fn what_is_dangerous_is_listed() {
    for call in [
        calls::PTRACE,
        calls::PROCESS_VM_READV,
        calls::PROCESS_VM_WRITEV,
        calls::PIDFD_GETFD,
        calls::IO_URING_SETUP,
        calls::IO_URING_ENTER,
        calls::IO_URING_REGISTER,
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
        calls::KEYCTL,
        calls::ADD_KEY,
        calls::REQUEST_KEY,
        calls::BPF,
        calls::USERFAULTFD,
        calls::PERF_EVENT_OPEN,
        calls::FANOTIFY_INIT,
        calls::OPEN_BY_HANDLE_AT,
        calls::KEXEC_LOAD,
        calls::INIT_MODULE,
        calls::FINIT_MODULE,
    ] {
        assert_eq!(both(call, NONE), [REFUSE, REFUSE], "{call:?}");
    }
    for call in
        [calls::CONNECT, calls::BIND, calls::LISTEN, calls::ACCEPT, calls::ACCEPT4, calls::SENDMMSG]
    {
        assert_eq!(both(call, NONE), [REFUSE, ALLOW], "{call:?}");
    }
}

#[test]
fn what_programs_need_is_allowed() {
    for call in [
        made::READ,
        made::WRITE,
        made::OPENAT,
        made::OPENAT2,
        made::EXECVE,
        made::WAIT4,
        made::MMAP,
        made::FUTEX,
        calls::SENDMSG,
        made::RECVMSG,
        made::PIDFD_OPEN,
        made::PIDFD_SEND_SIGNAL,
        made::CLOSE_RANGE,
        made::STATX,
        made::GETRANDOM,
        made::RSEQ,
        made::SECCOMP,
        made::LANDLOCK_RESTRICT_SELF,
        made::FACCESSAT2,
        made::CHROOT,
    ] {
        assert_eq!(both(call, NONE), [ALLOW, ALLOW], "{call:?}");
    }
}

#[test]
fn clone_makes_processes_and_threads_and_no_namespace() {
    let thread = wide(
        libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD,
    );
    let vfork = wide(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD);
    for flags in [wide(libc::SIGCHLD), thread, vfork] {
        assert_eq!(both(calls::CLONE, [flags, 0, 0, 0, 0, 0]), [ALLOW, ALLOW]);
        assert_eq!(alone(false, calls::CLONE, [flags, 0, 0, 0, 0, 0]), ALLOW);
    }
    for flag in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ] {
        let flags = wide(flag | libc::SIGCHLD);
        assert_eq!(both(calls::CLONE, [flags, 0, 0, 0, 0, 0]), [REFUSE, REFUSE], "{flag:#x}");
        let alone =
            [false, true].map(|network| alone(network, calls::CLONE, [flags, 0, 0, 0, 0, 0]));
        assert_eq!(alone, [REFUSE, REFUSE], "{flag:#x}");
    }
    assert_eq!(both(calls::CLONE3, NONE), [ABSENT, ABSENT]);
}

#[test]
fn nothing_is_typed_into_a_terminal() {
    let request = |value: u64| both(calls::IOCTL, [0, value, 0, 0, 0, 0]);
    for value in [0x5412, 0x1_0000_5412, 0xffff_ffff_0000_5412, 0x541C, 0x1_0000_541C] {
        assert_eq!(request(value), [REFUSE, REFUSE], "{value:#x}");
    }
    for value in [0x5401, 0x5413, 0x541B, 0x5411] {
        assert_eq!(request(value), [ALLOW, ALLOW], "{value:#x}");
    }
}

#[test]
fn an_addressed_send_is_refused_without_a_network() {
    for address in [1, 0x7ffd_0000_1000, 0x1_0000_0000] {
        assert_eq!(both(calls::SENDTO, [3, 0, 0, 0, address, 16]), [REFUSE, ALLOW]);
    }
    assert_eq!(both(calls::SENDTO, [3, 0, 0, 0, 0, 0]), [ALLOW, ALLOW]);
}

#[test]
fn a_send_that_connects_is_refused_without_a_network() {
    let fast_open = wide(libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL);
    assert_eq!(both(calls::SENDMSG, [3, 1, fast_open, 0, 0, 0]), [REFUSE, ALLOW]);
    assert_eq!(both(calls::SENDTO, [3, 1, 1, fast_open, 4096, 16]), [REFUSE, ALLOW]);
    for flags in [0, wide(libc::MSG_NOSIGNAL), wide(libc::MSG_DONTWAIT | libc::MSG_MORE)] {
        assert_eq!(both(calls::SENDMSG, [3, 1, flags, 0, 0, 0]), [ALLOW, ALLOW]);
        assert_eq!(both(calls::SENDTO, [3, 1, 1, flags, 0, 0]), [ALLOW, ALLOW]);
    }
}

fn socket(call: Call, family: libc::c_int, kind: libc::c_int) -> [u32; 2] {
    both(call, [wide(family), wide(kind), 0, 0, 0, 0])
}

#[test]
fn sockets_are_unix_streams_without_a_network_and_internet_ones_with_it() {
    const FLAGS: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET, libc::SOCK_STREAM | FLAGS] {
        assert_eq!(socket(calls::SOCKET, libc::AF_UNIX, kind), [ALLOW, REFUSE]);
        assert_eq!(socket(calls::SOCKETPAIR, libc::AF_UNIX, kind), [ALLOW, ALLOW]);
    }
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_DGRAM | FLAGS, 0, 4, 15] {
        assert_eq!(socket(calls::SOCKET, libc::AF_UNIX, kind), [REFUSE, REFUSE], "{kind}");
        assert_eq!(socket(calls::SOCKETPAIR, libc::AF_UNIX, kind), [REFUSE, REFUSE], "{kind}");
    }
    for family in [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        assert_eq!(socket(calls::SOCKET, family, libc::SOCK_DGRAM), [REFUSE, ALLOW]);
        assert_eq!(socket(calls::SOCKETPAIR, family, libc::SOCK_STREAM), [REFUSE, REFUSE]);
    }
    for family in (0..64).filter(|family| {
        ![libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].contains(family)
    }) {
        assert_eq!(socket(calls::SOCKET, family, libc::SOCK_STREAM), [REFUSE, REFUSE]);
    }
    let generic = [wide(libc::AF_NETLINK), wide(libc::SOCK_RAW), 16, 0, 0, 0];
    assert_eq!(both(calls::SOCKET, generic), [REFUSE, REFUSE]);
}

fn alone(network: bool, call: Call, arguments: [u64; 6]) -> u32 {
    verdict_of(build_alone_for, network, call, arguments)
}

#[test]
fn without_mounts_and_namespaces_the_filter_refuses_more_and_nothing_less() {
    for network in [false, true] {
        for architecture in BOTH {
            let length = build_alone_for(architecture, network).len();
            assert!(length <= 144, "{length} instructions");
        }
        for architecture in BOTH {
            let [with, without] =
                [build_for, build_alone_for].map(|build| build(architecture, network));
            for number in 0..512 {
                let data = data(architecture.audit(), number, NONE);
                let with_mounts = run(&with, &data).0;
                if with_mounts != ALLOW {
                    assert_eq!(run(&without, &data).0, with_mounts, "{number}");
                }
            }
        }
        for call in METADATA.iter().chain(NEIGHBOURS) {
            assert_eq!(verdict(network, *call, NONE), ALLOW, "{call:?}");
            assert_eq!(alone(network, *call, NONE), REFUSE, "{call:?}");
        }
    }
}

#[test]
fn a_process_without_a_namespace_changes_its_own_limits_only() {
    for call in TO_ITSELF {
        assert_eq!(alone(false, call, NONE), ALLOW);
        assert_eq!(alone(false, call, [1, 0, 0, 0, 0, 0]), REFUSE);
    }
}

#[test]
fn without_mounts_only_terminals_and_sockets_take_requests() {
    let ioctl = |network, request| alone(network, calls::IOCTL, [0, request, 0, 0, 0, 0]);
    for (request, off, on) in [
        (0x5401, ALLOW, ALLOW),               // TCGETS
        (0x8004_5430, ALLOW, ALLOW),          // TIOCGPTN
        (u64::from(TIOCSTI), REFUSE, REFUSE), //
        (u64::from(TIOCSTI) | 1 << 32, REFUSE, REFUSE),
        (u64::from(TIOCLINUX), REFUSE, REFUSE),
        (0x8912, NOT_A_TERMINAL, ALLOW),               // SIOCGIFCONF
        (0x4008_6602, NOT_A_TERMINAL, NOT_A_TERMINAL), // FS_IOC_SETFLAGS
        (0x5000_940e, NOT_A_TERMINAL, NOT_A_TERMINAL), // BTRFS_IOC_SUBVOL_CREATE
        (u64::from(QUESTION), ANSWERED, ANSWERED),
        (0, NOT_A_TERMINAL, NOT_A_TERMINAL),
    ] {
        assert_eq!((ioctl(false, request), ioctl(true, request)), (off, on), "{request:#x}");
    }
}

/// What the filter should say, in the order of its reasons and without any table of jumps.
fn wanted(architecture: Architecture, network: bool, number: u32, arguments: [u64; 6]) -> u32 {
    let is = |call: Call| call.number(architecture) == Some(number);
    let among = |list: &[Call]| list.iter().any(|call| is(*call));
    let low = |index: usize| i32::try_from(arguments[index] & 0xffff_ffff).unwrap_or(-1);
    let when = |refused: bool| if refused { REFUSE } else { ALLOW };
    let stream = low(0) == libc::AF_UNIX
        && [libc::SOCK_STREAM, libc::SOCK_SEQPACKET]
            .map(|kind| (arguments[1] & 0xf) == wide(kind))
            .contains(&true);
    if architecture == Architecture::X86_64 && number >= X32 || is(calls::CLONE3) {
        return ABSENT;
    }
    if is(calls::CLONE) {
        return when(arguments[0] & u64::from(NEW_NAMESPACES) != 0);
    }
    if is(calls::IOCTL) && low(1) == QUESTION.cast_signed() {
        return ANSWERED;
    }
    if is(calls::IOCTL) {
        return when([TIOCSTI, TIOCLINUX].map(u64::from).contains(&(arguments[1] & 0xffff_ffff)));
    }
    if is(calls::SOCKETPAIR) || is(calls::SOCKET) && !network {
        return when(!stream);
    }
    if is(calls::SOCKET) {
        let route = low(0) == libc::AF_NETLINK && low(2) == libc::NETLINK_ROUTE;
        return when(!route && ![libc::AF_INET, libc::AF_INET6].contains(&low(0)));
    }
    if is(calls::SENDTO) && !network {
        return when(arguments[4] != 0);
    }
    if is(calls::SENDMSG) && !network {
        return when(arguments[2] & wide(libc::MSG_FASTOPEN) != 0);
    }
    when(among(ALWAYS) || !network && among(WITHOUT_NETWORK))
}

#[test]
fn fuzz_filter() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/filter");
    let programs: Vec<_> = programs().collect();
    plenipo_testkit::Fuzz::of(&corpus, &[]).run(|input| {
        let mut choices = plenipo_testkit::Choices::new(input);
        let mut verdicts = Vec::new();
        while !choices.is_empty() {
            let (architecture, network, program) = &programs[choices.below(4)];
            let number = match choices.below(4) {
                0 => u32::try_from(choices.number() & 0xffff_ffff).unwrap(),
                _ => u32::try_from(choices.below(256) + 2 * choices.below(128)).unwrap(),
            };
            let arguments = [(); 6].map(|()| match choices.below(3) {
                0 => choices.number(),
                1 => choices.below(256) as u64,
                _ => 0x5400 + choices.below(64) as u64,
            });
            let (seen, _) = run(program, &data(architecture.audit(), number, arguments));
            let wanted = wanted(*architecture, *network, number, arguments);
            assert_eq!(seen, wanted, "{architecture:?} {network} {number} {arguments:x?}");
            verdicts.push(seen);
        }
        verdicts.truncate(6);
        verdicts
    });
}
