"""What dates and times of day become: elapsed time, and the places in year, month, week and day.

A cycle is two numbers, the sine and the cosine of its angle, so that its end is near its start. A
cycle is used where the training dates span it: within less, elapsed time says as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

_DAY = 86_400.0
_YEAR = 365.2425 * _DAY


class Feature(NamedTuple):
    """A number computed from seconds, and the least span of training dates that makes it useful."""

    compute: Callable[[np.ndarray], np.ndarray]
    least_span: float = 0.0
    is_bounded: bool = True


def _day_of_month(seconds: np.ndarray) -> np.ndarray:
    days = np.floor(np.where(np.isnan(seconds), 0.0, seconds) / _DAY).astype("datetime64[D]")
    day = (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.float64) + 1.0
    return np.where(np.isnan(seconds), np.nan, day)


def _weekend(seconds: np.ndarray) -> np.ndarray:
    weekday = np.mod(np.floor(seconds / _DAY) + 3.0, 7.0)  # 1970 began on a Thursday; Monday is 0
    return np.where(np.isnan(seconds), np.nan, weekday >= 5.0)


def _sine(period: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda seconds: np.sin(2.0 * np.pi * np.mod(seconds, period) / period)


def _cosine(period: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda seconds: np.cos(2.0 * np.pi * np.mod(seconds, period) / period)


def _weekday(wave: Callable[[float], Callable[[np.ndarray], np.ndarray]]) -> Feature:
    of_days = wave(7.0)
    return Feature(lambda seconds: of_days(np.floor(seconds / _DAY)), 7.0 * _DAY)


OF_DATES = {
    "elapsed days": Feature(lambda seconds: seconds / _DAY, is_bounded=False),
    "year sine": Feature(_sine(_YEAR), _YEAR),
    "year cosine": Feature(_cosine(_YEAR), _YEAR),
    "day of month": Feature(_day_of_month, 31.0 * _DAY),
    "weekday sine": _weekday(_sine),
    "weekday cosine": _weekday(_cosine),
    "weekend": Feature(_weekend, 7.0 * _DAY),
    "day sine": Feature(_sine(_DAY), _DAY),
    "day cosine": Feature(_cosine(_DAY), _DAY),
}

OF_TIMES = {
    "hour": Feature(lambda seconds: seconds / 3600.0),
    "day sine": Feature(_sine(_DAY)),
    "day cosine": Feature(_cosine(_DAY)),
}

FEATURES = {"date": OF_DATES, "time": OF_TIMES}


def useful_features(kind: str, seconds: np.ndarray) -> list[str]:
    """The features of dates or times (seconds, NaN where missing) that can help.

    The first is always among them; others vary, and their least span is reached.
    """
    span = np.nanmax(seconds) - np.nanmin(seconds)
    first, *others = FEATURES[kind]
    varying = [
        name
        for name in others
        if span >= FEATURES[kind][name].least_span and _varies(FEATURES[kind][name], seconds)
    ]
    return [first, *varying]


def _varies(feature: Feature, seconds: np.ndarray) -> bool:
    values = feature.compute(seconds)
    return bool(np.nanmax(values) - np.nanmin(values) > 1e-9)
