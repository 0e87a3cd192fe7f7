from common import *

raw(b"\xef\xbb\xbf")
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    def out(result):
        raw(json.dumps({"jsonrpc": "2.0", "id": i, "result": result}).encode() + b"\r\n")
    if method == "initialize":
        out(init_result(m))
        raw(b"\r\n\r\nServer 1.2.3 started successfully!\r\nSecure MCP Filesystem Server running on stdio\r\n")
    elif method == "tools/list":
        raw("\u2713 loaded 2 plugins\n".encode())
        out({"tools": [tool("echo", props={"s": {"type": "string"}})]})
    elif method == "tools/call":
        raw(b"[debug] calling tool\n")
        out(text("echo:" + str((m["params"].get("arguments") or {}).get("s"))))
        raw(b"done\n")
    else:
        fail(i, -32601, "method not found")
