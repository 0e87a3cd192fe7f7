"""One attack per name: `probe.py NAME`. Prints `ALLOWED` or `DENIED <errno name or signal>`.

Places and numbers come from the environment: OUT (outside every root), WS (a writable root), WS2 (another one, without
.git), HOST_PID (a process outside), TCP and UDP (ports of listeners outside), ABSTRACT (their abstract socket's name).
`probe.py --inherit … -- ARGV` and `probe.py --terminal -- ARGV` run ARGV with descriptors 6 to 8 open, or on a
pseudo-terminal.
"""

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys
import time

OUT = os.environ.get("OUT", "")
WS = os.environ.get("WS", "")
WS2 = os.environ.get("WS2", "")
HOST_PID = int(os.environ.get("HOST_PID", "0"))
TCP = int(os.environ.get("TCP", "0"))
UDP = int(os.environ.get("UDP", "0"))
ABSTRACT = "\0" + os.environ.get("ABSTRACT", "")
NAME = os.environ.get("PROBE_NAME", "plenipo-probe")

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
MACHINE = os.uname().machine
PROBES = {}

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
AT_FDCWD = -100
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18


def number(x86_64, aarch64):
    return x86_64 if MACHINE == "x86_64" else aarch64


def call(nr, *arguments):
    """A raw system call; numbers are passed as 64-bit values."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(nr), *wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def probe(function):
    PROBES[function.__name__.replace("_", "-")] = function
    return function


def out(*names):
    return os.path.join(OUT, *names)


def ws(*names):
    return os.path.join(WS, *names)


def ws2(*names):
    return os.path.join(WS2, *names)


def put(path, flags=os.O_CREAT, text=b"evil"):
    descriptor = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


def in_child(work):
    """Runs `work` in a forked child, so that what it changes of itself is gone afterwards; raises what it raised."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except OSError as error:
            os._exit(error.errno if error.errno < 200 else 199)
        except BaseException:
            os._exit(255)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        raise Killed(os.WTERMSIG(status))
    code = os.WEXITSTATUS(status)
    if code == 255:
        raise RuntimeError("the probe itself failed")
    if code:
        raise OSError(code, os.strerror(code))


class Killed(Exception):
    pass


def own_mounts():
    """A mount namespace of one's own, where that is possible: what is mounted then stays off the host."""
    for flags in (CLONE_NEWNS, CLONE_NEWUSER | CLONE_NEWNS):
        if libc.unshare(flags) == 0:
            libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
            return


# 1: writing outside


@probe
def create():
    put(out("new"))


@probe
def append():
    put(out("target"), os.O_APPEND)


@probe
def truncate():
    os.truncate(out("target"), 0)


@probe
def unlink():
    os.unlink(out("victim"))


@probe
def make_directory():
    os.mkdir(out("made"))


@probe
def make_fifo():
    os.mkfifo(out("fifo"))


# 2: metadata


@probe
def chmod():
    os.chmod(out("target"), 0o600)


@probe
def touch():
    os.utime(out("target"), (1, 1))


@probe
def set_attribute():
    os.setxattr(out("target"), "user.x", b"1")


@probe
def chown():
    os.chown(out("target"), os.getuid(), os.getgid())


# 3: symbolic links


@probe
def through_link():
    os.symlink(OUT, ws("ln"))
    put(ws("ln", "new"))


@probe
def link_race():
    os.mkdir(ws("real"))
    child = os.fork()
    if child == 0:
        while True:
            try:
                os.symlink(OUT, ws("swap"))
                os.rename(ws("swap"), ws("race"))
                os.unlink(ws("race"))
                os.rename(ws("real"), ws("race"))
                os.rename(ws("race"), ws("real"))
            except OSError:
                pass
    last = OSError(errno.ENOENT, "")
    try:
        deadline, refused = time.monotonic() + 10, 0
        while refused < 200 and time.monotonic() < deadline:
            try:
                put(ws("race", "raced"))
                if os.path.exists(out("raced")):
                    return
            except OSError as error:
                if error.errno != errno.ENOENT:
                    last, refused = error, refused + 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    raise last


# 4: hard links


@probe
def hard_link():
    os.link(out("target"), ws("hl"))
    put(ws("hl"), os.O_APPEND)


# 5: rename


@probe
def rename_in():
    os.rename(out("victim"), ws("taken"))


