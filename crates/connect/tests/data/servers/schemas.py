"""Tools whose schemas F_TOOLS gives as JSON: {name: {"inputSchema": …, "outputSchema": …, "result": …}}."""
from common import *

TOOLS = json.loads(os.environ["F_TOOLS"])
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    if method == "initialize":
        ok(i, init_result(m))
    elif method == "tools/list":
        ok(i, {"tools": [{"name": n, **{k: v for k, v in t.items() if k != "result"}} for n, t in TOOLS.items()]})
    elif method == "tools/call":
        ok(i, TOOLS[m["params"]["name"]].get("result", text("called")))
    else:
        fail(i, -32601, "method not found")
