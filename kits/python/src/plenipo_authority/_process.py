"""Starting commands in process groups of their own, and ending the whole group."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
from dataclasses import dataclass

from ._authority import CallAuthority
from ._command import SandboxedCommand
from ._errors import Refusal, shown
from ._guard import AuthorityGuard

#: From SIGTERM to SIGKILL, in seconds.
GRACE = 0.5
#: The process groups of commands that have not ended.
_groups: set[int] = set()
#: Commands that are being started, whose groups are not known yet.
_starting = 0
#: The signal that ends the server as soon as these are known.
_dying: int | None = None


@dataclass(frozen=True)
class Completed:
    """How a command ended and what it said."""

    #: The command's own; 128+n when signal n ended it. With a launcher of Plenipo, 125 is its refusal.
    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    #: More was written than is kept.
    truncated: bool
    #: False when nothing was enforced: the result of the tool must say so.
    sandboxed: bool


def kill_on_exit() -> None:
    """Ends every command when the server ends: by itself, or by SIGTERM, SIGINT or SIGHUP.

    Call it once from the main thread when the server starts. After SIGKILL no program can clean up; a host that
    starts servers below a keeper of its own, as Plenipo does, ends their commands too.
    """
    atexit.register(_kill_all)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _die)


async def run(
    command: SandboxedCommand,
    *,
    timeout: float,
    stdin: bytes | None = None,
    maximum_bytes: int = 1 << 20,
) -> Completed:
    """Runs `command` to its end, at most `timeout` seconds, keeping `maximum_bytes` of each stream.

    When it takes longer, or the task is cancelled, the whole process group is ended; with it the launcher, and so
    everything in its sandbox. Without a launcher what left the group (`setsid`) stays. Raises Refusal when the launcher
    cannot be started, and nothing has run then; OSError when there is none and the program cannot be started;
    ValueError, before anything runs, for a timeout that is no number of seconds.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise ValueError(f"timeout must be a number of seconds, found {timeout!r:.40}")
    process = await _start(command, stdin is not None)
    stdout, stderr = _Kept(maximum_bytes), _Kept(maximum_bytes)
    pipes = asyncio.gather(_write(process, stdin), stdout.read(process.stdout), stderr.read(process.stderr))
    try:
        try:
            # The end of the command counts, not that of its output: what it left behind may hold the pipes.
            timed_out = not await _exited(process, timeout)
        finally:
            await asyncio.shield(_end(process))
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(pipes, GRACE)
    finally:
        pipes.cancel()
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    return Completed(
        code if code >= 0 else 128 - code,
        bytes(stdout.data),
        bytes(stderr.data),
        timed_out,
        stdout.truncated or stderr.truncated,
        command.sandboxed,
    )


class GuardedProcess:
    """A process that serves several calls, all under the authority of the call that started it.

    `stdin` and `stdout` are streams of asyncio. Ask `use` before each reuse.
    """

    def __init__(self, process: asyncio.subprocess.Process, authority: CallAuthority) -> None:
        self._process = process
        self._guard = AuthorityGuard(authority)

    @classmethod
    async def start(cls, command: SandboxedCommand) -> GuardedProcess:
        """Starts it, standard error joined to standard output. Raises as `run` does."""
        process = await _start(command, True, joined=True)
        return cls(process, command.authority)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    def use(self, authority: CallAuthority) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        """The streams, for a call under the same authority. Raises AuthorityChanged for any other, Refusal at its end."""
        self._guard.ensure_same(authority)
        if not self.alive or self._process.stdin is None or self._process.stdout is None:
            raise Refusal("process-ended", "the process has ended")
        return self._process.stdin, self._process.stdout

    async def close(self) -> None:
        """Ends the whole process group."""
        await asyncio.shield(_end(self._process))


class _Kept:
    def __init__(self, maximum: int) -> None:
        self.data = bytearray()
        self.truncated = False
        self._maximum = maximum

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        """Reads to the end, so that nobody blocks on a full pipe, and keeps the beginning."""
        while stream is not None and (chunk := await stream.read(1 << 16)):
            room = self._maximum - len(self.data)
            self.data += chunk[:room]
            self.truncated |= len(chunk) > room


async def _start(command: SandboxedCommand, writes: bool, *, joined: bool = False) -> asyncio.subprocess.Process:
    global _starting
    _starting += 1
    creating = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command.argv,
            env=command.environment,
            stdin=asyncio.subprocess.PIPE if writes else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if joined else asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(creating)
        _groups.add(process.pid)
        return process
    except asyncio.CancelledError:
        # It may run already: cancelled half started, asyncio ends the first process of the group alone and waits for the rest.
        while not creating.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({creating})
        if not creating.cancelled() and creating.exception() is None:
            _groups.add(creating.result().pid)
            await asyncio.shield(_end(creating.result()))
        raise
    except OSError as error:
        if not command.sandboxed:
            raise
        launcher = shown(command.argv[0])
        reason = f"the launcher `{launcher}` of this call cannot be started: {error.strerror or error}"
        raise Refusal("launcher-not-started", reason) from error
    finally:
        _starting -= 1
        if _dying is not None:
            _die(_dying, None)


async def _write(process: asyncio.subprocess.Process, data: bytes | None) -> None:
    if data is None or process.stdin is None:
        return
    # A command that does not read its input is its own business.
    with contextlib.suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _exited(process: asyncio.subprocess.Process, timeout: float) -> bool:
    """Whether it ended in time. `wait` alone waits for the pipes too in some versions of Python."""
    waiter = asyncio.ensure_future(process.wait())
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    try:
        while process.returncode is None and loop.time() < deadline:
            await asyncio.wait({waiter}, timeout=min(0.05, max(0.0, deadline - loop.time())))
    finally:
        waiter.cancel()
    return process.returncode is not None


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends what is left of a group: TERM, then KILL."""
    if process.returncode is None:
        _signal(process.pid, signal.SIGTERM)
        await _exited(process, GRACE)
    _signal(process.pid, signal.SIGKILL)
    await _exited(process, 10 * GRACE)
    _groups.discard(process.pid)


def _signal(group: int, number: int) -> None:
    # Gone already, or only processes of another user are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _kill_all() -> None:
    for group in list(_groups):
        _signal(group, signal.SIGKILL)


def _die(number: int, _frame: object) -> None:
    global _dying
    if _starting:
        # It runs already, and nobody knows its number: as soon as somebody does.
        _dying = number
        return
    _kill_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
