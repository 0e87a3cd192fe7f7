"""Lets the reference runtime call a tool once, without an account, a model or a network.

Arguments: its program, the sandbox mode, the server's words (program and arguments). HOME and the current directory are
the run's own. Gives up after 60 seconds.
"""

import json
import os
import signal
import subprocess
import sys

PROGRAM, MODE, *SERVER = sys.argv[1:]
# Nobody listens on the discard port of the loopback.
CONFIGURATION = f"""
sandbox_mode = {json.dumps(MODE)}
model = "none"
model_provider = "none"
[model_providers.none]
name = "none"
base_url = "http://127.0.0.1:9/v1"
[mcp_servers.meta]
command = {json.dumps(SERVER[0])}
args = {json.dumps(SERVER[1:])}
"""


class Runtime:
    def __init__(self):
        words = [PROGRAM, "app-server", "--disable", "plugins", "--disable", "apps"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, parameters):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": parameters})
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": {"action": "accept", "content": {}}})
            elif message.get("id") == self.last:
                if "result" not in message:
                    sys.exit(f"{method}: {message}")
                return message["result"]
        sys.exit(f"{method}: the runtime closed its output")


def main():
    home = os.path.join(os.environ["HOME"], ".codex")
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, "config.toml"), "w") as file:
        file.write(CONFIGURATION)
    runtime = Runtime()
    signal.signal(signal.SIGALRM, lambda *_: (runtime.process.kill(), sys.exit("no answer in 60 seconds")))
    signal.alarm(60)
    try:
        client = {"name": "plenipo-test", "title": "test", "version": "1"}
        runtime.call("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        runtime.send({"method": "initialized"})
        thread = runtime.call("thread/start", {"cwd": os.getcwd()})["thread"]["id"]
        call = {"threadId": thread, "server": "meta", "tool": "state", "arguments": {}}
        runtime.call("mcpServer/tool/call", call)
    finally:
        runtime.process.stdin.close()
        runtime.process.wait()


main()
