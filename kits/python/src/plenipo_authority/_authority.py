"""Reading the authority of a call from its `_meta`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _value
from ._errors import MetaError, Refusal, shown
from ._meta import LAUNCHER_KEY, STATE_ALIAS_KEY, STATE_KEY

#: The longest state that is read, in bytes (1 MiB).
_MAXIMUM_STATE_BYTES = 1 << 20
_EXECUTABLE = "codexExecutable"


@dataclass(frozen=True)
class CallAuthority:
    """The policy and the launcher that came with one call, well formed or absent.

    `state` is the JSON text of the policy, written once from the value that the SDK parsed: the same JSON value,
    not the same bytes. It is opaque. `launcher` is an absolute path. Either may be None; absence is not permission.
    """

    state: str | None = None
    launcher: str | None = None

    @classmethod
    def absent(cls) -> CallAuthority:
        """The authority of a call without `_meta`: none."""
        return cls()

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any] | None) -> CallAuthority:
        """Reads `params._meta` of this call, as the SDK parsed it; None when it has none.

        Never hand it tool arguments: they come from a model.

        Raises MetaError when `meta` is not an object, a state is none, both names carry different ones, the launcher
        is anything but an object with an absolute path as its only member, or a number may have been rounded.
        A key that occurred twice cannot be seen any more: parsers keep the last.
        """
        if meta is None:
            return cls()
        if not isinstance(meta, Mapping):
            raise MetaError("meta-not-an-object", f"`_meta` must be an object, found {_value.kind(meta)}")
        names = [name for name in (STATE_KEY, STATE_ALIAS_KEY) if name in meta]
        texts = [_state(name, meta[name]) for name in names]
        if len(names) == 2 and not _value.same(meta[STATE_KEY], meta[STATE_ALIAS_KEY]):
            raise MetaError("differ", f"`{STATE_KEY}` and `{STATE_ALIAS_KEY}` differ")
        launcher = _launcher(meta[LAUNCHER_KEY]) if LAUNCHER_KEY in meta else None
        return cls(texts[0] if texts else None, launcher)


def checked(authority: CallAuthority) -> CallAuthority:
    """What a call came with. A missing one would otherwise be taken for anything. Raises Refusal."""
    if not isinstance(authority, CallAuthority):
        raise Refusal("not-an-authority", f"expected the authority of this call, found {type(authority).__name__}")
    return authority


def _state(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        raise MetaError("state-not-an-object", f"`{name}` must be an object, found {_value.kind(value)}")
    try:
        text = _value.text_of(value)
    except _value.Inexact as error:
        raise MetaError(error.code, f"`{name}` {error}") from None
    size = len(text.encode())
    if size > _MAXIMUM_STATE_BYTES:
        raise MetaError("state-too-large", f"`{name}` is {size} bytes long, at most {_MAXIMUM_STATE_BYTES} are read")
    return text


def _launcher(value: Any) -> str:
    if not isinstance(value, dict):
        raise MetaError("launcher-not-an-object", f"`{LAUNCHER_KEY}` must be an object, found {_value.kind(value)}")
    unknown = next((key for key in value if key != _EXECUTABLE), None)
    if unknown is not None:
        raise MetaError("launcher-member", f"`{LAUNCHER_KEY}` has the unknown member `{shown(str(unknown))}`")
    if _EXECUTABLE not in value:
        raise MetaError("launcher-missing", f"`{LAUNCHER_KEY}` has no `{_EXECUTABLE}`")
    path = value[_EXECUTABLE]
    if not isinstance(path, str) or any("\ud800" <= c <= "\udfff" for c in path):
        found = _value.kind(path)
        raise MetaError("launcher-not-text", f"`{_EXECUTABLE}` must be a string of Unicode text, found {found}")
    if not path.startswith("/") or "\0" in path or path.endswith(" (deleted)"):
        raise MetaError("launcher-path", f"`{_EXECUTABLE}` must be the absolute path of a file, found `{shown(path)}`")
    return path
