//! The filter, run by an interpreter of the few instructions it is made of.

use super::*;

const OTHER_ARCHITECTURES: [u32; 6] = [
    0x4000_0003, // AUDIT_ARCH_I386: int 0x80
    0x4000_0028, // ARM
    if cfg!(target_arch = "x86_64") { 0xC000_00B7 } else { 0xC000_003E },
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

fn verdict(network: bool, call: libc::c_long, arguments: [u64; 6]) -> u32 {
    run(&build(network), &data(NATIVE, number(call), arguments)).0
}

/// For both network settings.
fn both(call: libc::c_long, arguments: [u64; 6]) -> [u32; 2] {
    [false, true].map(|network| verdict(network, call, arguments))
}

const NONE: [u64; 6] = [0; 6];

fn wide(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

#[test]
fn it_stays_short_and_decides_in_few_steps() {
    for network in [false, true] {
        let program = build(network);
        assert!(program.len() <= 80, "{} instructions", program.len());
        let most = (0..600).map(|nr| run(&program, &data(NATIVE, nr, NONE)).1).max().unwrap();
        assert!(most <= 22, "{most} steps");
    }
}

/// What the kernel checks when it takes a filter: forward jumps that stay inside, and a return at the end.
#[test]
fn every_jump_stays_inside() {
    for network in [false, true] {
        let program = build(network);
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
    for network in [false, true] {
        for architecture in OTHER_ARCHITECTURES {
            for call in [20, number(libc::SYS_read), 0] {
                let (verdict, _) = run(&build(network), &data(architecture, call, NONE));
                assert_eq!(verdict, KILL_PROCESS, "{architecture:#x}");
            }
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn x32_calls_are_absent() {
    for call in [X32, X32 | 39, X32 | number(libc::SYS_ptrace), X32 | 547, u32::MAX, 0x8000_0000] {
        for network in [false, true] {
            assert_eq!(run(&build(network), &data(NATIVE, call, NONE)).0, ABSENT, "{call:#x}");
        }
    }
}

/// Independent of the search: the lists, and nothing else, are refused.
#[test]
fn exactly_the_listed_numbers_are_refused() {
    let special = [
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_ioctl,
        libc::SYS_sendto,
        libc::SYS_socket,
        libc::SYS_socketpair,
    ];
    for network in [false, true] {
        let program = build(network);
        for call in (0..600i32).filter(|call| !special.contains(&libc::c_long::from(*call))) {
            let listed = ALWAYS.contains(&libc::c_long::from(call))
                || (!network && WITHOUT_NETWORK.contains(&libc::c_long::from(call)));
            let wanted = if listed { REFUSE } else { ALLOW };
            let seen = run(&program, &data(NATIVE, call.cast_unsigned(), [u64::MAX; 6])).0;
            assert_eq!(seen, wanted, "call {call}, network {network}");
        }
    }
}

#[test]
fn what_is_dangerous_is_listed() {
    for call in [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
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
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_bpf,
        libc::SYS_userfaultfd,
        libc::SYS_perf_event_open,
        libc::SYS_fanotify_init,
        libc::SYS_open_by_handle_at,
        libc::SYS_kexec_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
    ] {
        assert_eq!(both(call, NONE), [REFUSE, REFUSE], "{call}");
    }
    for call in [
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_sendmmsg,
    ] {
        assert_eq!(both(call, NONE), [REFUSE, ALLOW], "{call}");
    }
}

#[test]
fn what_programs_need_is_allowed() {
    for call in [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_execve,
        libc::SYS_wait4,
        libc::SYS_mmap,
        libc::SYS_futex,
        libc::SYS_sendmsg,
        libc::SYS_recvmsg,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_send_signal,
        libc::SYS_close_range,
        libc::SYS_statx,
        libc::SYS_getrandom,
        libc::SYS_rseq,
        libc::SYS_seccomp,
        libc::SYS_landlock_restrict_self,
        libc::SYS_faccessat2,
        libc::SYS_chroot,
    ] {
        assert_eq!(both(call, NONE), [ALLOW, ALLOW], "{call}");
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
        assert_eq!(both(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]), [ALLOW, ALLOW]);
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
        assert_eq!(both(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]), [REFUSE, REFUSE], "{flag:#x}");
    }
    assert_eq!(both(libc::SYS_clone3, NONE), [ABSENT, ABSENT]);
}

#[test]
fn nothing_is_typed_into_a_terminal() {
    let request = |value: u64| both(libc::SYS_ioctl, [0, value, 0, 0, 0, 0]);
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
        assert_eq!(both(libc::SYS_sendto, [3, 0, 0, 0, address, 16]), [REFUSE, ALLOW]);
    }
    assert_eq!(both(libc::SYS_sendto, [3, 0, 0, 0, 0, 0]), [ALLOW, ALLOW]);
}

fn socket(call: libc::c_long, family: libc::c_int, kind: libc::c_int) -> [u32; 2] {
    both(call, [wide(family), wide(kind), 0, 0, 0, 0])
}

#[test]
fn sockets_are_unix_streams_without_a_network_and_internet_ones_with_it() {
    const FLAGS: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET, libc::SOCK_STREAM | FLAGS] {
        assert_eq!(socket(libc::SYS_socket, libc::AF_UNIX, kind), [ALLOW, REFUSE]);
        assert_eq!(socket(libc::SYS_socketpair, libc::AF_UNIX, kind), [ALLOW, ALLOW]);
    }
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_DGRAM | FLAGS, 0, 4, 15] {
        assert_eq!(socket(libc::SYS_socket, libc::AF_UNIX, kind), [REFUSE, REFUSE], "{kind}");
        assert_eq!(socket(libc::SYS_socketpair, libc::AF_UNIX, kind), [REFUSE, REFUSE], "{kind}");
    }
    for family in [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
        assert_eq!(socket(libc::SYS_socket, family, libc::SOCK_DGRAM), [REFUSE, ALLOW]);
        assert_eq!(socket(libc::SYS_socketpair, family, libc::SOCK_STREAM), [REFUSE, REFUSE]);
    }
    for family in (0..64).filter(|family| {
        ![libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].contains(family)
    }) {
        assert_eq!(socket(libc::SYS_socket, family, libc::SOCK_STREAM), [REFUSE, REFUSE]);
    }
    let generic = [wide(libc::AF_NETLINK), wide(libc::SOCK_RAW), 16, 0, 0, 0];
    assert_eq!(both(libc::SYS_socket, generic), [REFUSE, REFUSE]);
}

fn alone(network: bool, call: libc::c_long, arguments: [u64; 6]) -> u32 {
    run(&build_alone(network), &data(NATIVE, number(call), arguments)).0
}

#[test]
fn without_mounts_and_namespaces_the_filter_refuses_more_and_nothing_less() {
    for network in [false, true] {
        assert!(build_alone(network).len() <= 144, "{} instructions", build_alone(network).len());
        for call in 0..512 {
            let with_mounts = verdict(network, call, NONE);
            if with_mounts != ALLOW {
                assert_eq!(alone(network, call, NONE), with_mounts, "{call}");
            }
        }
        for call in METADATA.iter().chain(NEIGHBOURS) {
            assert_eq!(verdict(network, *call, NONE), ALLOW, "{call}");
            assert_eq!(alone(network, *call, NONE), REFUSE, "{call}");
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
    let ioctl = |network, request| alone(network, libc::SYS_ioctl, [0, request, 0, 0, 0, 0]);
    for (request, off, on) in [
        (0x5401, ALLOW, ALLOW),               // TCGETS
        (0x8004_5430, ALLOW, ALLOW),          // TIOCGPTN
        (u64::from(TIOCSTI), REFUSE, REFUSE), //
        (u64::from(TIOCSTI) | 1 << 32, REFUSE, REFUSE),
        (u64::from(TIOCLINUX), REFUSE, REFUSE),
        (0x8912, NOT_A_TERMINAL, ALLOW),               // SIOCGIFCONF
        (0x4008_6602, NOT_A_TERMINAL, NOT_A_TERMINAL), // FS_IOC_SETFLAGS
        (0x5000_940e, NOT_A_TERMINAL, NOT_A_TERMINAL), // BTRFS_IOC_SUBVOL_CREATE
        (0, NOT_A_TERMINAL, NOT_A_TERMINAL),
    ] {
        assert_eq!((ioctl(false, request), ioctl(true, request)), (off, on), "{request:#x}");
    }
}
