"""A saved model and a table file, loaded together, for `predict`, `evaluate` and `report`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError, TableError
from nkcme.estimators import ConditionalEstimator, load
from nkcme.tables.columns import listed
from nkcme.tables.files import read_table, split_target

#: Receives a one-line message that is not a result.
Note = Callable[[str], object]


def load_one_output(path: Path) -> ConditionalEstimator:
    """The model at a path, which must predict one output."""
    model = load(path)
    if model.n_outputs_ != 1:
        raise NkcmeError(
            f"{path} predicts {model.n_outputs_} outputs and the command line handles one; use "
            "nkcme.load in Python"
        )
    return model


def read_features(model: ConditionalEstimator, table: Path, note: Note) -> Any:
    """The columns of a table file that the model was fitted on, parsed as in training."""
    target = getattr(model, "target_name_", None)
    return _features(model, read_table(table, like=model.encoder_, target=target), note)


def load_with_truth(
    model_path: Path, table: Path, target: str | None, note: Note
) -> tuple[ConditionalEstimator, Any, np.ndarray, str]:
    """A model, the features of a table, the true y and the name of its column."""
    model = load_one_output(model_path)
    name = target or getattr(model, "target_name_", None)
    if name is None:
        raise NkcmeError(f"{model_path} does not hold the target's name; give it with --target")
    others, y = split_target(read_table(table, like=model.encoder_, target=name), name)
    return model, _features(model, others, note), y, name


def _features(model: ConditionalEstimator, frame: Any, note: Note) -> Any:
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # fitted on an array: columns go by position, without the target
        X = frame.drop(columns=getattr(model, "target_name_", None) or [], errors="ignore")
    else:
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise TableError(f"the table lacks {listed(absent)}, which the model was fitted on")
        known = set(names)
        extra = [name for name in frame.columns if name not in known]
        if extra:
            note(f"ignored {listed(extra)}, which the model was not fitted on")
        X = frame[list(names)]
    for unknown in model.encoder_.unknown_categories(X):
        note(str(unknown))
    return X
