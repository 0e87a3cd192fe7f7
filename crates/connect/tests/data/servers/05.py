from common import *

answers, pending = {}, {}
def ask(i):
    for n, (meth, params) in enumerate([("ping", None), ("roots/list", None), ("sampling/createMessage", {"messages": [], "maxTokens": 1}), ("vendor/strange", {})]):
        q = "q%d" % n
        pending[q] = meth
        send({"jsonrpc": "2.0", "id": q, "method": meth, **({"params": params} if params is not None else {})})
    end = time.time() + 10
    while len(answers) < 4 and time.time() < end:
        time.sleep(0.02)
    ok(i, text(json.dumps(answers, sort_keys=True)))
for m in messages():
    method, i = m.get("method"), m.get("id")
    if method is None:
        answers[pending.get(i, str(i))] = "result" if "result" in m else (m.get("error") or {}).get("code")
    elif method == "initialize":
        log("client_caps", caps=m["params"].get("capabilities"))
        ok(i, init_result(m))
    elif method == "tools/list":
        ok(i, {"tools": [tool("ask")]})
    elif method == "tools/call":
        answers.clear()
        threading.Thread(target=ask, args=(i,), daemon=True).start()
    elif i is not None:
        fail(i, -32601, "method not found")
