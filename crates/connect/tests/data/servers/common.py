"""What the fake servers share. F_LOG=FILE: JSON lines of what the client was seen to do. F_SLOW: seconds
before it starts."""
import json
import os
import sys
import threading
import time

LOG = os.environ.get("F_LOG")
SUPPORTED = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_lock = threading.Lock()

def log(ev, **kw):
    if LOG:
        with open(LOG, "a") as f:
            f.write(json.dumps({"t": round(time.time(), 3), "pid": os.getpid(), "ev": ev, **kw}) + "\n")

def raw(data):
    with _lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

def send(obj):
    raw(json.dumps(obj).encode() + b"\n")

def ok(i, result):
    send({"jsonrpc": "2.0", "id": i, "result": result})

def fail(i, code, message):
    send({"jsonrpc": "2.0", "id": i, "error": {"code": code, "message": message}})

def note(method, params=None):
    send({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})})

def tool(name, desc="", props=None, required=()):
    return {"name": name, "description": desc,
            "inputSchema": {"type": "object", "properties": props or {}, "required": list(required)}}

def text(s, **kw):
    return {"content": [{"type": "text", "text": s}], **kw}

def init_result(req, caps=None):
    want = (req.get("params") or {}).get("protocolVersion")
    return {"protocolVersion": want if want in SUPPORTED else SUPPORTED[-1],
            "capabilities": caps if caps is not None else {"tools": {"listChanged": True}},
            "serverInfo": {"name": "fake", "version": "0"}}

def messages():
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            m = json.loads(line)
        except ValueError:
            log("bad_input", line=line[:200].decode("utf-8", "replace"))
            continue
        log("in", method=m.get("method"), id=m.get("id"), params=m.get("params"),
            result=m.get("result"), error=m.get("error"))
        yield m
    log("stdin_eof")


time.sleep(float(os.environ.get("F_SLOW", "0")))
