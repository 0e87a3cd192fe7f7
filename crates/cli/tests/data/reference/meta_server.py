"""An MCP server with one tool that opts in to sandbox states and writes each `tools/call` line as it came.

Argument: the file to append to.
"""

import json
import sys

CAPABILITIES = {"tools": {}, "experimental": {"codex/sandbox-state": {}}}
TOOL = {"name": "note", "description": "notes", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def answer(method, parameters, line):
    if method == "initialize":
        version = parameters.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": {"name": "meta", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        with open(sys.argv[1], "ab") as log:
            log.write(line)
        return {"content": [{"type": "text", "text": "noted"}]}
    return None


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params") or {}, line)
    outcome = {"result": result} if result else {"error": {"code": -32601, "message": "method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
