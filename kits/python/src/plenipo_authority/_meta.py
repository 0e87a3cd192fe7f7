"""The keys, the opt-in, and where SDKs keep the `_meta` of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STATE_KEY = "codex/sandbox-state"
STATE_ALIAS_KEY = "codex/sandbox-state-meta"
LAUNCHER_KEY = "codex/sandbox-launcher"

#: For `capabilities.experimental` of the server: asks hosts for the policy of each call.
CAPABILITY: dict[str, dict[str, Any]] = {STATE_KEY: {}}


def meta_of(context: Any) -> Any:
    """The `_meta` of the call that `context` belongs to, or None when it has none.

    Takes the `Context` of a tool of `mcp` (1 and 2) or `fastmcp`, or the request context of the low-level server
    of `mcp`. What it does not recognise has no `_meta`, and without one nothing runs.
    """
    request = getattr(context, "request_context", None) or context
    params = getattr(request, "params", None)
    if isinstance(params, Mapping) and "_meta" in params:
        return params["_meta"]
    meta = getattr(request, "meta", None)
    # A model of version 1 of `mcp`: its extra fields are the entries it does not know.
    extra = getattr(meta, "model_extra", None)
    return extra if isinstance(extra, Mapping) else meta
