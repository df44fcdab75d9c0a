"""Saved models for prediction: by the runtime where it can, else by the full library."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from nkcme.errors import NkcmeError
from nkcme.estimators.predictions import PredictionMethods
from nkcme.estimators.saved_model import SavedModel
from nkcme.runtime.loading import READERS, model_of


def read_one_output(path: str | Path) -> SavedModel:
    """The saved model at a path, which must predict one output."""
    saved = SavedModel.read(path)
    if saved.n_outputs != 1:
        raise NkcmeError(
            f"{path} predicts {saved.n_outputs} outputs, and the columns of a table are those of "
            "one; use nkcme.load in Python"
        )
    return saved


def predicting(saved: SavedModel) -> PredictionMethods:
    """The model that predicts; the runtime imports neither JAX nor scikit-learn."""
    if saved.config["estimator"] in READERS:
        return model_of(saved.path, saved.config, saved.arrays)
    return saved.estimator()


def load_once(path: str) -> PredictionMethods:
    """The model at a path; a process reads an unchanged file once."""
    try:
        state = (Path(path) / "config.json").stat()
    except OSError:  # reading gives the message
        return _load(path, 0, 0)
    return _load(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _load(path: str, changed: int, size: int) -> PredictionMethods:
    return predicting(read_one_output(path))
