#!/usr/bin/env python3
"""Drives a launcher through the state form of its command line: exit codes, signals, streams, temp files, leftovers."""
import json, os, shlex, signal, subprocess, sys, tempfile, time
from pathlib import Path

def entry(path, access):
    return {"path": path, "access": access}
ROOT = {"type": "special", "value": {"kind": "root"}}
CWD = {"type": "special", "value": {"kind": "project_roots"}}
def at(p):
    return {"type": "path", "path": str(p)}
def profile(*entries, network="restricted"):
    return {"type": "managed", "file_system": {"type": "restricted", "entries": list(entries)}, "network": network}
def state(cwd, prof, **kw):

    return {"permissionProfile": prof, "codexLinuxSandboxExe": None, "sandboxCwd": Path(cwd).as_uri(), "useLegacyLandlock": False, **kw}
def run(cmd, st, argv, cwd, inp=None, timeout=60):
    j = st if isinstance(st, str) else json.dumps(st)
    return subprocess.run(shlex.split(cmd) + ["--sandbox-state-json", j, "--", *argv], cwd=cwd, input=inp, capture_output=True, timeout=timeout)

work = Path(tempfile.mkdtemp(prefix="f15 \u00e9#%-")).resolve()        # space, non-ASCII, # and % in the cwd
P = profile(entry(ROOT, "read"), entry(CWD, "write"))
PT = profile(entry(ROOT, "read"), entry(CWD, "write"), entry({"type": "special", "value": {"kind": "tmpdir"}}, "write"), entry({"type": "special", "value": {"kind": "slash_tmp"}}, "write"))
bad = 0
def check(label, cond, extra=""):
    global bad
    bad += not cond
    print(("ok  " if cond else "BAD ") + label, extra)
def go(argv, prof=P, inp=None, timeout=60):
    return run(sys.argv[1], state(work, prof), argv, work, inp, timeout)
for argv, want in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 3"], 3), (["sh", "-c", "exit 77"], 77), (["/nonexistent/cmd"], 127), ([str(work)], 126),
                   (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -KILL $$"], 137)):
    r = go(argv)
    check("exit %s" % want, r.returncode == want or (want > 128 and r.returncode == 128 - want), "%s -> %s %r" % (argv[-1], r.returncode, r.stderr[-80:]))
r = go(["false"])
check("plain failure is not called a sandbox denial", b"sandbox" not in r.stderr.lower() and b"denied" not in r.stderr.lower(), r.stderr[-80:])
blob = bytes(range(256)) * 4096
r = go(["cat"], inp=blob)
check("stdin to stdout, 1 MiB of binary", r.stdout == blob, len(r.stdout))
r = go(["sh", "-c", "pwd; echo err >&2"])
check("cwd with space, accent, # and %", r.stdout.decode().rstrip("\n") == str(work), r.stdout)
check("stderr is only the command's", r.stderr == b"err\n", r.stderr[-80:])
r = go(["sh", "-c", "f=$(mktemp) && echo x > $f && cat $f"], PT)
check("mktemp works when temp dirs are granted", r.returncode == 0 and r.stdout == b"x\n", r.stderr[-120:])
env = dict(os.environ, TMPDIR=str(work / "not-there-yet"))
r = subprocess.run(shlex.split(sys.argv[1]) + ["--sandbox-state-json", json.dumps(state(work, PT)), "--", "true"], cwd=work, env=env, capture_output=True)
check("a TMPDIR that does not exist does not kill the launch", r.returncode == 0, r.stderr[-120:])
outside = Path(tempfile.mkdtemp(prefix="f15-outside-")).resolve()
r = go(["sh", "-c", "echo x > '%s'" % (outside / "canary")])
check("write outside fails with the command's own error", r.returncode not in (0, 126, 127) and not (outside / "canary").exists(), r.stderr[-80:])
PROBE = ("import socket,sys\na,b=socket.socketpair();a.send(b'x');print('socketpair',b.recv(1))\n"
         "import asyncio\nprint('asyncio',asyncio.run(asyncio.sleep(0,'ok')))\n"
         "s=socket.socket()\ns.settimeout(2)\ntry:\n s.connect(('192.0.2.1',9));print('NET OPEN')\nexcept OSError as e:\n print('net closed')\n")
r = go([sys.executable, "-c", PROBE], timeout=20)
check("socketpair and asyncio work without network", b"asyncio ok" in r.stdout, (r.stdout[-80:], r.stderr[-120:]))
check("no network", b"NET OPEN" not in r.stdout)
mark = "f15-%d" % os.getpid()
p = subprocess.Popen(shlex.split(sys.argv[1]) + ["--sandbox-state-json", json.dumps(state(work, P)), "--", "sh", "-c", "sleep 301 & sleep 302; true"], cwd=work, env=dict(os.environ, F_MARK=mark), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
time.sleep(1.5)
p.send_signal(signal.SIGTERM)
try:
    p.wait(10)
except subprocess.TimeoutExpired:
    p.kill()
time.sleep(1.5)
left = []
for d in filter(str.isdigit, os.listdir("/proc")):
    try:
        if ("F_MARK=" + mark).encode() in open("/proc/%s/environ" % d, "rb").read() and b"sleep" in open("/proc/%s/cmdline" % d, "rb").read():
            left.append(d)
    except OSError:
        pass
check("SIGTERM to the launcher leaves no process behind", not left, left)
for d in left:
    os.kill(int(d), signal.SIGKILL)
sys.exit(1 if bad else 0)
