"""A stdio MCP server whose one tool takes three seconds and says so all the while, if it is asked to."""
import json
import sys
import time


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        send(id=request["id"], result={"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "trickle", "version": "1"}})
    elif method == "tools/list":
        send(id=request["id"], result={"tools": [{"name": "slow", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        token = (params.get("_meta") or {}).get("progressToken")
        for step in range(1, 13):
            time.sleep(0.25)
            if token is not None:
                send(method="notifications/progress", params={"progressToken": token, "progress": step})
        send(id=request["id"], result={"content": [{"type": "text", "text": "done"}]})
    else:
        send(id=request["id"], error={"code": -32601, "message": "method not found"})
