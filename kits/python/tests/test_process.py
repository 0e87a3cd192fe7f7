"""Real processes: a launcher that is a script stands where the host's would."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from plenipo_authority import (
    AuthorityChanged,
    CallAuthority,
    Guarded,
    GuardedProcess,
    MetaError,
    OperatorPolicy,
    Refusal,
    SandboxedCommand,
    meta_of,
    run,
)

STATE = {"sandboxCwd": "file:///", "n": 1}


def gone(pid, deadline=10.0):
    """Whether the process ends; a zombie that nobody has reaped yet has ended."""
    until = time.monotonic() + deadline
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


class Processes(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # On a busy machine every step is slow, which is nothing to tell.
        asyncio.get_running_loop().slow_callback_duration = 60.0

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.launcher = Path(self.directory.name) / "launcher"
        # Says how it was called, then runs the command.
        self.launcher.write_text(
            "#!/bin/sh\nprintf '%s\\n' \"$1\" \"$2\" \"$3\" \"$4\" >&2\nshift 4\nexec \"$@\"\n"
        )
        self.launcher.chmod(stat.S_IRWXU)

    def authority(self, state=None):
        return CallAuthority.from_meta(
            {
                "codex/sandbox-state": state or STATE,
                "codex/sandbox-launcher": {"codexExecutable": str(self.launcher)},
            }
        )

    async def test_a_command_runs_through_the_launcher_with_a_cleared_environment(self):
        os.environ["KIT_SECRET"] = "s3cret"
        self.addCleanup(os.environ.pop, "KIT_SECRET")
        command = SandboxedCommand(self.authority(), ["sh", "-c", "cat; env; exit 3"], additions={"ADDED": "1"})
        done = await run(command, timeout=20, stdin=b"input\n")
        self.assertEqual((done.exit_code, done.timed_out, done.sandboxed), (3, False, True))
        self.assertEqual(done.stderr.decode().splitlines(), ["sandbox", "--sandbox-state-json", json.dumps(STATE, separators=(",", ":")), "--"])
        self.assertTrue(done.stdout.startswith(b"input\n"))
        self.assertIn(b"\nADDED=1\n", done.stdout)
        self.assertNotIn(b"s3cret", done.stdout)

    async def test_without_a_time_limit_that_is_a_number_nothing_is_started(self):
        mark = Path(self.directory.name) / "ran"
        command = SandboxedCommand(self.authority(), ["touch", str(mark)])
        for timeout in (None, float("nan"), -1, "5", True):
            with self.assertRaises(ValueError):
                await run(command, timeout=timeout)
        self.assertFalse(mark.exists())
        done = await run(command, timeout=float("inf"))
        self.assertEqual((done.exit_code, done.timed_out, mark.exists()), (0, False, True))

    async def test_a_launcher_that_is_gone_is_an_error_and_nothing_runs(self):
        mark = Path(self.directory.name) / "ran"
        command = SandboxedCommand(self.authority(), ["touch", str(mark)])
        self.launcher.unlink()
        for start in (run(command, timeout=20), GuardedProcess.start(command)):
            with self.assertRaises(Refusal) as refused:
                await start
            self.assertEqual(refused.exception.code, "launcher-not-started")
            self.assertIn(f"the launcher `{self.launcher}` of this call cannot be started: No such file", str(refused.exception))
            self.assertIn("nothing was run", refused.exception.hint)
        self.assertFalse(mark.exists())
        # Without one it is the program that is missing, as anywhere.
        alone = SandboxedCommand(CallAuthority.absent(), ["/nonexistent/x"], OperatorPolicy.ALLOW_UNSANDBOXED)
        with self.assertRaises(FileNotFoundError):
            await run(alone, timeout=20)

    async def test_a_command_is_a_list_and_an_authority_is_one(self):
        for line in ("ls -l", b"ls"):
            with self.assertRaises(Refusal) as refused:
                SandboxedCommand(self.authority(), line)
            self.assertEqual(refused.exception.code, "command-not-a-list")
        shell = await GuardedProcess.start(SandboxedCommand(self.authority(), ["sh"]))
        self.addAsyncCleanup(shell.close)
        cached = Guarded("result", self.authority())
        for use in (shell.use, cached.take, lambda none: SandboxedCommand(none, ["ls"]), lambda none: Guarded(1, none)):
            with self.assertRaises(Refusal) as refused:
                use(None)
            self.assertEqual(refused.exception.code, "not-an-authority")
            self.assertIn("found NoneType", str(refused.exception))
        shell.use(self.authority())

    async def test_an_unsandboxed_command_says_so(self):
        command = SandboxedCommand(CallAuthority.absent(), ["true"], OperatorPolicy.ALLOW_UNSANDBOXED)
        self.assertFalse((await run(command, timeout=20)).sandboxed)

    async def test_a_timeout_ends_the_whole_group(self):
        script = "trap '' TERM; sleep 600 & echo $!; echo $$; wait; wait"
        command = SandboxedCommand(self.authority(), ["sh", "-c", script])
        done = await run(command, timeout=0.5)
        self.assertTrue(done.timed_out)
        self.assertEqual(done.exit_code, 128 + signal.SIGKILL)
        for pid in done.stdout.split():
            self.assertTrue(gone(int(pid)), pid)

    async def test_cancelling_ends_the_whole_group(self):
        pids = Path(self.directory.name) / "pids"
        script = f"sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
        task = asyncio.create_task(run(SandboxedCommand(self.authority(), ["sh", "-c", script]), timeout=600))
        while not pids.exists():
            self.assertFalse(task.done())
            await asyncio.sleep(0.01)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        for pid in pids.read_text().split():
            self.assertTrue(gone(int(pid)), pid)

    async def test_cancelling_while_it_is_being_started_ends_the_whole_group(self):
        pids = Path(self.directory.name) / "pids"
        script = f"sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
        create, known = asyncio.create_subprocess_exec, asyncio.Event()

        async def slowly(*words, **options):
            process = await create(*words, **options)
            await known.wait()
            return process

        with mock.patch("asyncio.create_subprocess_exec", slowly):
            task = asyncio.create_task(run(SandboxedCommand(self.authority(), ["sh", "-c", script]), timeout=600))
            while not pids.exists():
                self.assertFalse(task.done())
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            known.set()
            with self.assertRaises(asyncio.CancelledError):
                await task
        for pid in pids.read_text().split():
            self.assertTrue(gone(int(pid)), pid)

    async def test_what_a_command_leaves_behind_is_ended_and_does_not_hold_the_answer(self):
        done = await run(SandboxedCommand(self.authority(), ["sh", "-c", "sleep 600 & echo $!"]), timeout=60)
        self.assertEqual((done.exit_code, done.timed_out), (0, False))
        self.assertTrue(gone(int(done.stdout)))

    async def test_output_is_bounded_and_the_command_is_not_blocked(self):
        script = "head -c 5000000 /dev/zero; echo end >&2"
        done = await run(SandboxedCommand(self.authority(), ["sh", "-c", script]), timeout=60, maximum_bytes=1000)
        self.assertEqual((done.exit_code, len(done.stdout), done.truncated), (0, 1000, True))
        self.assertTrue(done.stderr.endswith(b"end\n"))

    async def test_a_long_lived_process_refuses_another_authority(self):
        first, second = self.authority(), self.authority({**STATE, "n": 2})
        shell = await GuardedProcess.start(SandboxedCommand(first, ["sh"]))
        try:
            stdin, stdout = shell.use(first)
            while b"--\n" not in await stdout.readline():
                pass
            stdin.write(b"x=41\n")
            stdin, stdout = shell.use(self.authority())
            stdin.write(b"echo $((x+1)) $$\n")
            answer, pid = (await stdout.readline()).split()
            self.assertEqual(answer, b"42")
            with self.assertRaises(AuthorityChanged):
                shell.use(second)
            with self.assertRaises(AuthorityChanged):
                shell.use(CallAuthority.absent())
        finally:
            await shell.close()
        self.assertTrue(gone(int(pid)))
        self.assertFalse(shell.alive)

    async def test_a_cached_result_serves_the_same_authority_only(self):
        cached = Guarded("result", self.authority())
        self.assertEqual(cached.take(self.authority()), "result")
        with self.assertRaises(AuthorityChanged):
            cached.take(self.authority({**STATE, "n": 2}))

    def test_commands_end_with_the_server(self):
        server = textwrap.dedent(
            """
            import asyncio, sys
            from plenipo_authority import *
            kill_on_exit()
            command = SandboxedCommand(
                CallAuthority.absent(), ["sh", "-c", "trap '' TERM; echo $$ > $0; sleep 600", sys.argv[1]],
                OperatorPolicy.ALLOW_UNSANDBOXED)
            asyncio.run(run(command, timeout=600))
            """
        )
        mark = Path(self.directory.name) / "pid"
        path = os.pathsep.join(sys.path)
        process = subprocess.Popen([sys.executable, "-c", server, str(mark)], env={**os.environ, "PYTHONPATH": path})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while not (mark.exists() and mark.read_text().endswith("\n")):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), -signal.SIGTERM)
        self.assertTrue(gone(int(mark.read_text())))

    def test_the_meta_of_a_call_is_found_in_every_sdk(self):
        meta = {"codex/sandbox-state": STATE}
        version_2 = SimpleNamespace(request_context=SimpleNamespace(params={"_meta": meta}, meta={}))
        low_level = SimpleNamespace(params={"_meta": meta}, meta={})
        fastmcp = SimpleNamespace(request_context=SimpleNamespace(meta=meta))
        version_1 = SimpleNamespace(request_context=SimpleNamespace(meta=SimpleNamespace(model_extra=meta)))
        for context in (version_2, low_level, fastmcp, version_1):
            self.assertIsNotNone(CallAuthority.from_meta(meta_of(context)).state)
        self.assertEqual(CallAuthority.from_meta(meta_of(object())), CallAuthority.absent())

    def test_a_value_that_is_no_json_is_refused(self):
        for value in ({1: 2}, {"a": object()}, {"a": float("nan")}, {"a": (1,)}):
            with self.assertRaises(MetaError):
                CallAuthority.from_meta({"codex/sandbox-state": value})


if __name__ == "__main__":
    unittest.main()