@probe
def rename_out():
    os.rename(ws("mine"), out("left"))


@probe
def rename_exchange():
    exchange(ws("mine"), out("target"))


def exchange(one, other):
    nr = number(316, 276)
    call(nr, AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), 2)


# 6: by way of /proc


@probe
def self_root():
    put("/proc/self/root" + out("new"))


@probe
def self_cwd():
    os.chdir(WS)
    put("/proc/self/cwd/../out/new")


@probe
def init_root():
    put("/proc/1/root" + out("new"))


@probe
def host_root():
    put(f"/proc/{HOST_PID}/root" + out("new"))


@probe
def host_environ():
    open(f"/proc/{HOST_PID}/environ", "rb").read(1)


@probe
def host_descriptors():
    os.listdir(f"/proc/{HOST_PID}/fd")


@probe
def host_memory():
    os.close(os.open(f"/proc/{HOST_PID}/mem", os.O_RDWR))


@probe
def init_memory():
    os.close(os.open("/proc/1/mem", os.O_RDWR))


@probe
def init_directory():
    put("/proc/1/cwd/" + "../" * 40 + out("new"))


# 7: the kernel's own files


def open_for_writing(path):
    os.close(os.open(path, os.O_WRONLY))


@probe
def core_pattern():
    open_for_writing("/proc/sys/kernel/core_pattern")


@probe
def sysrq():
    open_for_writing("/proc/sysrq-trigger")


@probe
def sysfs():
    open_for_writing("/sys/kernel/uevent_helper" if os.path.exists("/sys/kernel/uevent_helper") else "/sys/kernel/profiling")


@probe
def cgroup():
    for base, _, names in os.walk("/sys/fs/cgroup"):
        if "cgroup.procs" in names:
            return open_for_writing(os.path.join(base, "cgroup.procs"))
    raise OSError(errno.ENOENT, "")


@probe
def kernel_log():
    open_for_writing("/dev/kmsg")


@probe
def raw_disk():
    import stat

    for name in sorted(os.listdir("/dev")):
        if stat.S_ISBLK(os.lstat("/dev/" + name).st_mode):
            return os.close(os.open("/dev/" + name, os.O_RDONLY))
    for line in open("/proc/partitions"):
        fields = line.split()
        if len(fields) == 4 and fields[0].isdigit():
            device = os.makedev(int(fields[0]), int(fields[1]))
            os.mknod(ws("disk"), 0o600 | stat.S_IFBLK, device)
            return os.close(os.open(ws("disk"), os.O_RDONLY))
    raise OSError(errno.ENODEV, "")


@probe
def make_device():
    os.mknod(ws("null"), 0o666 | 0o020000, os.makedev(1, 3))
    os.close(os.open(ws("null"), os.O_RDWR))


# 8: mounts


def mounting(work):
    def run():
        def child():
            own_mounts()
            work()

        in_child(child)

    return run


def mount(source, target, kind, flags):
    if libc.mount(source, target.encode(), kind, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "")


PROBES["mount-memory"] = mounting(lambda: mount(b"t", WS, b"tmpfs", 0))
PROBES["bind-outside"] = mounting(lambda: mount(OUT.encode(), WS, None, MS_BIND))
PROBES["file-system-open"] = mounting(lambda: call(430, b"tmpfs", 0))
PROBES["clone-mount"] = mounting(lambda: call(428, AT_FDCWD, b"/", 0x8001))


@probe
def remount_writable():
    def child():
        own_mounts()
        mount(OUT.encode(), OUT, None, MS_BIND)
        mount(b"x", OUT, None, MS_BIND | MS_REMOUNT)

    in_child(child)


@probe
def remount_root():
    def child():
        own_mounts()
        mount(b"x", "/", None, MS_BIND | MS_REMOUNT)

    in_child(child)


@probe
def unmount_mask():
    def child():
        own_mounts()
        libc.mount(b"t", ws("secret").encode(), b"tmpfs", 0, None)
        if libc.umount2(ws("secret").encode(), 2) != 0:
            raise OSError(ctypes.get_errno(), "")
        os.listdir(ws("secret"))

    in_child(child)


@probe
def set_mount():
    def child():
        own_mounts()
        attributes = struct.pack("QQQQ", 0, 1, 0, 0)
        call(442, AT_FDCWD, b"/", 0, attributes, len(attributes))

    in_child(child)


