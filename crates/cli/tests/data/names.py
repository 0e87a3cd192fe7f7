"""Runs a program that opens URLs in a world of its own: its own /etc, a DNS server on loopback, listeners that say which
address was reached.

Started inside new user, mount and network namespaces: `names.py PLAN`, a JSON file with `program` (words; `{url}` is put
in), `hosts`, `resolv`, `nsswitch` (null: no such file), `zone` (name: {"A": […], "AAAA": […]}), `long` (a name whose answer
needs TCP) and `names`. Prints JSON: what each name reached, and the questions that the server was asked over UDP and TCP.
"""

import ctypes
import fcntl
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import threading

PLAN = json.load(open(sys.argv[1]))
ADDRESSES = ["127.0.0.%d" % last for last in range(2, 9)] + ["::1"]
KINDS = {1: ("A", socket.AF_INET), 28: ("AAAA", socket.AF_INET6)}
libc = ctypes.CDLL(None, use_errno=True)
asked = []


def mount(source, target, kind, flags=0):
    if libc.mount(source.encode(), target.encode(), kind.encode(), flags, None) != 0:
        raise OSError(ctypes.get_errno(), "mount on " + target)


def own_etc():
    kept = {name: open("/etc/" + name, "rb").read() for name in ("passwd", "ld.so.cache")}
    mount("none", "/etc", "tmpfs")
    texts = {"hosts": PLAN["hosts"], "resolv.conf": PLAN["resolv"], "nsswitch.conf": PLAN["nsswitch"]}
    kept.update({name: text.encode() for name, text in texts.items() if text is not None})
    for name, text in kept.items():
        with open("/etc/" + name, "wb") as file:
            file.write(text)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14s", b"lo", 1, b"")  # IFF_UP
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS


def answer(question, over):
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    name = ".".join(labels).lower()
    kind = struct.unpack(">H", question[at + 1 : at + 3])[0]
    asked.append([over, name, KINDS.get(kind, (str(kind),))[0]])
    known = PLAN["zone"].get(name)
    records = []
    if known is not None and kind in KINDS:
        word, family = KINDS[kind]
        records = [socket.inet_pton(family, address) for address in known.get(word, [])]
    truncated = over == "udp" and name == PLAN["long"]
    flags = 0x8580 | (0x0200 if truncated else 0) | (3 if known is None else 0)
    if truncated:
        records = []
    head = question[:2] + struct.pack(">5H", flags, 1, len(records), 0, 0)
    body = b"".join(struct.pack(">3HIH", 0xC00C, kind, 1, 60, len(data)) + data for data in records)
    return head + question[12 : at + 5] + body


def serve_udp(server):
    while True:
        question, client = server.recvfrom(2048)
        server.sendto(answer(question, "udp"), client)


def serve_tcp(server):
    while True:
        client, _ = server.accept()
        with client:
            size = client.recv(2, socket.MSG_WAITALL)
            while len(size) == 2:
                text = answer(client.recv(struct.unpack(">H", size)[0], socket.MSG_WAITALL), "tcp")
                client.sendall(struct.pack(">H", len(text)) + text)
                size = client.recv(2, socket.MSG_WAITALL)


def dns():
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 53))
    tcp = socket.create_server(("127.0.0.1", 53))
    for serve, server in ((serve_udp, udp), (serve_tcp, tcp)):
        threading.Thread(target=serve, args=(server,), daemon=True).start()


def listeners():
    """All on one port."""
    first = socket.create_server((ADDRESSES[0], 0))
    port = first.getsockname()[1]
    rest = [
        socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        for address in ADDRESSES[1:]
    ]
    return port, dict(zip(ADDRESSES, [first] + rest))


def reached(name, port, servers):
    words = [word.replace("{url}", "http://%s:%d/mcp" % (name, port)) for word in PLAN["program"]]
    config = PLAN["config"]
    with open(config["path"], "w") as file:
        file.write(config["text"].replace("{url}", "http://%s:%d/mcp" % (name, port)))
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    found = set()
    with selectors.DefaultSelector() as selector:
        for address, server in servers.items():
            selector.register(server, selectors.EVENT_READ, address)
        selector.register(child.stderr, selectors.EVENT_READ, None)
        said = b""
        ended = False
        while not ended:
            for key, _ in selector.select():
                if key.data is None:
                    part = os.read(child.stderr.fileno(), 4096)
                    said += part
                    ended = not part
                    continue
                found.add(key.data)
                client, _ = key.fileobj.accept()
                with client:
                    client.recv(65536)
                    client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    return {"reached": sorted(found), "code": child.wait(), "said": said.decode()}


def main():
    own_etc()
    loopback_up()
    dns()
    port, servers = listeners()
    names = {name: reached(name, port, servers) for name in PLAN["names"]}
    print(json.dumps({"names": names, "asked": asked}))


main()
