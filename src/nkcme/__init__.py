"""Predict the whole distribution of y given x: neural-kernel conditional mean embeddings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nkcme._version import __version__
from nkcme.errors import (
    DataError,
    ModelFileError,
    NkcmeError,
    ProcessLostError,
    TableError,
    TrainingError,
)

if TYPE_CHECKING:
    from nkcme import datasets, explain, metrics, presets, rl
    from nkcme.calibration.conformal import ConformalIntervals
    from nkcme.cross_validation import cross_val_predict_dist
    from nkcme.distributions.base import Distribution
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
    from nkcme.estimators.nkcme.recipe import Recipe
    from nkcme.evaluation import crps_scorer, log_density_scorer
    from nkcme.pipeline import DistributionPipeline
    from nkcme.prediction.predictor import Predictor
    from nkcme.report import plots
    from nkcme.training.cluster import Cluster

__all__ = [
    "CARD",
    "MDN",
    "NKCME",
    "Cluster",
    "ConformalIntervals",
    "DataError",
    "DeepFeatureCME",
    "Distribution",
    "DistributionPipeline",
    "Embedding",
    "KernelCME",
    "ModelFileError",
    "NkcmeError",
    "Predictor",
    "ProcessLostError",
    "Recipe",
    "SplineFlow",
    "TableError",
    "TrainingError",
    "TrainingInterrupted",
    "__version__",
    "cross_val_predict_dist",
    "crps_scorer",
    "datasets",
    "explain",
    "load",
    "log_density_scorer",
    "metrics",
    "plots",
    "presets",
    "rl",
]

# Imported on first use: `nkcme --help` does not wait for JAX.
_MODULES = {
    "datasets": "nkcme.datasets",
    "explain": "nkcme.explain",
    "metrics": "nkcme.metrics",
    "plots": "nkcme.report.plots",
    "presets": "nkcme.presets",
    "rl": "nkcme.rl",
}
_HOMES = {
    **dict.fromkeys(
        ("CARD", "DeepFeatureCME", "KernelCME", "MDN", "NKCME", "SplineFlow"), "nkcme.estimators"
    ),
    "Cluster": "nkcme.training.cluster",
    "ConformalIntervals": "nkcme.calibration.conformal",
    "Distribution": "nkcme.distributions.base",
    "DistributionPipeline": "nkcme.pipeline",
    "Embedding": "nkcme.distributions.embedding",
    "Predictor": "nkcme.prediction.predictor",
    "Recipe": "nkcme.estimators.nkcme.recipe",
    "TrainingInterrupted": "nkcme.estimators",
    "cross_val_predict_dist": "nkcme.cross_validation",
    "crps_scorer": "nkcme.evaluation",
    "load": "nkcme.estimators",
    "log_density_scorer": "nkcme.evaluation",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'nkcme' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