@probe
def enter_namespace():
    def child():
        own_mounts()
        descriptor = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        call(number(308, 268), descriptor, 0)

    in_child(child)


@probe
def change_root():
    def child():
        own_mounts()
        if libc.chroot(WS.encode()) != 0:
            raise OSError(ctypes.get_errno(), "")

    in_child(child)


# 9: namespaces


def unshare(flags):
    def child():
        if libc.unshare(flags) != 0:
            raise OSError(ctypes.get_errno(), "")

    return lambda: in_child(child)


PROBES["unshare-user"] = unshare(CLONE_NEWUSER)
PROBES["unshare-mount"] = unshare(CLONE_NEWUSER | CLONE_NEWNS)
PROBES["unshare-network"] = unshare(CLONE_NEWUSER | 0x40000000)


@probe
def clone_user():
    flags = CLONE_NEWUSER | signal.SIGCHLD
    child = call(number(56, 220), flags, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


@probe
def clone3_user():
    arguments = struct.pack("11Q", CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    child = call(435, arguments, len(arguments))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


# 10: other processes


@probe
def trace():
    in_child(lambda: call(number(101, 117), 0x4206, HOST_PID, 0, 0))


@probe
def trace_own_child():
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    try:
        call(number(101, 117), 0x4206, child, 0, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def host_address():
    for line in open(f"/proc/{HOST_PID}/maps"):
        return int(line.split("-")[0], 16)


def move_memory(nr, pid, address):
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack("QQ", ctypes.addressof(buffer), 8)
    call(nr, pid, local, 1, struct.pack("QQ", address, 8), 1, 0)


@probe
def read_memory():
    address = host_address() if os.path.exists(f"/proc/{HOST_PID}/maps") else 0x400000
    move_memory(number(310, 270), HOST_PID, address)


@probe
def read_own_memory():
    buffer = ctypes.create_string_buffer(8)
    move_memory(number(310, 270), os.getpid(), ctypes.addressof(buffer))


@probe
def process_descriptor():
    os.close(call(434, HOST_PID, 0))


@probe
def kill():
    os.kill(HOST_PID, 0)


@probe
def kill_everything():
    os.kill(HOST_PID, signal.SIGURG)


@probe
def take_descriptor():
    own = call(434, os.getpid(), 0)
    os.close(call(438, own, 0, 0))


# 11 to 13: sockets of the host


def stream(address):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.connect(address)


def datagram(address, send):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        send(one, address)


def by_sendto(one, address):
    one.sendto(b"x", address)


def by_sendmsg(one, address):
    one.sendmsg([b"x"], [], 0, address)


def by_connect(one, address):
    one.connect(address)
    one.send(b"x")


def by_sendmmsg(one, address):
    raw = address if isinstance(address, bytes) else address.encode()
    name = struct.pack("H", socket.AF_UNIX) + raw + (b"" if raw.startswith(b"\0") else b"\0")
    name = ctypes.create_string_buffer(name, len(name))
    data = ctypes.create_string_buffer(b"x", 1)
    vector = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(data), 1), 16)
    header = struct.pack("QIIQQQQQI4x", ctypes.addressof(name), len(name), 0, ctypes.addressof(vector), 1, 0, 0, 0, 0)
    call(number(307, 269), one.fileno(), header + b"\0" * 8, 1, 0)


PROBES["abstract-stream"] = lambda: stream(ABSTRACT)
PROBES["abstract-datagram"] = lambda: datagram(ABSTRACT + "-d", by_sendto)
PROBES["path-stream"] = lambda: stream(out("stream.sock"))
PROBES["path-datagram-sendto"] = lambda: datagram(out("datagram.sock"), by_sendto)
PROBES["path-datagram-sendmsg"] = lambda: datagram(out("datagram.sock"), by_sendmsg)
PROBES["path-datagram-sendmmsg"] = lambda: datagram(out("datagram.sock"), by_sendmmsg)
PROBES["path-datagram-connect"] = lambda: datagram(out("datagram.sock"), by_connect)


@probe
def pair_sendmsg():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendmsg([b"x"], [], 0, out("datagram.sock"))


@probe
def pair_raw():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)
    one.sendmsg([b"x"], [], 0, out("datagram.sock"))


