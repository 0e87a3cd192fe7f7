"""A server that needs what its arguments say, before it answers: `read PATH`, `cat PATH` (by a child), `make PATH`,
`connect HOST:PORT`, `link OLD:NEW`, `stay PATH` (puts its process id there and answers nobody). A `?` before the word: it goes on
without. One argument alone is such words in hexadecimal."""
import json
import os
import socket
import subprocess
import sys
import time


def need(what, of):
    if what == "read":
        open(of).read()
    elif what == "cat":
        subprocess.run(["sh", "-c", 'cat "$1"', "sh", of], check=True, stdout=subprocess.DEVNULL)
    elif what == "make":
        open(of, "w").close()
    elif what == "connect":
        host, port = of.rsplit(":", 1)
        socket.create_connection((host, int(port))).close()
    elif what == "link":
        os.link(*of.split(":"))
        os.unlink(of.split(":")[1])
    elif what == "stay":
        with open(of + ".part", "w") as mark:
            mark.write(str(os.getpid()))
        os.rename(of + ".part", of)
        while True:
            time.sleep(60)


words = sys.argv[1:]
if len(words) == 1:
    words = bytes.fromhex(words[0]).decode().split(" ", 1)
for what, of in zip(words[::2], words[1::2]):
    try:
        need(what.lstrip("?"), of)
    except OSError:
        if not what.startswith("?"):
            raise

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if message["method"] == "initialize":
        info = {"name": "needy", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    elif message["method"] == "tools/list":
        answer = {"result": {"tools": [{"name": "nothing", "inputSchema": {"type": "object"}}]}}
    elif message["method"] == "tools/call":
        answer = {"result": {"content": [{"type": "text", "text": "done"}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
