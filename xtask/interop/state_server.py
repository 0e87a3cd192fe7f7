"""Says in its result which policy came with the call: a server for one question."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if message["method"] == "initialize":
        capabilities = {"tools": {}, "experimental": {"codex/sandbox-state": {}}}
        info = {"name": "state", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}}
    elif message["method"] == "tools/list":
        hints = {"readOnlyHint": True}
        answer = {"result": {"tools": [{"name": "state", "inputSchema": {"type": "object"}, "annotations": hints}]}}
    elif message["method"] == "tools/call":
        state = message["params"].get("_meta", {}).get("codex/sandbox-state")
        answer = {"result": {"content": [{"type": "text", "text": json.dumps(state)}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
