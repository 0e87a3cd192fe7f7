"""One server with many manners. F_ERA=modern answers server/discover and nothing legacy; F_CAPS: capabilities as JSON;
F_LIST: how tools/list behaves; F_TTL: how long, in ms; F_LISTEN: how subscriptions/listen behaves; F_LOGS=yes: takes
a log level; F_CAPS_LATER:
capabilities from the second start on."""
import random
import signal
import subprocess

from common import *

ERA = os.environ.get("F_ERA", "legacy")
LIST = os.environ.get("F_LIST", "plain")
CAPS = json.loads(os.environ.get("F_CAPS", '{"tools": {"listChanged": true}}'))
if os.environ.get("F_CAPS_LATER") and LOG and os.path.exists(LOG):
    CAPS = json.loads(os.environ["F_CAPS_LATER"])
MODERN = "2026-07-28"
held, extra, lists = [], [], [0]
listens, LISTEN = {}, os.environ.get("F_LISTEN", "plain")
TTL = os.environ.get("F_TTL")

if os.environ.get("F_GRANDCHILD"):
    child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    log("grandchild", child=child.pid)
if os.environ.get("F_STUBBORN"):
    signal.signal(signal.SIGTERM, lambda *a: log("sigterm_ignored"))


SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def names(*all):
    return {"tools": [tool(n) for n in all], **({"ttlMs": int(TTL), "cacheScope": "private"} if TTL else {})}


def listen(i, wanted):
    if LISTEN == "refuse":
        return fail(i, -32601, "method not found")
    granted = {"toolsListChanged": True} if LISTEN == "subset" else wanted
    listens[i] = granted
    if LISTEN != "silent":
        note("notifications/subscriptions/acknowledged", {"_meta": {SUBSCRIPTION: i}, "notifications": granted})


def page(params):
    lists[0] += 1
    cursor = (params or {}).get("cursor")
    n = 0 if cursor is None else int(cursor or 0) + 1
    if LIST == "three":
        return {**names("t%d" % n), **({"nextCursor": "" if n == 0 else str(n)} if n < 2 else {})}
    if LIST == "repeat":
        return {**names("a%d" % lists[0]), "nextCursor": "7"}
    if LIST == "endless":
        return {**names("a%d" % n), "nextCursor": str(n)}
    if LIST == "flood":
        return names(*["t%d" % k for k in range(2049)])
    if LIST == "long":
        return {**names("a"), "nextCursor": "x" * 70000}
    if LIST == "odd":
        return {"tools": [tool("ok"), tool("bl ank/ünï.çode:x"), tool(""), {"name": "null_schema", "inputSchema": None},
                          {"name": "no_schema"}, 7, tool("ok"), {**tool("extra"), "x-vendor": {"n": 1}}], "ttlMs": 1.0}
    if LIST == "nonsense":
        return {"tools": "many"}
    if LIST == "twice":
        if lists[0] == 1:
            note("notifications/tools/list_changed")
        return names("line", "n%d" % lists[0])
    if LIST == "mute":
        return None
    return names("line", "hold", "silent", "steps", "forever", "stuck", "grow", "rpc_error", "tool_error", "typed",
                 "fields", "double", "env", "cwd", "stderr", "die", "huge", "doze", "notices", "nothing",
                 "announce", "complete", "withdraw", *extra)


