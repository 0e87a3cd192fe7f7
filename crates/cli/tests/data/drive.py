"""drive.py STEPS PROGRAM [ARGUMENT]…: runs a program on a terminal of its own. STEPS is a JSON array of [see, type]: waits
until `see` has been shown, after what was seen before, and types `type`. Prints what the terminal showed, then exits as
the program did; 98 when something was never shown."""
import json
import os
import pty
import select
import sys
import time

steps, words = json.loads(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(words[0], words)
shown, seen, end = b"", 0, time.monotonic() + 60

def read():
    global shown
    ready, _, _ = select.select([terminal], [], [], 0.1)
    if not ready:
        return True
    try:
        data = os.read(terminal, 65536)
    except OSError:
        return False
    shown += data
    return bool(data)

def stop(text):
    sys.stdout.buffer.write(shown)
    print("\n[%s]" % text)
    sys.stdout.flush()
    os.kill(child, 9)
    os._exit(98)

alive = True
for see, text in steps:
    while shown.find(see.encode(), seen) < 0:
        if time.monotonic() > end:
            stop("never shown: " + see)
        if not alive:
            stop("ended before it showed: " + see)
        alive = read()
    seen = shown.find(see.encode(), seen) + len(see.encode())
    os.write(terminal, text.encode())
while alive and time.monotonic() < end:
    alive = read()
if alive:
    stop("never ended")
_, status = os.waitpid(child, 0)
sys.stdout.buffer.write(shown)
sys.stdout.flush()
os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