@probe
def pair_connect():
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    one.connect(out("stream.sock"))


# 14: families


def family(*arguments):
    return lambda: socket.socket(*arguments).close()


PROBES["tcp"] = family(socket.AF_INET, socket.SOCK_STREAM)
PROBES["tcp6"] = family(socket.AF_INET6, socket.SOCK_STREAM)
PROBES["udp"] = family(socket.AF_INET, socket.SOCK_DGRAM)
PROBES["icmp"] = family(socket.AF_INET, socket.SOCK_RAW, 1)
PROBES["netlink"] = family(socket.AF_NETLINK, socket.SOCK_RAW)
PROBES["packet"] = family(socket.AF_PACKET, socket.SOCK_RAW)
PROBES["vsock"] = family(40, socket.SOCK_STREAM)
PROBES["crypto"] = family(38, socket.SOCK_SEQPACKET)
PROBES["bluetooth"] = family(31, socket.SOCK_RAW, 1)


# 15: the network


@probe
def udp_to_host():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", UDP))


@probe
def tcp_to_host():
    socket.create_connection(("127.0.0.1", TCP), 5).close()


@probe
def metadata_service():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("169.254.169.254", 80))


# 16: typing into a terminal; standard input is a pseudo-terminal that controls nobody inside


def request_of_terminal(request):
    def run():
        data = ctypes.create_string_buffer(b"x", 1)
        call(number(16, 29), 0, request, data)

    return run


PROBES["type-ahead"] = request_of_terminal(0x5412)
PROBES["type-ahead-wide"] = request_of_terminal(0x100005412)
PROBES["console-request"] = request_of_terminal(0x541C)


# 17


@probe
def ring():
    parameters = ctypes.create_string_buffer(120)
    os.close(call(425, 4, parameters))


# 18: inherited descriptors


@probe
def inherited_file():
    os.write(7, b"evil")


@probe
def inherited_directory():
    os.close(os.open("inherited", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=8))


@probe
def inherited_socket():
    os.write(6, b"x")


# 20, 21: kernel surface


@probe
def session_keyring():
    call(number(250, 219), 0, -3, 0)


@probe
def add_key():
    call(number(248, 217), b"user", b"plenipo", b"v", 1, -2)


@probe
def request_key():
    call(number(248, 217), b"user", b"plenipo", b"v", 1, -2)
    call(number(249, 218), b"user", b"plenipo", None, 0)


@probe
def bpf():
    attributes = struct.pack("IIII", 2, 4, 4, 1) + b"\0" * 112
    os.close(call(number(321, 280), 0, attributes, 64))


@probe
def perf_event():
    attributes = struct.pack("II", 1, 128) + b"\0" * 120
    os.close(call(number(298, 241), attributes, 0, -1, -1, 0))


@probe
def fault_handler():
    os.close(call(number(323, 282), 1))


@probe
def watch_everything():
    os.close(call(number(300, 262), 0, 0))


@probe
def load_kernel():
    call(number(246, 104), 0, 99, 0, 0)


@probe
def load_module():
    call(number(175, 105), None, 0, b"")


@probe
def load_module_file():
    call(number(313, 273), -1, b"", 0)


@probe
def open_by_handle():
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
    mount_id = ctypes.c_int()
    call(number(303, 264), AT_FDCWD, out("target").encode(), handle, ctypes.byref(mount_id), 0)
    directory = os.open("/", os.O_RDONLY)
    os.close(call(number(304, 265), directory, handle, os.O_RDONLY))


# 22: other system call entries


@probe
def old_entry():
    import mmap

    def child():
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        if ctypes.CFUNCTYPE(ctypes.c_int)(address)() <= 0:
            raise OSError(errno.ENOSYS, "")

    in_child(child)


@probe
def x32_entry():
    call(39 | 0x40000000)


# 23, 24: protected names


@probe
def git_config():
    put(ws(".git", "config"), os.O_APPEND)


@probe
def git_hook():
    put(ws(".git", "hooks", "pre-commit"))


@probe
def git_move():
    os.rename(ws(".git"), ws(".g"))


@probe
def git_remove():
    os.unlink(ws(".git", "config"))


@probe
def git_make():
    os.mkdir(ws2(".git"))


@probe
def git_link():
    os.symlink("/tmp", ws2(".git"))


