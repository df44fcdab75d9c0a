"""The control of a column on the explorer's page: a slider, a menu or a text field."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from nkcme.tables.column_encoding import Column
from nkcme.tables.column_reading import read_values
from nkcme.tables.columns import RawColumn, is_missing
from nkcme.tables.dates import parse_clock, parse_date

#: Steps of a slider, at least.
_STEPS = 200

#: What a step of a slider is in seconds, of dates and of times of day.
_SECONDS = {"date": 86_400.0, "time": 60.0}


def values_as_read(column: Column, values: list[Any]) -> list[Any]:
    """Values as JSON has them, None if missing.

    Numbers in text, and yes and no, are the numbers and booleans that the model reads; dates and
    times are text by ISO 8601.
    """
    plain = [_plain(value) for value in values]
    texts = any(isinstance(value, str) for value in plain)
    if column.kind not in ("date", "time") and not (column.kind in _READ and texts):
        return plain
    raw = RawColumn.of_array(f"column {column.name!r}", np.fromiter(plain, object, len(plain)))
    read = read_values(raw, column.kind, column.notation).tolist()
    write = _READ.get(column.kind) or (_date_text if column.kind == "date" else _clock_text)
    return [None if math.isnan(value) else write(value) for value in read]


_READ = {"numeric": float, "boolean": bool}


def control(name: str, column: Column, values: list[Any]) -> dict[str, Any]:
    """The control of a column whose values `values_as_read` gave, for the page."""
    present = [value for value in values if value is not None]
    if column.kind in ("numeric", "boolean") and all(type(v) is bool for v in present):
        return _menu(name, [False, True], present)
    if column.kind == "category":
        return _menu(name, list(column.categories), [str(value) for value in present])
    if column.kind == "numeric" and present and all(isinstance(v, int | float) for v in present):
        finite = [float(value) for value in present if math.isfinite(value)] or [column.mean]
        low, high = min(finite), max(finite)
        step = _step(low, high, whole=all(value == round(value) for value in finite))
        return {
            "name": name,
            "kind": "number",
            # Whole steps, so that a slider stops at numbers with few digits.
            "min": float(f"{math.floor(low / step) * step:.12g}"),
            "max": float(f"{math.ceil(high / step) * step:.12g}"),
            "step": step,
            "typical": float(np.quantile(finite, 0.5, method="nearest")),
        }
    if column.kind in _SECONDS and present:
        found: dict[str, Any] = {"name": name, "kind": column.kind}
        places = np.array([on_slider(found, value) for value in present], np.float64)
        typical = present[int(np.argsort(places, kind="stable")[len(places) // 2])]
        return found | {
            "min": int(places.min()),
            "max": int(places.max()),
            "with_clock": any("T" in value for value in present),
            "typical": typical,
        }
    return {"name": name, "kind": "text", "typical": _most_common(present)}


def on_slider(one: dict[str, Any], value: Any) -> float | None:
    """Where a value lies on the slider of a control: a number, whole days since 1970, or whole
    minutes."""
    if one["kind"] == "number" and not isinstance(value, str):
        return None if value is None else float(value)
    if one["kind"] in _SECONDS and isinstance(value, str):
        seconds = parse_date(value) if one["kind"] == "date" else parse_clock(value)
        return None if seconds is None else seconds // _SECONDS[one["kind"]]
    return None


def _plain(value: Any) -> Any:
    """A value as JSON has it, or a date or time; None if missing."""
    if is_missing(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _date_text(seconds: float) -> str:
    """2024-01-31, or 2024-01-31T12:30 where there is a time of day."""
    text = str(np.datetime64(round(seconds), "s"))
    return text.removesuffix(":00").removesuffix("T00:00")


def _clock_text(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{rest:02d}" if rest else text


def _menu(name: str, options: list[Any], present: list[Any]) -> dict[str, Any]:
    return {"name": name, "kind": "menu", "options": options, "typical": _most_common(present)}


def _most_common(values: list[Any]) -> Any:
    return Counter(values).most_common(1)[0][0] if values else None


def _step(low: float, high: float, *, whole: bool) -> float:
    """A power of ten that makes at least `_STEPS` steps, or one for whole numbers."""
    if high <= low:
        return 1.0
    step = 10.0 ** math.floor(math.log10((high - low) / _STEPS))
    return max(step, 1.0) if whole else step
