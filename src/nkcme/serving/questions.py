"""What a request to `/predict` asks, read from its body. Nothing in a body is trusted."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nkcme.errors import NkcmeError
from nkcme.model_files import strict_json

#: The most bytes of a body, rows, quantiles or other numbers per row, and numbers of an answer.
MAX_BYTES = 16 * 2**20
MAX_ROWS = 10_000
MAX_PER_ROW = 1_000
MAX_NUMBERS = 1_000_000

#: What is answered for a single row without options.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
INTERVALS = (0.9,)

_KEYS = {"rows", "mean", "quantiles", "intervals", "probabilities", "samples", "seed"}


class RequestError(NkcmeError):
    """A request that cannot be answered; ``status`` is that of HTTP."""

    def __init__(self, message: str, status: int = 422):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Event:
    """The y between two ends; an infinite end is no limit.

    P(below b) is that of y < b, P(above a) that of y > a, P(between a and b) that of a <= y <= b.
    """

    low: float
    high: float
    closed: bool = False


@dataclass(frozen=True)
class Question:
    """Rows, and what is asked of each of them."""

    rows: list[Any]
    single: bool = False
    mean: bool = True
    quantiles: Sequence[float] = QUANTILES
    intervals: Sequence[float] = INTERVALS
    probabilities: Sequence[Event] = ()
    samples: int = 0
    seed: int | None = None

    @property
    def asks(self) -> tuple[Any, ...]:
        """What is asked of each row."""
        return (
            self.mean,
            self.quantiles,
            self.intervals,
            self.probabilities,
            self.samples,
            self.seed,
        )

    @classmethod
    def read(cls, body: bytes) -> Question:
        """The question of a body: one row, or ``{"rows": [...], ...}``."""
        if len(body) > MAX_BYTES:
            raise RequestError(f"the body has more than {MAX_BYTES} bytes; send fewer rows", 413)
        try:
            content = strict_json.loads(body)
        except (ValueError, RecursionError) as error:
            reason = " ".join(str(error).split())[:200]
            raise RequestError(f"the body is not strict JSON in UTF-8: {reason}", 400) from None
        if not isinstance(content, dict):
            raise RequestError(
                f'the body must be an object: one row, or {{"rows": [...]}}; got {_shown(content)}'
            )
        if "rows" not in content:
            return cls([content], single=True)
        return cls(_rows(content["rows"]), **_options(content))


def _rows(rows: Any) -> list[Any]:
    if not isinstance(rows, list) or not rows:
        raise RequestError(f'"rows" must be a list of at least one row; got {_shown(rows)}')
    if len(rows) > MAX_ROWS:
        raise RequestError(
            f'"rows" has {len(rows)} rows, at most {MAX_ROWS} are answered at once; send several '
            "requests",
            413,
        )
    if not (
        all(isinstance(row, dict) for row in rows) or all(isinstance(row, list) for row in rows)
    ):
        raise RequestError('each of "rows" must be an object of values by column, or each a list')
    return rows


def _options(content: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise RequestError(f"unknown {_shown(unknown[0])}; expected {', '.join(sorted(_KEYS))}")
    mean = content.get("mean", True)
    if not isinstance(mean, bool):
        raise RequestError(f'"mean" must be true or false; got {_shown(mean)}')
    quantiles = _numbers(content, "quantiles", QUANTILES)
    if not all(0 <= level <= 1 for level in quantiles):
        raise RequestError("quantiles must lie between 0 and 1")
    intervals = _numbers(content, "intervals", INTERVALS)
    if not all(0 < coverage < 1 for coverage in intervals):
        raise RequestError("the coverage of an interval must lie between 0 and 1, as in 0.9")
    events = content.get("probabilities", [])
    if not isinstance(events, list) or len(events) > MAX_PER_ROW:
        raise RequestError(f'"probabilities" must be a list of at most {MAX_PER_ROW}')
    samples = _whole(content, "samples", 0, MAX_NUMBERS)
    per_row = len(quantiles) + 2 * len(intervals) + len(events) + samples
    if per_row * len(content["rows"]) > MAX_NUMBERS:
        raise RequestError(
            f"the answer would have {per_row * len(content['rows'])} numbers, at most "
            f"{MAX_NUMBERS} are sent at once; send several requests",
            413,
        )
    return {
        "mean": mean,
        "quantiles": quantiles,
        "intervals": intervals,
        "probabilities": tuple(map(_event, events)),
        "samples": samples,
        "seed": None if content.get("seed") is None else _whole(content, "seed", 0, 2**32 - 1),
    }


def _numbers(content: dict[str, Any], name: str, default: Sequence[float]) -> Sequence[float]:
    values = content.get(name, default)
    if not isinstance(values, list | tuple) or not all(map(_is_number, values)):
        raise RequestError(f'"{name}" must be a list of numbers; got {_shown(values)}')
    if len(values) > MAX_PER_ROW:
        raise RequestError(f'"{name}" has {len(values)} numbers, at most {MAX_PER_ROW} are allowed')
    return tuple(map(float, values))


def _whole(content: dict[str, Any], name: str, least: int, most: int) -> int:
    value = content.get(name, least)
    if type(value) is not int or not least <= value <= most:
        raise RequestError(
            f'"{name}" must be a whole number from {least} to {most}; got {_shown(value)}'
        )
    return value


def _event(event: Any) -> Event:
    if isinstance(event, dict) and len(event) == 1:
        (kind, value), *_ = event.items()
        if kind == "above" and _is_number(value):
            return Event(float(value), math.inf)
        if kind == "below" and _is_number(value):
            return Event(-math.inf, float(value))
        pair = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
        if kind == "between" and pair and value[0] <= value[1]:
            return Event(float(value[0]), float(value[1]), closed=True)
    raise RequestError(
        'each of "probabilities" must be {"above": a}, {"below": b} or {"between": [a, b]} with '
        f"a <= b; got {_shown(event)}"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """A value in short, on one line."""
    return " ".join(reprlib.repr(value).split())