@probe
def git_init():
    import subprocess

    environment = dict(os.environ, GIT_CONFIG_NOSYSTEM="1", HOME=WS2)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.run(["git", "init", "-q", WS2], env=environment, **quiet).returncode:
        raise OSError(errno.EROFS, "")


@probe
def git_rename_onto():
    os.mkdir(ws2("fake"))
    os.rename(ws2("fake"), ws2(".git"))


@probe
def git_fill():
    if not os.path.isdir(ws2(".git")):
        os.mkdir(ws2(".git"))
    os.chmod(ws2(".git"), 0o755)
    put(ws2(".git", "config"))


# 26: ancestors


@probe
def move_ancestor():
    os.rename(ws("sub"), ws("sub2"))
    os.makedirs(ws("sub", "protected"))
    put(ws("sub", "protected", "f"))


@probe
def exchange_ancestor():
    os.makedirs(ws("other", "protected"))
    put(ws("other", "protected", "f"))
    exchange(ws("sub"), ws("other"))


@probe
def move_protected():
    os.rename(ws("sub", "protected"), ws("sub", "aside"))


@probe
def remove_ancestor():
    import shutil

    try:
        shutil.rmtree(ws("sub"))
    except shutil.Error as error:
        raise OSError(errno.EPERM, "") from error


@probe
def move_root():
    os.rename(WS, WS + "-moved")
    os.makedirs(ws("sub", "protected"))
    put(ws("sub", "protected", "f"))


# 27, 28: denied places


@probe
def list_denied():
    os.listdir(ws("secret"))


@probe
def read_below_denied():
    open(ws("secret", "inner")).read()


def read_text(path):
    if "secret" not in open(path).read():
        raise OSError(errno.ENODATA, "")


PROBES["read-denied-file"] = lambda: read_text(ws("secret.txt"))
PROBES["read-denied-outside"] = lambda: read_text(out("hidden", "inner"))
PROBES["read-denied-link"] = lambda: read_text(ws("to-secret"))
PROBES["read-glob-match"] = lambda: read_text(ws("app.env"))


@probe
def read_by_descriptor():
    descriptor = os.open(ws("secret.txt"), os.O_PATH)
    read_text(f"/proc/self/fd/{descriptor}")


@probe
def move_denied():
    os.rename(ws("secret.txt"), ws("moved"))
    read_text(ws("moved"))


@probe
def link_denied():
    os.link(ws("secret.txt"), ws("linked"))
    read_text(ws("linked"))


@probe
def chmod_denied():
    os.chmod(ws("secret"), 0o777)
    os.listdir(ws("secret"))


@probe
def write_into_mask():
    put(ws("secret", "new"))


@probe
def write_onto_mask():
    put(ws("secret.txt"), os.O_APPEND)


# 30: places that everybody writes


@probe
def write_tmp():
    put("/tmp/" + NAME)


@probe
def write_shared_memory():
    put("/dev/shm/" + NAME)


@probe
def write_var_tmp():
    put("/var/tmp/" + NAME)


# running something with more than three descriptors, or on a terminal


def inherit(argv):
    """Descriptors 6 (a connected socket), 7 (a file open for writing), 8 (a directory)."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.connect(("127.0.0.1", UDP))
    os.dup2(one.fileno(), 6)
    os.dup2(os.open(out("target"), os.O_WRONLY | os.O_APPEND), 7)
    os.dup2(os.open(OUT, os.O_RDONLY), 8)
    os.execv(argv[0], argv)


def terminal(argv):
    import pty

    child, master = pty.fork()
    if child == 0:
        settings = __import__("termios")
        attributes = settings.tcgetattr(0)
        attributes[1] &= ~settings.OPOST
        attributes[3] &= ~settings.ECHO
        settings.tcsetattr(0, settings.TCSANOW, attributes)
        os.execv(argv[0], argv)
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        os.write(1, data)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def main():
    words = sys.argv[1:]
    if words[0] in ("--inherit", "--terminal"):
        return (inherit if words[0] == "--inherit" else terminal)(words[2:])
    try:
        PROBES[words[0]]()
        print("ALLOWED")
    except OSError as error:
        print("DENIED", errno.errorcode.get(error.errno, error.errno))
    except Killed as killed:
        print("DENIED", signal.Signals(killed.args[0]).name)


main()
