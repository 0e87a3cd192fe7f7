"""For MCP servers: the sandbox policy and the launcher that came with a tool call.

Read them from ``_meta`` of *this* call, run the command through the launcher, and keep whatever outlives the
call to the authority that made it. Nothing here interprets the policy, looks for a launcher, or runs a command
without one unless the server's operator said so. No dependencies, POSIX only.
"""

from ._authority import CallAuthority
from ._command import ALLOWED_ENVIRONMENT, MAXIMUM_ARGUMENT_BYTES, OperatorPolicy, SandboxedCommand
from ._errors import AuthorityChanged, AuthorityError, MetaError, Refusal
from ._guard import AuthorityGuard, Guarded
from ._meta import CAPABILITY, LAUNCHER_KEY, STATE_ALIAS_KEY, STATE_KEY, meta_of
from ._process import Completed, GuardedProcess, kill_on_exit, run

__all__ = [
    "ALLOWED_ENVIRONMENT",
    "AuthorityChanged",
    "AuthorityError",
    "AuthorityGuard",
    "CAPABILITY",
    "CallAuthority",
    "Completed",
    "Guarded",
    "GuardedProcess",
    "LAUNCHER_KEY",
    "MAXIMUM_ARGUMENT_BYTES",
    "MetaError",
    "OperatorPolicy",
    "Refusal",
    "STATE_ALIAS_KEY",
    "STATE_KEY",
    "SandboxedCommand",
    "kill_on_exit",
    "meta_of",
    "run",
]
