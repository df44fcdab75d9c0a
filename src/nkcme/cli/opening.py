"""A saved model and a table file, opened together, for `predict`, `evaluate` and `report`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError, TableError
from nkcme.estimators import ConditionalEstimator, load
from nkcme.tables.columns import listed
from nkcme.tables.files import read_table, split_target

#: Who is told what is worth knowing but no result, a line at a time.
Note = Callable[[str], object]


def load_one_output(path: Path) -> ConditionalEstimator:
    model = load(path)
    if model.n_outputs_ != 1:
        raise NkcmeError(
            f"{path} predicts {model.n_outputs_} outputs and the command line handles one; use "
            "nkcme.load in Python"
        )
    return model


def model_and_truth(
    model_path: Path, table: Path, target: str | None, note: Note
) -> tuple[ConditionalEstimator, Any, np.ndarray, str]:
    """A model, the features it wants of a table, the true y and its column's name."""
    model = load_one_output(model_path)
    name = target or getattr(model, "target_name_", None)
    if name is None:
        raise NkcmeError(f"{model_path} does not know its target's name; give it with --target")
    others, y = split_target(read_table(table), name)
    return model, features(model, others, note), y, name


def features(model: ConditionalEstimator, frame: Any, note: Note) -> Any:
    """The columns of a table that the model was fitted on."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # fitted on an array: columns go by position, less the target
        return frame.drop(columns=getattr(model, "target_name_", None) or [], errors="ignore")
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(f"the table lacks {listed(absent)}, which the model was fitted on")
    known = set(names)
    extra = [name for name in frame.columns if name not in known]
    if extra:
        note(f"ignored what the model does not know: {listed(extra)}")
    return frame[list(names)]
