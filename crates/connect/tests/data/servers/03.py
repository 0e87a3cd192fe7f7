from common import *

MODE = os.environ.get("F_MODE", "string")
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    s = str(i)
    if method == "initialize":
        ok(s, init_result(m))
    elif method == "tools/list":
        ok(s, {"tools": [tool("hi"), tool("refuse")]})
    elif method == "tools/call" and m["params"]["name"] == "refuse":
        fail(None if MODE == "null" else s, -32000, "refused by policy R-1")
    elif method == "tools/call":
        ok(s, text("hi"))
    else:
        fail(s, -32601, "method not found")
