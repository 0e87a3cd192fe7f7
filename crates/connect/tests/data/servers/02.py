from common import *

def dribble(obj, n=1):
    data = json.dumps(obj, ensure_ascii=False).encode() + b"\n"
    if len(data) > 100000:
        n = 4093
    for k in range(0, len(data), n):
        raw(data[k:k + n])
S = "\u8bfb\u53d6 \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 na\u00efve \u2028 end"
for m in messages():
    method, i = m.get("method"), m.get("id")
    if i is None or method is None:
        continue
    if method == "initialize":
        r = init_result(m)
    elif method == "tools/list":
        r = {"tools": [tool("read", S), tool("big"), tool("badbytes")]}
    elif method == "tools/call" and m["params"]["name"] == "big":
        r = text(S * 100000)
    elif method == "tools/call" and m["params"]["name"] == "badbytes":
        raw(b"\xff\xfe not utf-8 \xc3\n")
        r = text("after bad bytes")
    elif method == "tools/call":
        r = text(S)
    else:
        fail(i, -32601, "method not found")
        continue
    dribble({"jsonrpc": "2.0", "id": i, "result": r})
