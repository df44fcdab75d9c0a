"""The estimators, by name, and how to load one.

The classes are imported on first use: `load` refuses a bad file without waiting for JAX, and
`nkcme.runtime` reads files without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nkcme.estimators.registry import ESTIMATORS, HOMES, register_estimator
from nkcme.estimators.saved_model import load

if TYPE_CHECKING:
    from nkcme.estimators.base import ConditionalEstimator, TrainingInterrupted
    from nkcme.estimators.card import CARD
    from nkcme.estimators.deep_feature_cme import DeepFeatureCME
    from nkcme.estimators.kernel_cme import KernelCME
    from nkcme.estimators.mdn import MDN
    from nkcme.estimators.nkcme.estimator import NKCME
    from nkcme.estimators.spline_flow import SplineFlow

__all__ = [
    "CARD",
    "ESTIMATORS",
    "MDN",
    "NKCME",
    "ConditionalEstimator",
    "DeepFeatureCME",
    "KernelCME",
    "SplineFlow",
    "TrainingInterrupted",
    "load",
    "register_estimator",
]

_BASE = dict.fromkeys(("ConditionalEstimator", "TrainingInterrupted"), "nkcme.estimators.base")


def __getattr__(name: str) -> Any:
    home = (HOMES | _BASE).get(name)
    if home is None:
        raise AttributeError(f"module 'nkcme.estimators' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
