"""Runs ARGV on a machine that lacks something: `lack.py NAME… -- ARGV`.

A NAME is a system call that is answered with ENOSYS, `NAME=done` one that is answered as if it had been carried out, `NAME=unknown`
one that is answered with ENOPROTOOPT, or `user-namespaces` (EPERM to every way of making one, and no clone3, as containers' filters do it).
"""

import ctypes
import os
import struct
import sys

X86 = os.uname().machine == "x86_64"
CALLS = {
    "clone": 56 if X86 else 220,
    "clone3": 435,
    "close_range": 436,
    "unshare": 272 if X86 else 97,
    "landlock_create_ruleset": 444,
    "landlock_restrict_self": 446,
    "mount_setattr": 442,
    "move_mount": 429,
    "pivot_root": 155 if X86 else 41,
    "umount2": 166 if X86 else 39,
    "capset": 126 if X86 else 91,
    "prctl": 157 if X86 else 167,
    "seccomp": 317 if X86 else 277,
    "setsid": 112 if X86 else 157,
    "chdir": 80 if X86 else 49,
    "getsockopt": 55 if X86 else 209,
    "setns": 308 if X86 else 268,
}
ARCHITECTURE = 0xC000003E if X86 else 0xC00000B7
CLONE_NEWUSER = 0x10000000
ALLOW, DONE, EPERM, ENOSYS, ENOPROTOOPT = 0x7FFF0000, 0x00050000, 0x00050001, 0x00050026, 0x0005005C
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def load(offset):
    return (0x20, 0, 0, offset)


def equal(value, true, false):
    return (0x15, true, false, value)


def answer(verdict):
    return (0x06, 0, 0, verdict)


def absent(name):
    return [equal(CALLS[name], 0, 1), answer(ENOSYS)]


def no_user_namespace(name):
    # The flags are the first argument of both calls.
    return [equal(CALLS[name], 0, 4), load(16), (0x45, 0, 1, CLONE_NEWUSER), answer(EPERM), answer(ALLOW)]


def program(names):
    lines = [load(4), equal(ARCHITECTURE, 1, 0), answer(ALLOW), load(0)]
    for name in names:
        if name == "user-namespaces":
            lines += absent("clone3") + no_user_namespace("clone") + no_user_namespace("unshare")
        elif "=" in name:
            call, said = name.split("=")
            lines += [equal(CALLS[call], 0, 1), answer({"done": DONE, "unknown": ENOPROTOOPT}[said])]
        else:
            lines += absent(name)
    return lines + [answer(ALLOW)]


def install(lines):
    text = b"".join(struct.pack("HBBI", *line) for line in lines)
    code = ctypes.create_string_buffer(text, len(text))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


end = sys.argv.index("--")
install(program(sys.argv[1:end]))
os.execv(sys.argv[end + 1], sys.argv[end + 1 :])
