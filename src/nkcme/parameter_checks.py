"""Checks of parameters. Each error is one line with what was expected and what was given."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme.errors import NkcmeError

#: Counts of steps, rows and atoms are 32-bit integers in compiled programs.
LARGEST_WHOLE = 2**31 - 1


def need_one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse anything but one of the known words."""
    if not isinstance(value, str) or value not in known:
        raise NkcmeError(f"{name} must be one of {', '.join(known)}; got {value!r}")


def need_whole(name: str, value: Any, least: int | None = 1) -> None:
    """Refuse anything but a whole number from ``least`` to `LARGEST_WHOLE`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or (least is not None and value < least):
        bound = "" if least is None else f" of at least {least}"
        raise NkcmeError(f"{name} must be a whole number{bound}; got {value!r}")
    if abs(value) > LARGEST_WHOLE:
        raise NkcmeError(f"{name} must be a whole number of at most {LARGEST_WHOLE}; got {value!r}")


def need_wholes(name: str, values: Any, least: int | None = 1) -> None:
    """Refuse anything but a list of whole numbers, each at least ``least``."""
    if not isinstance(values, list | tuple | np.ndarray) or np.ndim(values) != 1:
        raise NkcmeError(
            f"{name} must be a list of whole numbers, such as (64, 64); got {values!r}"
        )
    for value in values:
        need_whole(f"each of {name}", value, least)


def need_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> None:
    """Refuse anything but a finite number within the bounds."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    fits = (
        number
        and np.isfinite(value)
        and (above is None or value > above)
        and (least is None or value >= least)
        and (below is None or value < below)
        and (most is None or value <= most)
    )
    if not fits:
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (
                ("above", above),
                ("at least", least),
                ("below", below),
                ("at most", most),
            )
            if bound is not None
        ]
        raise NkcmeError(f"{name} must be a number {' and '.join(bounds)}; got {value!r}")


def need_word_or_positive(name: str, value: Any, word: str) -> None:
    """Refuse anything but a word that leaves the choice to the data, or a number above 0."""
    try:
        if not isinstance(value, str) or value != word:
            need_number(name, value, above=0.0)
    except NkcmeError as error:
        raise NkcmeError(f'{name} must be "{word}" or a number above 0; got {value!r}') from error
