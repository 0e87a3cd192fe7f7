"""A policy that is switched from full access to read-only: which one comes with the next call?

The reference is driven over its `app-server`: a thread with full access, then a turn that is read-only, in which the
model calls a tool. Its model is told of the new policy; the server often gets the old one. Plenipo's default profile
is switched in its configuration between two calls.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT = 60
#: How often the policy is switched.
TRIES = 10
SERVER = HERE.parents[1] / "crates/cli/tests/data/reference/meta_server.py"
ENTRY = {"command": sys.executable, "args": [str(SERVER)]}


class AppServer:
    """JSON-RPC with the reference, one question after the other."""

    def __init__(self, program: Path, home: Path, environment: dict, cwd: Path) -> None:
        argv = [str(program), "app-server", "--disable", "plugins", "--disable", "apps"]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=cwd, text=True,
            env={**environment, "CODEX_HOME": str(home)},
        )
        self._said: queue.Queue = queue.Queue()
        self._count = 0
        threading.Thread(target=self._read, daemon=True).start()
        info = {"name": "plenipo-interop", "title": "interop", "version": "1"}
        self.ask("initialize", {"clientInfo": info, "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._said.put(json.loads(line))

    def _send(self, message: dict) -> None:
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def until(self, wanted) -> dict:
        """The first message that is wanted."""
        while True:
            message = self._said.get(timeout=TIMEOUT)
            if wanted(message):
                return message

    def ask(self, method: str, params: dict) -> dict:
        self._count += 1
        number = self._count
        self._send({"id": number, "method": method, "params": params})
        answer = self.until(lambda message: message.get("id") == number and "method" not in message)
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer}")
        return answer["result"]


def kind(result: dict) -> str:
    """`disabled` with full access, else `managed`."""
    state = json.loads(result["content"][0]["text"])
    return "none" if state is None else state["permissionProfile"]["type"]


def by_reference(reference, program: Path, environment: dict, workspace: Path) -> list:
    """What came with the call in each read-only turn."""
    home = reference.prepare({"state": ENTRY})
    found = []
    with AppServer(program, home, environment, workspace) as server:
        for _ in range(TRIES):
            start = {"sandbox": "danger-full-access", "approvalPolicy": "never", "cwd": str(workspace)}
            thread = server.ask("thread/start", start)["thread"]["id"]
            call = {"threadId": thread, "server": "state", "tool": "state", "arguments": {}}
            before = kind(server.ask("mcpServer/tool/call", call))
            if before != "disabled":
                raise RuntimeError(f"a thread with full access sent the policy `{before}`")
            reference.expect("state", "state", {})
            words = [{"type": "text", "text": "go"}]
            turn = {"threadId": thread, "input": words, "sandboxPolicy": {"type": "readOnly"}}
            server.ask("turn/start", turn)

            def called(message: dict) -> bool:
                params = message.get("params", {})
                item = params.get("item", {})
                ours = params.get("threadId") == thread and item.get("type") == "mcpToolCall"
                return ours and message["method"] == "item/completed"

            found.append(kind(server.until(called)["params"]["item"]["result"]))
            server.until(lambda message: message.get("method") == "turn/completed")
    return found


def by_plenipo(reference, program: Path, start, config: Path) -> list:
    """The same by our command line."""
    found = []
    for number in range(2 * TRIES):
        profile = (":danger-full-access", ":read-only")[number % 2]
        servers = reference.servers({"state": ENTRY})
        config.write_text(f"default_permissions = {json.dumps(profile)}\n{servers}")
        said = start([str(program), "--config", str(config), "call", "state.state"])
        sent = kind({"content": [{"text": said}]})
        if profile == ":read-only":
            found.append(sent)
        elif sent != "disabled":
            raise RuntimeError(f"full access was sent as `{sent}`")
    return found
