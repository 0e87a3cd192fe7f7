"""A stdio MCP server with tools that show what they were given, and results of every kind."""
import base64
import json
import sys

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "nested": {"type": "object"},
        "maybe": {"type": ["integer", "null"]},
        "choice": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "free": {},
    },
    "required": ["text"],
}
CLOSED = dict(SCHEMA, additionalProperties=False)
PNG = base64.b64encode(b"\x89PNG fake").decode()


def answer(request, **outcome):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}) + "\n")
    sys.stdout.flush()


def result_of(name, params):
    if name in ("show", "closed"):
        return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}
    if name == "picture":
        return {"content": [{"type": "text", "text": "a picture"}, {"type": "image", "data": PNG, "mimeType": "image/png"}]}
    if name == "structured":
        return {"content": [], "structuredContent": {"n": 12345678901234567890123, "z": 1.10}}
    if name == "fails":
        return {"content": [{"type": "text", "text": "it did not work"}], "isError": True}
    if name == "meta":
        return {"content": [{"type": "text", "text": json.dumps(params.get("_meta"))}]}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        answer(request, result={"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "show", "version": "1"}})
    elif method == "tools/list":
        tools = [{"name": "show", "inputSchema": SCHEMA}, {"name": "closed", "inputSchema": CLOSED}]
        tools += [{"name": name, "inputSchema": {"type": "object"}} for name in ("picture", "structured", "fails", "refuses", "meta", "hangs")]
        answer(request, result={"tools": tools})
    elif method == "tools/call" and params["name"] == "refuses":
        answer(request, error={"code": -32602, "message": "bad params"})
    elif method == "tools/call" and params["name"] == "hangs":
        continue
    elif method == "tools/call":
        answer(request, result=result_of(params["name"], params))
    else:
        answer(request, error={"code": -32601, "message": "method not found"})
