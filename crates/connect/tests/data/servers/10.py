from common_http import *

class H(Base):
    def do_POST(self):
        m = json.loads(self.body())
        i, method = m.get("id"), m.get("method")
        log("post", method=method)
        if i is None:
            return self.reply(202)
        if method == "initialize":
            self.open_sse()
            j = json.dumps({"jsonrpc": "2.0", "id": i, "result": init_result(m)})
            return self.put("event: message\r\ndata: " + j + "\r\n\r\n")          # CRLF, as the common Python stack sends
        if method == "tools/list":
            return self.rpc(i, {"tools": [tool(n) for n in ("crlf_split", "multiline", "comments", "cr_only", "bytes", "notes_first", "no_final_blank", "other_event")]})
        if method != "tools/call":
            return self.rpc_error(i, -32601, "method not found")
        n = m["params"]["name"]
        msg = {"jsonrpc": "2.0", "id": i, "result": text("ok \u2713 " + n)}
        j = json.dumps(msg, ensure_ascii=False)
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
        self.open_sse()
        if n == "crlf_split":                   # CR and LF arrive in different packets, between two data lines
            a, b = json.dumps(msg, indent=1).split("\n", 1)
            for part in ("data: " + a + "\r", "\ndata: " + b.replace("\n", "\r\ndata: ") + "\r", "\n\r", "\n"):
                self.put(part)
                time.sleep(0.05)
        elif n == "multiline":
            self.put("".join("data: %s\n" % l for l in json.dumps(msg, indent=2).split("\n")) + "\n")
        elif n == "comments":
            self.put(": ping\n\n:\n\nretry: 10\n\nid: 1\ndata:\n\nunknown: field\ndata:" + j + "\n\n")
        elif n == "cr_only":
            self.put("data: " + j + "\r\r")
        elif n == "bytes":
            for k in ("data: " + j + "\n\n").encode():
                self.put(bytes([k]))
        elif n == "notes_first":
            self.put("data: " + note + "\n\ndata: " + json.dumps({"jsonrpc": "2.0", "id": "srv-1", "method": "ping"}) + "\n\ndata: " + j + "\n\n")
        elif n == "no_final_blank":             # stream ends without the closing blank line: the event is NOT complete
            self.put("data: " + j + "\n")
        else:
            self.put("event: heartbeat\ndata: not json at all\n\nevent: message\ndata: " + j + "\n\n")
    def do_GET(self):
        self.reply(405, b"", Allow="POST")
srv, base = listen(H)
forever(mcp=base + "/mcp")
