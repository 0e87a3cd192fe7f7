"""What the example servers do, whatever their SDK: one command for one call, and a shell that stays."""

import asyncio
import contextlib

from plenipo_authority import CallAuthority, GuardedProcess, OperatorPolicy, SandboxedCommand, run

TIMEOUT = 60


class Commands:
    """`operator` is from the server's own command line, which its operator wrote."""

    def __init__(self, operator: OperatorPolicy) -> None:
        self._operator = operator
        self._shell: GuardedProcess | None = None
        self._turn = asyncio.Lock()
        self._count = 0

    async def run(self, meta, command: str) -> dict:
        """`sh -c COMMAND` under the policy of this call."""
        authority = CallAuthority.from_meta(meta)
        done = await run(self._command(authority, ["/bin/sh", "-c", command]), timeout=TIMEOUT)
        return {
            "exitCode": done.exit_code,
            "stdout": done.stdout.decode(errors="replace"),
            "stderr": done.stderr.decode(errors="replace"),
            "timedOut": done.timed_out,
            "sandboxed": done.sandboxed,
        }

    async def repl(self, meta, line: str) -> dict:
        """A line for the shell that stays. It was started under one policy and serves no other."""
        authority = CallAuthority.from_meta(meta)
        async with self._turn:
            if self._shell is None or not self._shell.alive:
                self._shell = await GuardedProcess.start(self._command(authority, ["/bin/sh"]))
            stdin, stdout = self._shell.use(authority)
            self._count += 1
            mark = f"--end-{self._count}--"
            stdin.write(f"{line}\nprintf '\\n%s %s\\n' {mark} \"$?\"\n".encode())
            try:
                output = await asyncio.wait_for(stdout.readuntil(f"\n{mark} ".encode()), TIMEOUT)
                status = int(await stdout.readline())
            except BaseException:
                # Nobody knows what it does with the line, or what is still to come.
                await self.close()
                raise
        said = output.decode(errors="replace").rsplit(f"\n{mark} ", 1)[0]
        return {"exitCode": status, "stdout": said}

    async def close(self) -> None:
        """Ends the shell; the next line gets a new one."""
        if self._shell is not None:
            shell, self._shell = self._shell, None
            with contextlib.suppress(OSError):
                await shell.close()

    def _command(self, authority: CallAuthority, argv: list[str]) -> SandboxedCommand:
        return SandboxedCommand(authority, argv, self._operator)


def operator_of(arguments: list[str]) -> OperatorPolicy:
    """`--allow-unsandboxed` on the server's own command line is its operator's opt-out."""
    if "--allow-unsandboxed" in arguments:
        return OperatorPolicy.ALLOW_UNSANDBOXED
    return OperatorPolicy.REQUIRE_LAUNCHER
