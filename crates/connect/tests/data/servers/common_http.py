"""What the fake HTTP servers share. F_LOG=FILE: JSON lines of what the client was seen to do. Prints one line
`READY {name: url}` and ends when its stdin does."""
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from common import *


class Base(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def log_message(self, *a):
        pass
    def body(self):
        if "chunked" in (self.headers.get("Transfer-Encoding") or "").lower():
            out = b""
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                out += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    return out
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))
    def reply(self, code, data=b"", ctype=None, **headers):
        if isinstance(data, (dict, list)):
            data, ctype = json.dumps(data).encode(), ctype or "application/json"
        elif isinstance(data, str):
            data = data.encode()
        self.send_response(code)
        if ctype:
            self.send_header("Content-Type", ctype)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        if code != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if data and code != 204 and self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()
    def rpc(self, i, result, **headers):
        self.reply(200, {"jsonrpc": "2.0", "id": i, "result": result}, **headers)
    def rpc_error(self, i, code, message, status=200, **headers):
        self.reply(status, {"jsonrpc": "2.0", "id": i, "error": {"code": code, "message": message}}, **headers)
    def open_sse(self, **headers):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
    def put(self, data):
        self.wfile.write(data.encode() if isinstance(data, str) else data)
        self.wfile.flush()

def listen(handler):
    srv = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    srv.daemon_threads = True
    threading.Thread(target=srv.serve_forever, daemon=True).start()
    return srv, "http://127.0.0.1:%d" % srv.server_address[1]


def forever(**urls):
    print("READY " + json.dumps(urls), flush=True)
    sys.stdin.read()
    os._exit(0)