def call(i, name, args, line):
    token = (args or {}).get("token")
    if name == "line":
        ok(i, text(line))
    elif name == "hold":
        held.append((i, token))
        if len(held) == args["of"]:
            random.shuffle(held)
            for h, t in held:
                ok(h, text(t))
            held.clear()
    elif name == "silent":
        held.append(i)
    elif name in ("steps", "forever", "stuck"):
        threading.Thread(target=progress, args=(i, name, args, json.loads(line)), daemon=True).start()
    elif name == "grow":
        extra.append("grown")
        note("notifications/tools/list_changed")
        ok(i, text("grown"))
    elif name == "rpc_error":
        send({"jsonrpc": "2.0", "id": i, "error": {"code": args["code"], "message": "no", "data": {"why": "because"}}})
    elif name == "tool_error":
        ok(i, text("broken", isError=True))
    elif name == "typed":
        ok(i, text("half", resultType=args["type"]))
    elif name == "fields":
        raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"messages":[1.10,-0,1E2],"z":{"b":1,"a":12345678901234567890}},"x":1}\n' % i)
    elif name == "double":
        ok(i, text("first"))
        ok(i, text("second"))
        ok(99999, text("stray"))
    elif name == "env":
        ok(i, text(" ".join(sorted(os.environ))))
    elif name == "cwd":
        ok(i, text(os.getcwd()))
    elif name == "stderr":
        sys.stderr.write("error: nothing is wrong\n" * 100)
        ok(i, text("fine"))
    elif name == "die":
        os._exit(args["code"])
    elif name == "huge":
        ok(i, text("x" * args["size"]))
    elif name == "notices":
        note("notifications/message", {"level": "info"})
        note("notifications/message")
        note("notifications/progress", {"progress": "much"})
        note("notifications/progress", [1])
        note("notifications/tools/list_changed", 7)
        note("notifications/unheard/of", {"a": 1})
        raw(b'[1,2,[3]]\n{"foo":1}\n[]\n7\nnull\n{"id":{},"result":1}\n')
        raw(b'[{"jsonrpc":"2.0","id":"p","method":"ping"},')
        raw(json.dumps({"jsonrpc": "2.0", "id": i, "result": text("batched")}).encode() + b"]\n")
    elif name == "doze":
        time.sleep(args["seconds"])
        ok(i, text("awake"))
    elif name == "nothing":
        ok(i, None)
    elif name == "announce":  # to the n-th subscription, or to none
        ids = sorted(listens)
        about = {} if args.get("to") is None else {"_meta": {SUBSCRIPTION: ids[args["to"]]}}
        for _ in range(args.get("times", 1)):
            note("notifications/" + args["what"], {**about, **args.get("params", {})})
        extra.extend(args.get("grow", []))
        ok(i, text("announced"))
    elif name == "complete":
        for n in sorted(listens):
            ok(n, {"resultType": "complete", "_meta": {SUBSCRIPTION: n}})
        listens.clear()
        ok(i, text("completed"))
    elif name == "withdraw":
        for n in sorted(listens) + [i]:
            note("notifications/cancelled", {"requestId": n, "reason": "by the server"})
        listens.clear()
        ok(i, text("withdrawn"))


def progress(i, name, args, m):
    token = m["params"].get("_meta", {}).get("progressToken")
    log("token", token=token)
    steps = args["steps"] if name == "steps" else 10 ** 9
    for k in range(steps):
        value = 1 if name == "stuck" else k
        note("notifications/progress", {"progressToken": token, "progress": value, "total": steps, "message": "step %d" % k})
        time.sleep(args["every"])
    ok(i, text("done"))
    note("notifications/progress", {"progressToken": token, "progress": 10 ** 10})


for line in sys.stdin:
    m = json.loads(line)
    log("in" if "method" in m else "answer", method=m.get("method"), id=m.get("id"), params=m.get("params"),
        result=m.get("result"))
    method, i, params = m.get("method"), m.get("id"), m.get("params")
    if method is None:
        continue
    if method == "server/discover" and os.environ.get("F_ASKS"):
        send({"jsonrpc": "2.0", "id": "before", "method": "ping"})
    if method == "notifications/cancelled" and params["requestId"] in held:
        held.remove(params["requestId"])
        ok(params["requestId"], text("too late"))
    if method == "notifications/cancelled":
        listens.pop(params["requestId"], None)
    if i is None:
        continue
    if method == "server/discover" and ERA == "modern":
        ok(i, {"supportedVersions": [MODERN], "capabilities": CAPS, "resultType": "complete",
               "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "1"}}})
        if os.environ.get("F_ASKS"):
            send({"jsonrpc": "2.0", "id": "after", "method": "ping"})
    elif method == "server/discover" and ERA == "code":
        send({"jsonrpc": "2.0", "id": i, "error": json.loads(os.environ["F_ERROR"])})
    elif method == "server/discover" and ERA == "killer":
        sys.exit(9)
    elif method == "initialize" and ERA != "modern":
        version = os.environ.get("F_VERSION")
        if version and version.startswith("only ") and params["protocolVersion"] != version[5:]:
            send({"jsonrpc": "2.0", "id": i, "error": {"code": -32602, "message": "Unsupported protocol version",
                                                       "data": {"supported": [version[5:]]}}})
        elif version and not version.startswith("only "):
            ok(i, {**init_result(m, CAPS), "protocolVersion": version})
        else:
            ok(i, init_result(m, CAPS))
    elif method == "subscriptions/listen" and ERA == "modern":
        listen(i, params["notifications"])
    elif method in ("resources/subscribe", "resources/unsubscribe") and ERA != "modern":
        if params["uri"].startswith("file:///no"):
            fail(i, -32002, "no such resource")
        else:
            ok(i, {})
    elif method == "logging/setLevel" and os.environ.get("F_LOGS") == "yes":
        ok(i, {})
    elif method == "tools/list":
        result = page(params)
        if result is not None:
            ok(i, result)
    elif method == "tools/call":
        call(i, params["name"], params.get("arguments"), line)
    else:
        fail(i, -32601, "method not found")
log("stdin_eof")
while os.environ.get("F_STUBBORN"):
    time.sleep(0.05)
