"""JSON without ambiguity, and limits on what reading it may cost.

No repeated keys, no NaN or infinity, only text as keys, no deep nesting, no millions of values:
every program reads the same values, and a small hostile file costs little memory, time or stack.
"""

import json
import math
import re
from typing import Any

MAX_DEPTH = 64
MAX_VALUES = 1_000_000
MAX_DIGITS = 300  # any such integer still fits a float

# Possessive, and without need of the closing quote: the scan never goes back, so its time is
# linear and its memory constant for any input.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)


def dumps(document: Any, indent: int | None = None) -> bytes:
    """The UTF-8 text of a document, keys sorted: equal documents give equal bytes."""
    _require_text_keys(document)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=indent)
    # Text stays readable; a lone surrogate, which UTF-8 lacks, becomes its JSON escape.
    return text.encode(errors="backslashreplace")


def loads(data: bytes) -> Any:
    """The document of a text; a ValueError describes what is not strict."""
    depth = values = 0
    for token in _TOKEN.finditer(data):
        character = data[token.start()]
        depth += (character in b"[{") - (character in b"]}")
        values += character in b"[{,"
        if depth > MAX_DEPTH or values > MAX_VALUES:
            raise ValueError(f"more than {MAX_DEPTH} levels or {MAX_VALUES} values")
    return json.loads(
        data.decode(),
        object_pairs_hook=_unique_keys,
        parse_float=_finite_float,
        parse_int=_bounded_int,
        parse_constant=_finite_float,
    )


def _require_text_keys(value: Any) -> None:
    """Refuse other keys: JSON would silently turn 1 into "1"."""
    if isinstance(value, dict):
        if other := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"the key {other[0]!r} where only text can be one")
        value = list(value.values())
    for item in value if isinstance(value, list | tuple) else ():
        _require_text_keys(item)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key that appears twice in one object")
    return result


def _finite_float(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"the non-finite number {text[:20]}")
    return value


def _bounded_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)
