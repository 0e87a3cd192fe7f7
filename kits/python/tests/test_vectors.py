"""The vectors that all kits share."""

import json
import unittest
from pathlib import Path

from plenipo_authority import (
    AuthorityChanged,
    AuthorityError,
    AuthorityGuard,
    CallAuthority,
    OperatorPolicy,
    SandboxedCommand,
)

VECTORS = json.loads((Path(__file__).parents[2] / "vectors.json").read_text(encoding="utf-8"))


def filled(value, replace):
    if isinstance(value, str):
        for mark, what in replace.items():
            value = value.replace(mark, what["text"] * what["times"])
        return value
    if isinstance(value, list):
        return [filled(item, replace) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, replace) for key, item in value.items()}
    return value


def vectors(part):
    for vector in VECTORS[part]:
        yield filled(vector, vector.get("replace", {}))


def outcome(work):
    try:
        return work()
    except AuthorityError as error:
        assert str(error), "an error says something"
        return {"error": error.code}


class Vectors(unittest.TestCase):
    def test_authority_is_read_or_refused(self):
        for vector in vectors("read"):
            with self.subTest(vector["name"]):
                expected = vector.get("python", vector["expect"])
                found = outcome(lambda: CallAuthority.from_meta(json.loads(vector["meta"])))
                if isinstance(found, CallAuthority):
                    found = {"state": found.state, "launcher": found.launcher}
                    if found["state"] and expected.get("state"):
                        # The same value; of the types too, which Python finds equal.
                        value, wanted = json.loads(found["state"]), json.loads(expected["state"])
                        self.assertEqual(json.dumps(value), json.dumps(wanted))
                        expected = {**expected, "state": found["state"]}
                self.assertEqual(found, expected)

    def test_commands_are_built_or_refused(self):
        for vector in vectors("command"):
            with self.subTest(vector["name"]):
                def build():
                    return SandboxedCommand(
                        CallAuthority.from_meta(json.loads(vector["meta"])),
                        vector["argv"],
                        OperatorPolicy(vector.get("operator", "require-launcher")),
                        environment=vector.get("inherited", {}),
                        additions=vector.get("additions"),
                    )

                found = outcome(build)
                if isinstance(found, SandboxedCommand):
                    found = {key: getattr(found, key) for key in ("argv", "environment", "sandboxed")}
                self.assertEqual(found, vector["expect"])

    def test_what_outlives_a_call_serves_the_same_authority_only(self):
        for vector in vectors("guard"):
            with self.subTest(vector["name"]):
                guard = AuthorityGuard(CallAuthority.from_meta(json.loads(vector["kept"])))
                call = CallAuthority.from_meta(json.loads(vector["call"]))
                if not vector["changed"]:
                    guard.ensure_same(call)
                    continue
                with self.assertRaises(AuthorityChanged) as raised:
                    guard.ensure_same(call)
                self.assertEqual(len(raised.exception.parts), len(vector["changed"]))
                for part in vector["changed"]:
                    self.assertIn(part, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
