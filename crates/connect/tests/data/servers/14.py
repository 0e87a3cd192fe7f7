from common_http import *

class H(Base):
    def do_POST(self):
        m = json.loads(self.body())
        i, method = m.get("id"), m.get("method")
        a = self.headers.get("Authorization") or "(none)"
        log("post", method=method, auth=a, x={k: v for k, v in self.headers.items() if k.lower().startswith("x-")}, path=self.path)
        if self.path.startswith("/deny"):
            return self.reply(401, {"error": "bad token: " + a}, X_Debug="got " + a)
        if i is None:
            return self.reply(202)
        if method == "initialize":
            return self.rpc(i, init_result(m))
        if method == "tools/list":
            return self.rpc(i, {"tools": [tool("headers"), tool("leak")]})
        if method == "tools/call" and m["params"]["name"] == "headers":
            return self.rpc(i, text(json.dumps({"authorization": a, **{k.lower(): v for k, v in self.headers.items() if k.lower().startswith("x-")}}, sort_keys=True)))
        if method == "tools/call":
            return self.rpc_error(i, -32000, "upstream said: invalid credential " + a)
        self.rpc_error(i, -32601, "method not found")
    def do_GET(self):
        self.reply(405, b"", Allow="POST")
srv, base = listen(H)
forever(mcp=base + "/mcp", deny=base + "/deny/mcp")
