from common import *

tools = ["unlock", "lock"]
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    if method == "initialize":
        ok(i, init_result(m, {"tools": {"listChanged": True}}))
    elif method == "tools/list":
        ok(i, {"tools": [tool(t) for t in tools]})
    elif method == "tools/call":
        n = m["params"]["name"]
        if n not in tools:
            fail(i, -32602, "no such tool: " + n)
            continue
        if n == "unlock" and "secret_tool" not in tools:
            tools.append("secret_tool")
        if n == "lock" and "secret_tool" in tools:
            tools.remove("secret_tool")
        note("notifications/tools/list_changed")          # before the answer, as many servers do
        ok(i, text("tools: " + ",".join(tools)))
    elif method == "ping":
        ok(i, {})
    else:
        log("UNADVERTISED", method=method)
        os._exit(9)
