"""An MCP server with one tool that opts in to sandbox states and says in its result which one came with the call.

Argument, if there is one: a file to which it appends each `tools/call` line as it came.
"""

import json
import sys

CAPABILITIES = {"tools": {}, "experimental": {"codex/sandbox-state": {}}}
TOOL = {"name": "state", "description": "the state", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def answer(method, parameters, line):
    if method == "initialize":
        version = parameters.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": {"name": "meta", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        for name in sys.argv[1:]:
            with open(name, "ab") as log:
                log.write(line)
        state = parameters.get("_meta", {}).get("codex/sandbox-state")
        return {"content": [{"type": "text", "text": json.dumps(state)}]}
    return None


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message["method"], message.get("params") or {}, line)
    outcome = {"result": result} if result else {"error": {"code": -32601, "message": "method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)
