"""A saved model and a table file, loaded together, for the commands that predict.

The table is read and checked before the estimator is built: an unsuitable one is refused at once,
without JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.estimators.saved_model import SavedModel
from nkcme.prediction.frames import features_of
from nkcme.prediction.models import read_one_output
from nkcme.tables.files import read_table
from nkcme.tables.messages import note_on_columns
from nkcme.tables.table_options import UNKNOWN, TableOptions
from nkcme.tables.target_column import split_target

if TYPE_CHECKING:
    from nkcme.estimators.base import ConditionalEstimator

#: Receives a one-line message that is not a result.
Note = Callable[[str], object]


def load_features(
    path: Path,
    table: Path,
    note: Note,
    options: TableOptions = UNKNOWN,
    keep: Sequence[str] = (),
) -> tuple[SavedModel, Any, Any]:
    """A saved model, a table file parsed as in training, and its columns of the model."""
    saved = read_one_output(path)
    frame = read_table(
        table,
        like=saved.encoder,
        target=saved.target_name,
        options=options,
        note=note,
        check=lambda plain: _features(saved, plain, _silently),
    )
    return saved, frame, _features(saved, frame, note, keep)


def load_with_truth(
    path: Path,
    table: Path,
    target: str | None,
    note: Note,
    options: TableOptions = UNKNOWN,
    drop_missing: bool = False,
) -> tuple[ConditionalEstimator, Any, np.ndarray, str]:
    """A model, the features of a table, the true y and the name of its column."""
    saved = read_one_output(path)
    name = target or saved.target_name
    if name is None:
        raise NkcmeError(f"{path} does not hold the target's name; give it with --target")

    def split(frame: Any, note: Note) -> tuple[Any, np.ndarray]:
        others, y = split_target(frame, name, drop_missing=drop_missing)
        return _features(saved, others, note), y

    frame = read_table(
        table,
        like=saved.encoder,
        target=name,
        options=options,
        note=note,
        check=lambda plain: split(plain, _silently),
    )
    X, y = split(frame, note)
    return saved.estimator(), X, y, name


def load_for_exploring(
    path: Path,
    table: Path,
    target: str | None,
    note: Note,
    options: TableOptions = UNKNOWN,
    drop_missing: bool = False,
) -> tuple[Any, np.ndarray | None]:
    """The features of a table, and its true y where it holds them."""
    saved = read_one_output(path)
    name = target or saved.target_name
    frame = read_table(table, like=saved.encoder, target=name, options=options, note=note)
    y = None
    if target is not None or name in frame.columns:
        frame, y = split_target(frame, str(name), drop_missing=drop_missing)
    return _features(saved, frame, note), y


def _silently(message: str) -> None:
    """For a table that will be read again."""


def _features(saved: SavedModel, frame: Any, note: Note, keep: Sequence[str] = ()) -> Any:
    names = saved.encoder.feature_names
    if names is not None:
        others = [name for name in frame.columns if name in names or name not in keep]
        ignored = note_on_columns(others, names, saved.encoder.unused_names)
        if ignored is not None:
            note(ignored)
    X = features_of(frame, saved.encoder, saved.target_name)
    for unknown in saved.encoder.unknown_categories(X):
        note(str(unknown))
    return X
