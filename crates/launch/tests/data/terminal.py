"""A person at a terminal: `terminal.py SCENARIO LAUNCHER ARGUMENT...` runs the launcher on a pseudo-terminal of its own,
types, and prints what was seen. The scenario's last words tell what the command is; see `tests/it/terminal.rs`."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 30


class Terminal:
    def __init__(self, words, rows=37, columns=101):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = self.settings()
        self.said = b""
        self.child = os.fork()
        if self.child == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for number in range(3):
                os.dup2(self.slave, number)
            os.close(self.master)
            os.execvp(words[0], words)

    def settings(self):
        return termios.tcgetattr(self.slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            self.said += os.read(self.master, 65536)
        return bool(ready)

    def until(self, text):
        deadline = time.monotonic() + LIMIT
        while text.encode() not in self.said:
            left = deadline - time.monotonic()
            if left <= 0 or not self.read(left):
                raise SystemExit(f"no {text!r} in {self.said!r}")
        self.said = self.said.split(text.encode(), 1)[1]

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """The exit code, with everything that was said still to be read."""
        deadline = time.monotonic() + LIMIT
        while True:
            pid, status = os.waitpid(self.child, os.WNOHANG)
            if pid:
                break
            self.read(0.01)
            if time.monotonic() > deadline:
                raise SystemExit(f"it does not end: {self.said!r}")
        while self.read(0):
            pass
        restored = "restored" if self.settings() == self.before else "NOT restored"
        return f"{os.waitstatus_to_exitcode(status)} {restored}"


def size(terminal):
    terminal.until("size 37 101")
    terminal.resize(50, 120)
    terminal.until("size 50 120")
    return terminal.end()


def interrupt(terminal):
    terminal.until("ready")
    terminal.type("\x03")
    terminal.until("interrupted")
    return terminal.end()


def quit_key(terminal):
    terminal.until("ready")
    terminal.type("\x1c")
    return terminal.end()


def suspend(terminal):
    """The command line is a shell with job control that runs the launcher."""
    terminal.until("ready")
    terminal.type("\x1a")
    terminal.until("status 148 ")
    terminal.until("cooked")
    terminal.until("ready again")
    terminal.type("word\n")
    terminal.until("got word")
    terminal.until("end 5")
    return terminal.end()


def inner_jobs(terminal):
    """An interactive shell inside, with a job of its own."""
    terminal.until("$ ")
    terminal.type("echo go; cat\n")
    terminal.until("go\r\n")
    terminal.type("echoed\n")
    terminal.until("echoed\r\nechoed\r\n")
    terminal.type("\x1a")
    terminal.until("Stopped")
    terminal.until("$ ")
    terminal.type("fg\n")
    terminal.until("cat\r\n")
    terminal.type("more\n")
    terminal.until("more\r\nmore\r\n")
    terminal.type("\x03")
    terminal.until("$ ")
    terminal.type("exit 6\n")
    return terminal.end()


def killed(terminal):
    terminal.until("ready")
    os.kill(terminal.child, signal.SIGTERM)
    return terminal.end()


def plain(terminal):
    code = terminal.end()
    return f"{code}\n{terminal.said.decode()}"


def bulk(terminal):
    """A reader that is slow, and a command that ends at once after it has written."""
    time.sleep(0.05)
    code = terminal.end()
    return f"{code} {terminal.said.count(b'x')} {terminal.said.endswith(b'last' + bytes([13, 10]))}"


SCENARIOS = {
    "size": size,
    "interrupt": interrupt,
    "quit": quit_key,
    "suspend": suspend,
    "inner-jobs": inner_jobs,
    "killed": killed,
    "plain": plain,
    "bulk": bulk,
}
print(SCENARIOS[sys.argv[1]](Terminal(sys.argv[2:])))
