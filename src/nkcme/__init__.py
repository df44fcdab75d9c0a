"""Whole conditional distributions from a table: neural-kernel conditional mean embeddings."""

from nkcme import presets
from nkcme._version import __version__
from nkcme.embedding import Embedding
from nkcme.errors import ModelFileError, NkcmeError, TableError, TrainingError
from nkcme.estimators import NKCME, TrainingInterrupted, load
from nkcme.scoring import crps_scorer, log_density_scorer

__all__ = [
    "NKCME",
    "Embedding",
    "ModelFileError",
    "NkcmeError",
    "TableError",
    "TrainingError",
    "TrainingInterrupted",
    "__version__",
    "crps_scorer",
    "load",
    "log_density_scorer",
    "presets",
]
