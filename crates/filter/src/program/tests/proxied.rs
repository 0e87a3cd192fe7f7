//! The filter of a limited network.

use super::super::proxied::{LISTENING, build_proxied_for};
use super::*;

fn proxied(call: Call, arguments: [u64; 6]) -> u32 {
    verdict_of(|architecture, _| build_proxied_for(architecture), false, call, arguments)
}

#[test]
fn it_is_short_and_its_jumps_stay_inside() {
    for architecture in BOTH {
        let program = build_proxied_for(architecture);
        assert!(program.len() <= 96, "{} instructions", program.len());
        for (at, instruction) in program.iter().enumerate() {
            let jumps = [EQUAL, AT_LEAST, ABOVE, ANY_BIT].contains(&instruction.code);
            let furthest = instruction.jump_true.max(instruction.jump_false);
            assert!(at + usize::from(furthest) + 1 < program.len() || !jumps, "instruction {at}");
        }
        for other in OTHERS {
            assert_eq!(run(&program, &data(other, 20, NONE)).0, KILL_PROCESS);
        }
    }
    let program = build_proxied_for(Architecture::X86_64);
    assert_eq!(run(&program, &data(Architecture::X86_64.audit(), X32 | 41, NONE)).0, ABSENT);
}

#[test]
fn the_only_sockets_are_tcp_and_they_connect() {
    const FLAGS: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let socket = |call, family: libc::c_int, kind: libc::c_int, protocol: libc::c_int| {
        proxied(call, [wide(family), wide(kind), wide(protocol), 0, 0, 0])
    };
    for family in [libc::AF_INET, libc::AF_INET6] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_STREAM | FLAGS] {
            for protocol in [0, libc::IPPROTO_TCP] {
                assert_eq!(socket(calls::SOCKET, family, kind, protocol), ALLOW);
            }
            for protocol in [libc::IPPROTO_SCTP, libc::IPPROTO_MPTCP, libc::IPPROTO_UDP, 256] {
                assert_eq!(socket(calls::SOCKET, family, kind, protocol), REFUSE, "{protocol}");
            }
        }
        for kind in [
            libc::SOCK_DGRAM,
            libc::SOCK_RAW,
            libc::SOCK_SEQPACKET,
            libc::SOCK_DGRAM | FLAGS,
            0,
            10,
        ] {
            assert_eq!(socket(calls::SOCKET, family, kind, 0), REFUSE, "{kind}");
        }
        assert_eq!(socket(calls::SOCKETPAIR, family, libc::SOCK_STREAM, 0), REFUSE);
    }
    for family in (0..64).filter(|family| ![libc::AF_INET, libc::AF_INET6].contains(family)) {
        assert_eq!(socket(calls::SOCKET, family, libc::SOCK_STREAM, 0), REFUSE, "{family}");
    }
    assert_eq!(socket(calls::SOCKETPAIR, libc::AF_UNIX, libc::SOCK_STREAM, 0), ALLOW);
    assert_eq!(socket(calls::SOCKETPAIR, libc::AF_UNIX, libc::SOCK_DGRAM, 0), REFUSE);
    assert_eq!(proxied(calls::CONNECT, NONE), ALLOW);
}

/// Otherwise it refuses all that the filter without a network refuses.
#[test]
fn but_for_that_it_is_the_filter_without_a_network() {
    assert_eq!(LISTENING.len() + 1, WITHOUT_NETWORK.len());
    assert!(LISTENING.iter().all(|call| WITHOUT_NETWORK.contains(call)));
    for architecture in BOTH {
        let (proxied, without) = (build_proxied_for(architecture), build_for(architecture, false));
        let differs = [calls::SOCKET, calls::CONNECT].map(|call| call.number(architecture));
        let fast_open = wide(libc::MSG_FASTOPEN);
        let arguments = [
            NONE,
            [u64::MAX; 6],
            [3, 1, fast_open, 0, 0, 0],
            [3, 0, 0, 0, 4096, 16],
            [3, 0, 0, 0, 1 << 40, 16],
            [1, 0x5412, 1, 0, 0, 0],
            [1, 2, 0, 0, 0, 0],
        ];
        for number in (0..600).filter(|number| !differs.contains(&Some(*number))) {
            for arguments in arguments {
                let data = data(architecture.audit(), number, arguments);
                assert_eq!(
                    run(&proxied, &data).0,
                    run(&without, &data).0,
                    "{number} {arguments:x?}"
                );
            }
        }
    }
}
