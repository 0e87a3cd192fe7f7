"""Why something is refused. Every error has a `code` for programs and a `hint` for people, which may be None."""

from __future__ import annotations

_OPERATOR = (
    "call through a host that sends `codex/sandbox-launcher`, or let the server's operator allow unsandboxed "
    "commands in its own configuration"
)
_HINTS = {
    "no-authority": _OPERATOR,
    "no-launcher": _OPERATOR,
    "no-state": "the host must send `codex/sandbox-state` with the launcher",
    "state-too-long": "shorten the permission profile",
    "argument-too-long": "pass long input in a file or on stdin",
    "environment-name": "HOME, TMPDIR, XDG_* and PLENIPO_* decide what a policy means; remove it",
    "authority-changed": "start anew under the authority of this call",
    "not-an-authority": "read it from `_meta` of this call: `CallAuthority.from_meta(meta_of(ctx))`",
    "command-not-a-list": "write the words apart, or run a shell by name: `[\"/bin/sh\", \"-c\", line]`",
    "launcher-not-started": "nothing was run; call through a host whose launcher is there, and do not try without it",
}


class AuthorityError(Exception):
    """Nothing may run for this call. The message is a lower-case fragment."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = _HINTS.get(code)


class MetaError(AuthorityError):
    """What came in `_meta` is unusable: malformed, or not representable here."""


class Refusal(AuthorityError):
    """The command is not run."""


class AuthorityChanged(AuthorityError):
    """Something that outlived its call was made under another authority."""

    def __init__(self, parts: tuple[str, ...]) -> None:
        super().__init__("authority-changed", f"authority changed: {' and '.join(parts)}")
        self.parts = parts


def shown(text: str) -> str:
    """A peer's text, short and without control characters."""
    plain = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text[:80])
    return plain + ("…" if len(text) > 80 else "")
