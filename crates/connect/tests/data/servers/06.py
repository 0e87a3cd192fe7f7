from common import *

import signal
signal.signal(signal.SIGTERM, lambda *a: log("sigterm_ignored"))
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    if method == "initialize":
        ok(i, init_result(m))
    elif method == "tools/list":
        ok(i, {"tools": [tool("hi"), tool("crash"), tool("segv")]})
    elif method == "tools/call" and m["params"]["name"] == "crash":
        sys.stderr.write("Traceback: KeyError 'API_KEY'\n")
        sys.stderr.flush()
        os._exit(42)
    elif method == "tools/call" and m["params"]["name"] == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif method == "tools/call":
        ok(i, text("hi"))
    else:
        fail(i, -32601, "method not found")
while True:
    time.sleep(0.2)
