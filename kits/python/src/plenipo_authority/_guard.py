"""What outlives a call keeps the authority of the call that made it."""

from __future__ import annotations

from typing import Generic, TypeVar

from ._authority import CallAuthority, checked
from ._errors import AuthorityChanged

T = TypeVar("T")


class AuthorityGuard:
    """The authority under which a long-lived process, a pool or a cached result was made.

    Do not keep it after the host is gone, and do not write it to disk: paths in a state may be ephemeral.
    """

    def __init__(self, authority: CallAuthority) -> None:
        self._authority = checked(authority)

    def ensure_same(self, authority: CallAuthority) -> None:
        """Raises AuthorityChanged unless state text and launcher are exactly those retained."""
        checked(authority)
        parts = []
        if self._authority.state != authority.state:
            parts.append("sandbox state")
        if self._authority.launcher != authority.launcher:
            parts.append("launcher")
        if parts:
            raise AuthorityChanged(tuple(parts))


class Guarded(Generic[T]):
    """A value that only a call under the same authority gets back: a cached result, a connection, a process."""

    def __init__(self, value: T, authority: CallAuthority) -> None:
        self._value = value
        self._guard = AuthorityGuard(authority)

    def take(self, authority: CallAuthority) -> T:
        """The value. Raises AuthorityChanged for a call under another authority."""
        self._guard.ensure_same(authority)
        return self._value
