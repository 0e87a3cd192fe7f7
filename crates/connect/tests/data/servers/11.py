from common_http import *

OLD = ("2025-06-18", "2025-03-26", "2024-11-05")
class H(Base):
    def do_POST(self):
        m = json.loads(self.body())
        i, method, p = m.get("id"), m.get("method"), self.path
        log("post", path=p, method=method, version_header=self.headers.get("Mcp-Protocol-Version"), asked=(m.get("params") or {}).get("protocolVersion"))
        if p == "/old/mcp" and (((m.get("params") or {}).get("protocolVersion") or OLD[0]) not in OLD or (self.headers.get("Mcp-Protocol-Version") or OLD[0]) not in OLD):
            return self.rpc_error(i, -32000, "Bad Request: Unsupported protocol version (supported versions: %s)" % ", ".join(OLD), 400)
        if i is None:
            return self.reply(202)
        if method == "initialize":
            r = init_result(m)
            if p == "/oldneg/mcp":
                r["protocolVersion"] = "2024-11-05"
            return self.rpc(i, r)
        if method == "tools/list":
            return self.rpc(i, {"tools": [tool("hi")]})
        if method == "tools/call":
            return self.rpc(i, text("hi"))
        self.rpc_error(i, -32601, "method not found")
    def do_GET(self):
        log("get", path=self.path)
        k = self.path.split("/")[1]
        if k == "ghang":
            self.open_sse()
            time.sleep(600)
            return
        self.reply({"g404": 404, "g400": 400, "g406": 406}.get(k, 405), b"Bad Request: No sessionId" if k == "g400" else b"")
srv, base = listen(H)
forever(**{k: base + "/%s/mcp" % k for k in ("g405", "g404", "g400", "g406", "ghang", "old", "oldneg")})
