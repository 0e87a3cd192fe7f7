from common import *

MODE, first = os.environ.get("F_MODE", "die"), True
log("start")
for m in messages():
    method, i = m.get("method"), m.get("id")
    if method is None:
        continue
    if first and method != "initialize":
        if MODE == "die":
            sys.stderr.write("expected initialize, got %s\n" % method)
            os._exit(1)
        if MODE == "params" and i is not None:
            fail(i, -32602, "initialize first")
        continue
    first = False
    if i is None:
        continue
    if method == "initialize":
        ok(i, init_result(m))
    elif method == "tools/list":
        ok(i, {"tools": [tool("hi")]})
    elif method == "tools/call":
        ok(i, text("hi"))
    elif MODE != "mute":
        fail(i, -32601, "method not found")
