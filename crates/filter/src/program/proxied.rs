//! The filter of a limited network: what is allowed without a network, and TCP sockets that connect.
//!
//! What they can connect to is no matter of addresses, which a filter cannot see: in the sandbox's network namespace
//! there is one listener, and Landlock has its port as the only one.

use super::calls::{self, Architecture};
use super::{
    ALLOW, ALWAYS, AND, ANY_BIT, Call, EQUAL, FAST_OPEN, Instruction, Program, REFUSE,
    SOCKET_TYPE_MASK, answer, argument, jump, load, refuse_listed, refuse_namespaces_and_injection,
    start, unix_streams_only,
};

/// Without a network these are refused, too, and CONNECT.
pub(super) const LISTENING: &[Call] =
    &[calls::BIND, calls::LISTEN, calls::ACCEPT, calls::ACCEPT4, calls::SENDMMSG];

/// Builds the filter for a sandbox whose one way out is a proxy on its loopback interface.
pub fn build_proxied() -> Vec<Instruction> {
    build_proxied_for(Architecture::NATIVE)
}

pub(super) fn build_proxied_for(architecture: Architecture) -> Vec<Instruction> {
    let mut program = start(architecture);
    refuse_namespaces_and_injection(&mut program);
    plain_sends_and_tcp(&mut program);
    unix_streams_only(&mut program, &[calls::SOCKETPAIR]);
    refuse_listed(&mut program, &[ALWAYS, LISTENING]);
    program.instructions
}

/// No address with a send, no connecting send; sockets are TCP over IPv4 or IPv6 (SOCK_STREAM alone would include
/// protocols that Landlock has no rule for).
fn plain_sends_and_tcp(program: &mut Program) {
    const STREAM: u32 = libc::SOCK_STREAM.cast_unsigned();
    const TCP: u32 = libc::IPPROTO_TCP.cast_unsigned();
    program.extend([
        jump(EQUAL, program.number(calls::SENDMSG), 0, 2),
        load(argument(2)),
        jump(ANY_BIT, FAST_OPEN, 15, 16),
        jump(EQUAL, program.number(calls::SENDTO), 0, 4),
        load(argument(4)),
        jump(EQUAL, 0, 0, 12),
        load(argument(4) + 4),
        jump(EQUAL, 0, 11, 10),
        jump(EQUAL, program.number(calls::SOCKET), 0, 11),
        load(argument(0)),
        jump(EQUAL, libc::AF_INET.cast_unsigned(), 1, 0),
        jump(EQUAL, libc::AF_INET6.cast_unsigned(), 0, 6),
        load(argument(1)),
        Instruction { code: AND, jump_true: 0, jump_false: 0, operand: SOCKET_TYPE_MASK },
        jump(EQUAL, STREAM, 0, 3),
        load(argument(2)),
        jump(EQUAL, 0, 2, 0),
        jump(EQUAL, TCP, 1, 0),
        answer(REFUSE),
        answer(ALLOW),
    ]);
}
