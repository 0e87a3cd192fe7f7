"""stdio. Says the credential that its environment holds wherever a server can say something."""
from common import *

SECRET = os.environ["NOTES_TOKEN"]

def cry(words):
    sys.stderr.write(words + "\n")
    sys.stderr.flush()

cry(f"starting with {SECRET}")
raw(f"a token is {SECRET}{'.' * 160}{SECRET}\n".encode())
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    if method == "initialize":
        ok(i, init_result(m))
    elif method == "tools/list":
        ok(i, {"tools": [tool("refuse"), tool("crash"), tool("answer")]})
    elif method == "tools/call" and m["params"]["name"] == "refuse":
        fail(i, -32000, f"bad credential {SECRET} for production")
    elif method == "tools/call" and m["params"]["name"] == "crash":
        cry(f"fatal: {SECRET} is expired")
        os._exit(3)
    elif method == "tools/call":
        ok(i, text(f"it is {SECRET}"))
    else:
        fail(i, -32601, "method not found")
