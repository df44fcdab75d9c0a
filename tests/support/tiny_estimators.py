"""Every estimator in a size that fits in a moment. A new one needs an entry here to be tested."""

from __future__ import annotations

from typing import Any

import pytest

from nkcme import presets
from nkcme.estimators import ESTIMATORS, ConditionalEstimator

TINY: dict[str, dict[str, Any]] = {
    "CARD": {
        "hidden": (8,),
        "noise_hidden": (8,),
        "n_diffusion_steps": 10,
        "n_draws": 20,
        "mean_epochs": 1,
        "epochs": 1,
        "random_state": 0,
    },
    "DeepFeatureCME": {"hidden": (8, 8), "epochs": 1, "random_state": 0},
    "KernelCME": {"random_state": 0},
    "MDN": {"hidden": (8,), "n_components": 3, "epochs": 1, "random_state": 0},
    "NKCME": presets.QUICK | {"hidden": (8,), "n_atoms": 10, "epochs": 1, "random_state": 0},
    "SplineFlow": {
        "n_layers": 2,
        "n_bins": 4,
        "hidden": (8,),
        "epochs": 1,
        "validation_fraction": 0.0,
        "random_state": 0,
    },
}

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def tiny(name: str, **changes: Any) -> ConditionalEstimator:
    return ESTIMATORS[name](**TINY[name] | changes)
