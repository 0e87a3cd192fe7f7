"""Every host, server, launcher and policy together, each cell run really: `cargo xtask interop` starts this.

hosts      Plenipo's command line, and the reference runtime in a turn whose model is a script on loopback
servers    the built-in workspace server (Rust), and the example servers of the kits (rmcp is Rust's)
launchers  Plenipo's and the reference's
policies   read-only, workspace, full access

A cell passes when a command that the server ran could write, and connect, exactly where the policy says. Below the
matrix: the states that the reference produced in every mode, under both launchers.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import switch
from reference import Reference

HERE = Path(__file__).resolve().parent
TIMEOUT = 120
#: policy → may write in the workspace, may write beside it, may connect.
POLICIES = {
    "read-only": (False, False, False),
    "workspace": (True, False, False),
    "full access": (True, True, True),
}
PROFILES = {"read-only": ":read-only", "workspace": ":workspace", "full access": ":danger-full-access"}
MODES = {"read-only": "read-only", "workspace": "workspace-write", "full access": "danger-full-access"}
VERDICT = re.compile(r"verdict inside=(\d+) outside=(\d+) network=(\d+)")


class Failed(Exception):
    """Why a cell has no verdict."""


class Place:
    """A workspace, a directory beside it, and a listener on loopback."""

    def __init__(self, scratch: Path) -> None:
        self.workspace = scratch / "workspace"
        self.outside = scratch / "outside"
        self.home = scratch / "home"
        self.temporary = scratch / "temporary"
        # The last ones are in the captured states.
        for directory in (self.workspace / "sub dir", self.outside, self.home / "extra1", self.temporary):
            directory.mkdir(parents=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self._listener.accept()[0].close()
            except OSError:
                return

    def probe(self) -> str:
        """A command for `sh -c` that tries everything and prints the exit codes."""
        connect = f"import socket; socket.create_connection((\"127.0.0.1\", {self.port}), 5)"
        return (
            f"rm -f {self.workspace}/mark {self.outside}/mark 2>/dev/null; "
            f"touch {self.workspace}/mark 2>/dev/null; i=$?; touch {self.outside}/mark 2>/dev/null; o=$?; "
            f"python3 -c '{connect}' 2>/dev/null; n=$?; "
            'echo "verdict inside=$i outside=$o network=$n"'
        )

    def verdict(self, said: str) -> tuple:
        """What could be done, as the command says and as the directories show."""
        found = VERDICT.search(said)
        if found is None:
            raise Failed(f"no verdict in: {said.strip()[-600:]}")
        inside, outside, network = (code == "0" for code in found.groups())
        seen = ((self.workspace / "mark").exists(), (self.outside / "mark").exists())
        if seen != (inside, outside):
            raise Failed(f"the command says {(inside, outside)}, the directories show {seen}")
        for directory in (self.workspace, self.outside):
            (directory / "mark").unlink(missing_ok=True)
        return inside, outside, network


class Bench:
    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.place = Place(scratch)
        self.reference = Reference(options.reference, self.scratch, self.place)
        self.launchers = {"Plenipo": str(options.plenipo), "reference": str(options.reference)}
        self.failures: list[str] = []

    def servers(self) -> dict:
        python = str(self.options.peers / "interop-python/bin/python3")
        examples = self.options.root / "kits/python/examples"
        modules = {"PYTHONPATH": str(self.options.kits / "python")}
        node = shutil.which("node") or "node"
        servers = {
            "rust": {"command": str(self.options.plenipo), "args": ["server", "workspace"]},
            "python": {"command": python, "args": [str(examples / "server.py")], "env": modules},
            "fastmcp": {"command": python, "args": [str(examples / "fastmcp_server.py")], "env": modules},
            "typescript": {"command": node, "args": [str(self.options.kits / "typescript/server.js")]},
        }
        servers["rmcp"] = {"command": str(self.options.rmcp), "args": []}
        return servers

    def by_plenipo(self, server: str, launcher: str, policy: str) -> str:
        """The reference's own configuration file, unchanged; the launcher is what only we can choose."""
        config = self.scratch / f"{server}-{launcher}.toml"
        text = self.reference.config({server: self.servers()[server]})
        if launcher != "Plenipo":
            # Our own format, which is the same for servers and knows `launcher`.
            servers = self.reference.servers({server: self.servers()[server]})
            text = f"launcher = {json.dumps(self.launchers[launcher])}\n{servers}"
        config.write_text(text)
        argv = [str(self.options.plenipo), "--config", str(config), "call", f"{server}.run"]
        argv += ["--profile", PROFILES[policy], f"command={self.place.probe()}"]
        return self.start(argv)

    def by_reference(self, server: str, launcher: str, policy: str) -> str:
        """A turn of the reference; for our launcher, a shim puts its path where the reference put its own."""
        entry = self.servers()[server]
        if launcher != "reference":
            argv = [str(HERE / "relaunch.py"), self.launchers[launcher], entry["command"], *entry["args"]]
            entry = {**entry, "command": sys.executable, "args": argv}
        return self.reference.turn(server, entry, MODES[policy], {"command": self.place.probe()})

    def start(self, argv: list, more: dict | None = None) -> str:
        environment = {**os.environ, "HOME": str(self.place.home), "TMPDIR": str(self.place.temporary), **(more or {})}
        for name in list(environment):
            if name.startswith(("XDG_", "PLENIPO_", "CODEX_")):
                del environment[name]
        done = subprocess.run(
            argv, cwd=self.place.workspace, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT,
        )
        return done.stdout + done.stderr

    def cell(self, host: str, server: str, launcher: str, policy: str) -> str:
        started = time.monotonic()
        try:
            run = self.by_plenipo if host == "Plenipo" else self.by_reference
            found = self.place.verdict(run(server, launcher, policy))
        except (Failed, subprocess.TimeoutExpired) as error:
            self.failures.append(f"{host} × {server} × {launcher} × {policy}: {error}")
            return "FAILED"
        if found != POLICIES[policy]:
            self.failures.append(f"{host} × {server} × {launcher} × {policy}: {found}, not {POLICIES[policy]}")
            return "WRONG"
        return f"ok {time.monotonic() - started:4.1f}s"

    def matrix(self) -> int:
        print(f"{'host':<10} {'server':<11} {'launcher':<10} " + " ".join(f"{policy:<12}" for policy in POLICIES))
        count = 0
        for host in ("Plenipo", "reference"):
            for server in self.servers():
                for launcher in self.launchers:
                    cells = [self.cell(host, server, launcher, policy) for policy in POLICIES]
                    count += len(cells)
                    row = " ".join(f"{cell:<12}" for cell in cells)
                    print(f"{host:<10} {server:<11} {launcher:<10} {row}", flush=True)
        return count

    def states(self) -> int:
        """The states of the captures, in this workspace, under both launchers."""
        differ = json.loads((HERE / "differences.json").read_text())
        count = 0
        print("\nstate of the reference in mode … | reference | Plenipo  (in the workspace, beside it, network)")
        for name, state in self.captured().items():
            found = {}
            for launcher, path in self.launchers.items():
                argv = [path, "sandbox", "--sandbox-state-json", state, "--", "/bin/sh", "-c", self.place.probe()]
                try:
                    found[launcher] = list(self.place.verdict(self.start(argv)))
                except Failed:
                    found[launcher] = "refused"
            known = differ.get(name)
            same = found["Plenipo"] == found["reference"]
            count += 1
            shown = {launcher: "".join("-w"[w] for w in v) if v != "refused" else v for launcher, v in found.items()}
            note = "" if same else f"  documented: {known['why']}" if known else "  DIFFERENT"
            print(f"{name:<46} {shown['reference']:<9} {shown['Plenipo']:<9}{note}", flush=True)
            if same and known:
                self.failures.append(f"{name}: both say {shown['Plenipo']}, and differences.json says they differ")
            elif not same and (known is None or known["plenipo"] != shown["Plenipo"]):
                self.failures.append(f"{name}: the reference {shown['reference']}, Plenipo {shown['Plenipo']}")
        return count

    def leftovers(self) -> int:
        """What leaves the session of a sandboxed command ends with it: the sandbox's processes do."""
        confines = [state for state in self.captured().values() if '"managed"' in state]
        print("\nprocesses of a command that are left after its time limit, though they left its session")
        for name, launcher in self.launchers.items():
            argv = [sys.executable, str(HERE / "leftovers.py"), launcher, confines[0]]
            left = self.start(argv, {"PYTHONPATH": str(self.options.kits / "python")}).strip()
            print(f"{name:<10} {left}", flush=True)
            if left != "0":
                self.failures.append(f"{name}: after a time limit {left}")
        return len(self.launchers)

    def switches(self) -> int:
        """A policy that is switched: the reference may send the old one, Plenipo may not."""
        reference, program = self.options.reference, self.options.plenipo
        environment = self.reference.environment()
        theirs = switch.by_reference(self.reference, reference, environment, self.place.workspace)
        ours = switch.by_plenipo(self.reference, program, self.start, self.scratch / "switch.toml")
        print("\nfull access switched to read-only, calls that still carried full access")
        for host, found in (("reference", theirs), ("Plenipo", ours)):
            print(f"{host:<10} {found.count('disabled')} of {len(found)}", flush=True)
        wrong = [sent for sent in ours if sent != "managed"]
        if wrong or len(ours) != switch.TRIES:
            self.failures.append(f"after a switch to read-only Plenipo sent {ours}")
        return len(theirs) + len(ours)

    def captured(self) -> dict:
        """Distinct states of the captures, by mode, with the directories of this run."""
        states = {}
        for file in sorted((self.options.root / "crates/authority/tests/data/requests").glob("*.json")):
            meta = json.loads(file.read_text())["params"].get("_meta", {})
            state = meta.get("codex/sandbox-state")
            if state is None:
                continue
            text = json.dumps({**state, "codexLinuxSandboxExe": self.launchers["reference"]})
            text = text.replace("/home/dev/.codex", str(self.place.home / ".codex"))
            text = re.sub(r"/home/dev/ws[^\"/]*", str(self.place.workspace), text)
            text = text.replace("/home/dev", str(self.place.home))
            if text not in states.values():
                states[file.name.split(".")[0]] = text
        return states


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("plenipo", "reference", "peers", "kits", "root", "rmcp"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    # Not below /tmp, which policies give away.
    with tempfile.TemporaryDirectory(prefix="plenipo-interop-", dir="/var/tmp") as scratch:
        bench = Bench(options, Path(scratch))
        cells, states = bench.matrix(), bench.states()
        leftovers, switches = bench.leftovers(), bench.switches()
    for failure in bench.failures:
        print(f"FAILED {failure}")
    print(f"\n{cells} cells, {states} states, {leftovers} time limits and {switches} switches, {len(bench.failures)} failed")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
