"""A server that says where it is and what it was given. `where` answers, `stay` does not; it survives a closed input
and SIGTERM, so that only somebody else ends it."""
import json
import os
import signal
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)


def say(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)


def where(meta):
    return {
        "argv": sys.argv[1:],
        "cwd": os.getcwd(),
        "env": dict(os.environ),
        "meta": meta,
        "pid": os.getpid(),
        "net": os.readlink("/proc/self/ns/net"),
        "root": sorted(os.listdir("/")),
    }


for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        capabilities = {"tools": {}, "experimental": {"codex/sandbox-state": {}}}
        info = {"name": "where", "version": "1"}
        say(message["id"], {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info})
    elif method == "tools/list":
        schema = {"type": "object"}
        say(message["id"], {"tools": [{"name": name, "inputSchema": schema} for name in ("where", "stay")]})
    elif method == "tools/call" and params["name"] == "where":
        text = json.dumps(where(params.get("_meta")))
        say(message["id"], {"content": [{"type": "text", "text": text}]})
    elif method == "tools/call":
        with open(params["arguments"]["mark"], "w") as mark:
            mark.write(str(os.getpid()) + "\n")
    elif "id" in message:
        error = {"code": -32601, "message": "no such method"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
if "stay" not in sys.argv:
    sys.exit()
while True:
    time.sleep(60)
