"""Tries everything once and prints a line for each attempt: `name allowed` or `name denied reason`.

Arguments: the directory of the test, the id of a process outside, the ports of a TCP and a UDP listener outside, the
name of their abstract socket, a name for files in shared directories. Descriptor 7 is open for writing. Each attempt
runs in a child of its own and leaves files that the others do not use, so that the host can look at what became of it.
"""

import ctypes
import errno
import os
import signal
import socket
import sys

ROOT, HOST_PID, TCP, UDP, ABSTRACT, SHARED = sys.argv[1:7]
HOST_PID, TCP, UDP = int(HOST_PID), int(TCP), int(UDP)
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
NUMBERS = {"x86_64": (101, 248, 323), "aarch64": (117, 217, 282)}
PTRACE, ADD_KEY, USERFAULTFD = NUMBERS[os.uname().machine]
IO_URING_SETUP = 425
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE = 16384, 1 << 18
PTRACE_SEIZE = 0x4206


def call(function, *arguments):
    """A C function whose failure is -1 and errno."""
    result = function(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def system_call(number, *arguments):
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return call(LIBC.syscall, ctypes.c_long(number), *wide)


def at(*names):
    return os.path.join(ROOT, *names)


def ws(*names):
    return at("workspace", *names)


def create(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def append(path):
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, b"more\n")
    os.close(descriptor)


def open_for_writing(path):
    os.close(os.open(path, os.O_WRONLY))


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def there_and_back(path):
    os.rename(path, path + "-moved")
    os.rename(path + "-moved", path)


def through_link():
    os.symlink(at("outside"), ws("link"))
    create(ws("link", "through-link"))


def hard_link():
    os.link(at("outside", "linked"), ws("hard-link"))
    append(ws("hard-link"))


def rename_parent():
    os.rename(ws("sub"), ws("renamed-sub"))
    os.makedirs(ws("sub", "protected"))
    create(ws("sub", "protected", "replaced"))


def unix(kind, address, send):
    with socket.socket(socket.AF_UNIX, kind) as one:
        send(one, address)


def by_pair():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendmsg([b"x"], [], 0, at("sockets", "pair"))


def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", UDP))


def mount():
    # In mounts of its own, so that nothing of it stays where this is allowed.
    call(LIBC.unshare, CLONE_NEWNS)
    call(LIBC.mount, b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    call(LIBC.mount, b"none", ws().encode(), b"tmpfs", 0, None)


def ring():
    os.close(system_call(IO_URING_SETUP, 4, ctypes.create_string_buffer(120)))


def key():
    # -1 is the thread's own keyring: nothing outlives the child.
    system_call(ADD_KEY, b"user", b"plenipo-probe", b"x", 1, -1)


PROBES = {
    "workspace-create": lambda: create(ws("created")),
    "workspace-append": lambda: append(ws("appended")),
    "workspace-rename": lambda: os.rename(ws("old"), ws("new")),
    "workspace-delete": lambda: os.unlink(ws("deleted")),
    "outside-create": lambda: create(at("outside", "created")),
    "outside-append": lambda: append(at("outside", "appended")),
    "outside-truncate": lambda: os.truncate(at("outside", "truncated"), 0),
    "outside-delete": lambda: os.unlink(at("outside", "deleted")),
    "outside-chmod": lambda: os.chmod(at("outside", "mode"), 0o600),
    "outside-touch": lambda: os.utime(at("outside", "time"), (1, 1)),
    "outside-through-link": through_link,
    "outside-hard-link": hard_link,
    "move-in": lambda: os.rename(at("outside", "victim"), ws("taken")),
    "move-out": lambda: os.rename(ws("mine"), at("outside", "left")),
    "read-outside": lambda: read(at("outside", "appended")),
    "read-etc": lambda: read("/etc/passwd"),
    "extra-create": lambda: create(at("extra", "created")),
    "tmp-create": lambda: create("/tmp/" + SHARED),
    "shared-memory-create": lambda: create("/dev/shm/" + SHARED),
    "docs-read": lambda: read(ws("docs", "page")),
    "docs-create": lambda: create(ws("docs", "created")),
    "docs-rename": lambda: there_and_back(ws("docs")),
    "protected-parent-rename": rename_parent,
    "git-config-append": lambda: append(ws(".git", "config")),
    "git-rename": lambda: there_and_back(ws(".git")),
    "agents-create": lambda: os.mkdir(ws(".agents")),
    "secret-read": lambda: read(ws("secret", "file")),
    "secret-list": lambda: os.listdir(ws("secret")),
    "environment-file-read": lambda: read(ws("app", "local.env")),
    "core-pattern-open": lambda: open_for_writing("/proc/sys/kernel/core_pattern"),
    "sysrq-open": lambda: open_for_writing("/proc/sysrq-trigger"),
    "mount": mount,
    "user-namespace": lambda: call(LIBC.unshare, CLONE_NEWUSER),
    "trace-outside": lambda: system_call(PTRACE, PTRACE_SEIZE, HOST_PID, 0, 0),
    "signal-outside": lambda: os.kill(HOST_PID, 0),
    "environment-outside": lambda: read(f"/proc/{HOST_PID}/environ"),
    "tcp": lambda: socket.create_connection(("127.0.0.1", TCP), 5).close(),
    "udp": udp,
    "unix-stream": lambda: unix(socket.SOCK_STREAM, at("sockets", "stream"), socket.socket.connect),
    "unix-abstract": lambda: unix(socket.SOCK_STREAM, "\0" + ABSTRACT, socket.socket.connect),
    "unix-datagram": lambda: unix(
        socket.SOCK_DGRAM, at("sockets", "sendto"), lambda one, to: one.sendto(b"x", to)
    ),
    "unix-datagram-message": lambda: unix(
        socket.SOCK_DGRAM, at("sockets", "sendmsg"), lambda one, to: one.sendmsg([b"x"], [], 0, to)
    ),
    "unix-datagram-pair": by_pair,
    "packet-socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "inherited-descriptor": lambda: os.write(7, b"more\n"),
    "io-uring": ring,
    "key": key,
    "userfaultfd": lambda: os.close(system_call(USERFAULTFD, 1)),
}


def attempt(work):
    """`allowed`, or `denied` and why, of a child that did the work."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            work()
            code = 0
        except OSError as error:
            code = min(error.errno or 254, 254)
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "denied " + signal.Signals(os.WTERMSIG(status)).name
    code = os.WEXITSTATUS(status)
    if code == 255:
        return "broken"
    return "denied " + errno.errorcode.get(code, str(code)) if code else "allowed"


for name, work in PROBES.items():
    print(name, attempt(work), flush=True)
