//! Ordinary programs go on working under the filter and the mounts.

use plenipo_testkit::{find_tool, requires};

use crate::stage::{Stage, Who};

const PYTHON: &str = r"
import asyncio, multiprocessing, os, pty, socket, subprocess, tempfile, threading

def double(number):
    return 2 * number

async def talk():
    process = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
    return (await process.communicate(b'hello'))[0]

with multiprocessing.Pool(2) as pool:
    assert pool.map(double, [1, 2, 3]) == [2, 4, 6]
assert asyncio.run(talk()) == b'hello'
assert subprocess.check_output(['sh', '-c', 'echo $0'], text=True) == 'sh\n'
one, other = socket.socketpair()
one.send(b'x'); assert other.recv(1) == b'x'
thread = threading.Thread(target=double, args=(1,)); thread.start(); thread.join()
master, slave = pty.openpty(); os.write(slave, b'y'); assert os.read(master, 1) == b'y'
with open('note', 'w') as note: note.write('z')
os.rename('note', 'moved')
print('done')
";

#[test]
fn python_with_processes_threads_sockets_and_terminals_works() {
    if !requires("python3 on PATH", find_tool("python3").is_some()) {
        return;
    }
    for who in Who::everybody() {
        let stage = Stage::new(who);
        stage.fixture.file("ws/main.py", PYTHON);
        for network in ["restricted", "enabled"] {
            let argv = ["/usr/bin/python3", "-I", "main.py"];
            let ended = stage.run(&stage.workspace().network(network), &argv);
            assert_eq!(ended.stdout, "done\n", "network {network}: {ended:?}");
        }
    }
}

#[test]
fn shells_with_pipelines_substitutions_and_jobs_work() {
    for who in Who::everybody() {
        let stage = Stage::new(who);
        let script = "diff <(printf 'a\\nb\\n') <(printf 'a\\nb\\n') && seq 1000 | sort -rn | head -1; \
                      (exit 3) & wait $!; echo $?; cat <<< here; echo x | tee /dev/stderr 2>/dev/null; test -w /dev/tty; echo $?";
        let ended = stage.run(&stage.workspace(), &["/bin/bash", "-c", script]);
        let lines: Vec<&str> = ended.stdout.lines().collect();
        assert_eq!(lines[..4], ["1000", "3", "here", "x"], "{ended:?}");
    }
}
