"""Every estimator in a size that fits in a moment. A new one needs an entry here to be tested."""

from __future__ import annotations

from typing import Any

import pytest

from nkcme.estimators import ESTIMATORS, ConditionalEstimator

TINY: dict[str, dict[str, Any]] = {
    "NKCME": {"hidden": (8,), "n_atoms": 10, "epochs": 1, "random_state": 0},
}

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def tiny(name: str, **changes: Any) -> ConditionalEstimator:
    return ESTIMATORS[name](**TINY[name] | changes)
