"""The command line that runs a command under the authority of its call. Nothing is started here."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence

from ._authority import CallAuthority, checked
from ._errors import Refusal, shown

#: The longest single argument that Linux passes to a program, in bytes (MAX_ARG_STRLEN less the NUL, execve(2)).
MAXIMUM_ARGUMENT_BYTES = 131_071

#: The variables a command inherits; everything else, and so the server's own secrets, stays out.
ALLOWED_ENVIRONMENT = ("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")

_FIXED_NAMES = ("HOME", "TMPDIR")
_FIXED_PREFIXES = ("XDG_", "PLENIPO_")


class OperatorPolicy(enum.Enum):
    """What to do when a call brings no launcher, decided by the server's operator, never by a caller.

    The opt-out covers absence only: what is malformed, differs or is refused stays refused.
    """

    REQUIRE_LAUNCHER = "require-launcher"
    ALLOW_UNSANDBOXED = "allow-unsandboxed"


class SandboxedCommand:
    """`argv` (program first) under the authority of its call.

    `environment` is what the command inherits from (only ALLOWED_ENVIRONMENT is taken; default: the server's own),
    `additions` what the server's operator configured. Start `argv` with exactly `environment`, without a shell and
    in its own process group, as `run` and `GuardedProcess` do. Raises Refusal.
    """

    def __init__(
        self,
        authority: CallAuthority,
        argv: Sequence[str],
        operator: OperatorPolicy = OperatorPolicy.REQUIRE_LAUNCHER,
        *,
        environment: Mapping[str, str] | None = None,
        additions: Mapping[str, str] | None = None,
    ) -> None:
        options = _options(checked(authority), operator)
        # A string would be taken for a list of its letters.
        if isinstance(argv, (str, bytes)):
            raise Refusal("command-not-a-list", "the command must be a list of words, found a string")
        command = list(argv)
        _check_argv(command)
        #: False when the operator's opt-out was used: the result of the tool must say so.
        self.sandboxed = bool(options)
        #: The whole command line, program first.
        self.argv: list[str] = options + command
        #: The whole environment of the program.
        self.environment = _environment(environment, additions)
        self.authority = authority


def _options(authority: CallAuthority, operator: OperatorPolicy) -> list[str]:
    """The launcher up to and including `--`; empty: run without."""
    state, launcher = authority.state, authority.launcher
    if launcher is None:
        if operator is OperatorPolicy.ALLOW_UNSANDBOXED:
            return []
        if state is None:
            raise Refusal("no-authority", "the call came without a sandbox state and without a launcher")
        raise Refusal("no-launcher", "the call came with a sandbox state but without a launcher")
    if state is None:
        raise Refusal("no-state", "the call came with a launcher but without a sandbox state")
    size = len(state.encode())
    if size > MAXIMUM_ARGUMENT_BYTES:
        maximum = MAXIMUM_ARGUMENT_BYTES
        raise Refusal("state-too-long", f"sandbox state is {size} bytes long, one argument of a program takes {maximum}")
    return [launcher, "sandbox", "--sandbox-state-json", state, "--"]


def _check_argv(argv: list[str]) -> None:
    if not argv or argv[0] == "":
        raise Refusal("empty-command", "the command is empty")
    for index, argument in enumerate(argv):
        if not isinstance(argument, str):
            raise TypeError(f"argument {index} of the command must be a string")
        if "\0" in argument:
            raise Refusal("argument-nul", f"argument {index} of the command holds a NUL")
        size = len(_bytes(argument, index))
        if size > MAXIMUM_ARGUMENT_BYTES:
            maximum = MAXIMUM_ARGUMENT_BYTES
            raise Refusal("argument-too-long", f"argument {index} of the command is {size} bytes long, a program takes {maximum}")


def _bytes(argument: str, index: int) -> bytes:
    try:
        return os.fsencode(argument)
    except UnicodeEncodeError:
        raise Refusal("argument-text", f"argument {index} of the command is no Unicode text") from None


def _environment(inherited: Mapping[str, str] | None, additions: Mapping[str, str] | None) -> dict[str, str]:
    source = os.environ if inherited is None else inherited
    environment = {name: source[name] for name in ALLOWED_ENVIRONMENT if name in source and "\0" not in source[name]}
    for name, value in (additions or {}).items():
        if name in _FIXED_NAMES or name.startswith(_FIXED_PREFIXES):
            raise Refusal("environment-name", f"environment variable `{shown(name)}` may not be set for a sandboxed command")
        if name == "" or "=" in name or "\0" in name or "\0" in value:
            raise Refusal("environment-entry", f"environment variable `{shown(name)}` has a name or value that cannot be passed on")
        environment[name] = value
    return environment
