"""`relaunch.py LAUNCHER PROGRAM ARGS…`: a stdio MCP server between host and server that puts LAUNCHER where the host
sent a launcher of its own. For tests of our launcher under a host that cannot be told of it; passes all else on."""

import json
import os
import signal
import subprocess
import sys
import threading

KEY = "codex/sandbox-launcher"


def frames(server: subprocess.Popen, launcher: str) -> None:
    for line in sys.stdin.buffer:
        frame = json.loads(line)
        meta = frame.get("params", {}).get("_meta", {}) if isinstance(frame, dict) else {}
        if frame.get("method") == "tools/call" and KEY in meta:
            meta[KEY] = {"codexExecutable": launcher}
            line = json.dumps(frame).encode() + b"\n"
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()


server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, start_new_session=False, env=dict(os.environ))
signal.signal(signal.SIGTERM, lambda *_: server.terminate())
threading.Thread(target=frames, args=(server, sys.argv[1]), daemon=True).start()
sys.exit(server.wait())
