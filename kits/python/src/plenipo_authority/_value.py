"""Parsed JSON values: did parsing keep them, and their text. None of it recurses without a bound."""

from __future__ import annotations

import json
import math
import re
from typing import Any

#: As deep as parsers of other languages go by default.
MAXIMUM_DEPTH = 128
#: A double gives back any decimal of at most so many significant digits (DBL_DIG).
_EXACT_DIGITS = 15
#: From here on doubles skip integers.
_EXACT_INTEGERS = 2.0**53
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Inexact(Exception):
    """The value may differ from what was sent. `code` is `inexact-number`, `too-deep` or `not-json`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def text_of(value: Any) -> str:
    """The JSON text of a value that parsing kept, without spaces.

    Refuses floats that may have been rounded, what is no JSON, and nesting deeper than MAXIMUM_DEPTH. Integers are
    exact in Python, whatever their size.
    """
    check(value)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise Inexact("not-json", f"is no JSON value: {error}") from None
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def check(value: Any) -> None:
    """Raises Inexact for a value that may differ from what was sent."""
    opened = [(value, 1)]
    while opened:
        value, depth = opened.pop()
        if depth > MAXIMUM_DEPTH:
            raise Inexact("too-deep", f"is nested more than {MAXIMUM_DEPTH} levels deep")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise Inexact("not-json", "has a key that is no string")
            opened.extend((item, depth + 1) for item in value.values())
        elif isinstance(value, list):
            opened.extend((item, depth + 1) for item in value)
        elif isinstance(value, float) and not _is_exact(value):
            raise Inexact(
                "inexact-number",
                f"holds the number {value!r}, which may have been rounded when it was parsed",
            )
        elif not (value is None or isinstance(value, (bool, int, float, str))):
            raise Inexact("not-json", f"holds a {type(value).__name__}, which is no JSON value")


def same(left: Any, right: Any) -> bool:
    """Whether two checked values are the same JSON: Python finds True, 1 and 1.0 equal, JSON does not."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _is_exact(number: float) -> bool:
    if not math.isfinite(number) or abs(number) >= _EXACT_INTEGERS:
        return False
    mantissa = repr(number).lower().split("e")[0]
    return len("".join(c for c in mantissa if c.isdigit()).lstrip("0")) <= _EXACT_DIGITS


def kind(value: Any) -> str:
    """The JSON type of a value, for messages."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}
    return kinds.get(type(value), "an object" if isinstance(value, dict) else type(value).__name__)
