"""Legacy. Its tool `ask` sends a request of its own and returns what it is answered; `urls` fails until a URL was
opened, `drop` takes its question back."""
from common import *

ARGUMENTS = {"method": {"type": "string"}, "params": {"type": "object"}}
waiting = {}
done = threading.Event()
numbers = iter(range(1000))

def question(method, params):
    q = "q%d" % next(numbers)
    waiting[q] = (threading.Event(), [])
    send({"jsonrpc": "2.0", "id": q, "method": method, **({"params": params} if params is not None else {})})
    return q

def ask(i, arguments):
    event, answer = waiting[question(arguments["method"], arguments.get("params"))]
    event.wait()
    ok(i, text(json.dumps(answer[0], sort_keys=True)))

def urls(i):
    if done.is_set():
        return ok(i, text("opened"))
    url = {"mode": "url", "elicitationId": "e1", "url": "https://example.com/e1", "message": "Connect"}
    send({"jsonrpc": "2.0", "id": i, "error": {"code": -32042, "message": "needed", "data": {"elicitations": [url]}}})

def drop(i):
    q = question("elicitation/create", {"message": "m", "requestedSchema": {"type": "object", "properties": {}}})
    waiting[question("ping", None)][0].wait()
    note("notifications/cancelled", {"requestId": q, "reason": "no longer"})
    waiting[question("ping", None)][0].wait()
    ok(i, text("answered" if waiting[q][1] else "unanswered"))

for m in messages():
    method, i = m.get("method"), m.get("id")
    arguments = (m.get("params") or {}).get("arguments") or {}
    name = (m.get("params") or {}).get("name")
    if method is None:
        event, answer = waiting[i]
        answer.append({k: m[k] for k in ("result", "error") if k in m})
        event.set()
    elif method == "initialize":
        log("client_caps", caps=m["params"].get("capabilities"))
        ok(i, init_result(m))
    elif method == "tools/list":
        ok(i, {"tools": [tool("ask", props=ARGUMENTS), tool("urls"), tool("drop"), tool("done"), tool("needs_input")]})
    elif name == "ask":
        threading.Thread(target=ask, args=(i, arguments), daemon=True).start()
    elif name == "urls":
        urls(i)
    elif name == "done":
        done.set()
        note("notifications/elicitation/complete", {"elicitationId": "e1"})
        ok(i, text("done"))
    elif name == "drop":
        threading.Thread(target=drop, args=(i,), daemon=True).start()
    elif name == "needs_input":
        ok(i, {"resultType": "input_required", "requestState": "s"})
    elif i is not None:
        fail(i, -32601, "method not found")
