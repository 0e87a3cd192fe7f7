"""The reference runtime as a host: one turn of its command line, with a script on loopback where its model would be.
No account and no network are needed."""

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TIMEOUT = 120


class Model:
    """Answers the model API: first with a call of a tool, then with the end of the turn."""

    def __init__(self) -> None:
        self._answers: list = []
        self.requests: list = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_response(404)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                stream = model.answer(body)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(stream)))
                self.end_headers()
                self.wfile.write(stream)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def expect(self, server: str, tool: str, arguments: dict) -> None:
        call = {
            "type": "function_call",
            "id": "item_1",
            "call_id": "call_1",
            "namespace": f"mcp__{server}",
            "name": tool,
            "arguments": json.dumps(arguments),
        }
        text = [{"type": "output_text", "text": "done"}]
        self._answers = [call, {"type": "message", "id": "item_2", "role": "assistant", "content": text}]
        self.requests = []

    def answer(self, body: bytes) -> bytes:
        self.requests.append(body.decode(errors="replace"))
        item = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {"input_tokens_details": None, "output_tokens_details": None}
        events = [
            {"type": "response.created", "response": {"id": "response"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "response", "usage": usage}},
        ]
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


class Reference:
    def __init__(self, program: Path, scratch: Path, place) -> None:
        self._program = program
        self._home = scratch / "reference-home"
        self._home.mkdir()
        self._place = place
        self._model = Model()

    @staticmethod
    def servers(servers: dict) -> str:
        text = ""
        for name, entry in servers.items():
            text += f"\n[mcp_servers.{json.dumps(name)}]\n"
            for key, value in entry.items():
                if isinstance(value, dict):
                    value = "{ " + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()) + " }"
                    text += f"{key} = {value}\n"
                else:
                    text += f"{key} = {json.dumps(value)}\n"
            text += 'default_tools_approval_mode = "approve"\nstartup_timeout_sec = 60\n'
        return text

    def config(self, servers: dict) -> str:
        """A whole configuration file of the reference."""
        return (
            'model = "script"\nmodel_provider = "script"\napproval_policy = "never"\n'
            f'[model_providers.script]\nname = "script"\nbase_url = "http://127.0.0.1:{self._model.port}/v1"\n'
            'wire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n' + self.servers(servers)
        )

    def prepare(self, servers: dict) -> Path:
        """Its home, with a configuration for these servers."""
        (self._home / "config.toml").write_text(self.config(servers))
        return self._home

    def expect(self, server: str, tool: str, arguments: dict) -> None:
        """What its model does in the next turn."""
        self._model.expect(server, tool, arguments)

    def environment(self) -> dict:
        environment = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        return {**environment, "HOME": str(self._place.home), "TMPDIR": str(self._place.temporary)}

    def turn(self, name: str, entry: dict, mode: str, arguments: dict) -> str:
        """What came of a turn in which the model calls tool `run` of the server."""
        self.prepare({name: {**entry, "required": True}})
        self.expect(name, "run", arguments)
        environment = {**self.environment(), "CODEX_HOME": str(self._home)}
        argv = [str(self._program), "exec", "--json", "--skip-git-repo-check"]
        argv += ["--disable", "plugins", "--disable", "apps", "-s", mode, "go"]
        done = subprocess.run(
            argv, cwd=self._place.workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT,
        )
        return done.stdout + done.stderr
