"""Checks of what a model file holds about columns and target; nothing in it is trusted."""

from __future__ import annotations

import math
from typing import Any

from nkcme.errors import ModelFileError
from nkcme.tables.values import as_float


def check(condition: bool, fault: str) -> None:
    """Refuse a model file unless the condition holds."""
    if not condition:
        raise ModelFileError(f"the model file is damaged: {fault}; save the model again")


def check_keys(config: Any, required: set[str], what: str, optional: frozenset[str]) -> None:
    """Refuse anything but an object with the required keys, and at most the optional ones."""
    check(
        isinstance(config, dict) and required <= set(config) <= required | optional,
        f"{what} is not an object with the keys {', '.join(sorted(required))}",
    )


def finite_number(value: Any, what: str) -> float:
    """The value as a float; refused unless it is a finite number."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    number = as_float(value) if is_number else math.nan
    check(math.isfinite(number), f"{what} is not a finite number")
    return number
