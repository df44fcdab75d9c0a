"""Whole conditional distributions from a table: neural-kernel conditional mean embeddings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nkcme._version import __version__
from nkcme.errors import DataError, ModelFileError, NkcmeError, TableError, TrainingError

if TYPE_CHECKING:
    from nkcme import presets, rl
    from nkcme.calibration.conformal import ConformalIntervals
    from nkcme.distributions.embedding import Embedding
    from nkcme.estimators import (
        CARD,
        MDN,
        NKCME,
        DeepFeatureCME,
        KernelCME,
        SplineFlow,
        TrainingInterrupted,
        load,
    )
    from nkcme.evaluation import crps_scorer, log_density_scorer

__all__ = [
    "CARD",
    "MDN",
    "NKCME",
    "ConformalIntervals",
    "DataError",
    "DeepFeatureCME",
    "Embedding",
    "KernelCME",
    "ModelFileError",
    "NkcmeError",
    "SplineFlow",
    "TableError",
    "TrainingError",
    "TrainingInterrupted",
    "__version__",
    "crps_scorer",
    "load",
    "log_density_scorer",
    "presets",
    "rl",
]

# Imported when first asked for: `nkcme --help` must not wait for JAX.
_HOMES = {
    **dict.fromkeys(
        ("CARD", "DeepFeatureCME", "KernelCME", "MDN", "NKCME", "SplineFlow"), "nkcme.estimators"
    ),
    "ConformalIntervals": "nkcme.calibration.conformal",
    "Embedding": "nkcme.distributions.embedding",
    "TrainingInterrupted": "nkcme.estimators",
    "crps_scorer": "nkcme.evaluation",
    "load": "nkcme.estimators",
    "log_density_scorer": "nkcme.evaluation",
}


def __getattr__(name: str) -> Any:
    if name in ("presets", "rl"):
        return import_module(f"nkcme.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'nkcme' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
