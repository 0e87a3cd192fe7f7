"""`leftovers.py LAUNCHER STATE`: a command that leaves its session and outlives its time limit, run by the Python kit.
Prints how many processes of it are left. The kit is found by PYTHONPATH."""

import asyncio
import json
import sys
import time
import uuid
from pathlib import Path

from plenipo_authority import CallAuthority, SandboxedCommand, run

#: How long the last of them may take.
PATIENCE = 10


def alive(mark: str) -> int:
    count = 0
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        count += words[:1] == [b"sleep"] and mark.encode() in words
    return count


async def main() -> None:
    launcher, state = sys.argv[1:]
    meta = {"codex/sandbox-state": json.loads(state), "codex/sandbox-launcher": {"codexExecutable": launcher}}
    # No two runs sleep equally long.
    mark = f"600.{uuid.uuid4().int % 10**12:012}"
    line = f"setsid sleep {mark} & sleep {mark}"
    running = asyncio.create_task(run(SandboxedCommand(CallAuthority.from_meta(meta), ["sh", "-c", line]), timeout=5))
    deadline = time.monotonic() + PATIENCE
    while (seen := alive(mark)) < 2 and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    done = await running
    assert seen == 2 and done.timed_out, f"it did not run: {seen}, {done}"
    while alive(mark) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    print(alive(mark))


asyncio.run(main())
