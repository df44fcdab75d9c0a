"""Tables in CSV files: where they are, their targets, and their folds.

A folder can hold ``tables.json``, which maps the name of each table to ``{"target": COLUMN}``. The
column ``fold`` of a table numbers the fold in which a row is tested; a table without it is split by
a seeded shuffle.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme.errors import NkcmeError, TableError

if TYPE_CHECKING:
    import pandas as pd

#: The environment variable that names the default folder of tables.
FOLDER_VARIABLE = "NKCME_TABLES"

#: The file in a folder that names the targets of its tables.
TARGETS = "tables.json"

#: The column that numbers the folds.
FOLD = "fold"

_EXTENSIONS = (".csv", ".csv.gz")
_SHUFFLE_SEED = 0


@dataclass(frozen=True)
class TableFile:
    """A CSV file and the column to predict."""

    name: str
    path: Path
    target: str

    def digest(self) -> str:
        """A hash of the text of the file, whether it is compressed or not."""
        opener: Any = gzip.open if self.path.name.endswith(".gz") else open
        try:
            with opener(self.path, "rb") as handle:
                return hashlib.sha256(handle.read()).hexdigest()[:16]
        except (OSError, EOFError) as error:
            raise TableError(f"{self.path} cannot be read: {error}; check the file") from error


@dataclass(frozen=True)
class FoldedTable:
    """The features, the target and the folds of a table; ``fold_of_row`` counts from 0."""

    X: pd.DataFrame
    y: np.ndarray
    fold_of_row: np.ndarray

    @property
    def n_folds(self) -> int:
        """The number of folds."""
        return int(self.fold_of_row.max()) + 1

    def fold(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The training rows and the test rows of fold k."""
        return np.flatnonzero(self.fold_of_row != k), np.flatnonzero(self.fold_of_row == k)

    def part(self, k: int, most_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The same with at most ``most_rows`` training rows, chosen by a fixed seed."""
        train, test = self.fold(k)
        if len(train) > most_rows:
            train = np.sort(np.random.default_rng(0).permutation(train)[:most_rows])
        return train, test


# --- which files ------------------------------------------------------------------------------


def find_tables(
    place: Path | None, *, names: Sequence[str] = (), target: str | None = None
) -> list[TableFile]:
    """The tables of a file or folder, by default the folder that ``NKCME_TABLES`` names.

    ``names`` chooses some of a folder. ``target`` replaces the targets of tables.json.
    """
    place = place or _default_folder()
    paths = _named_paths(place)
    if unknown := [name for name in names if name not in paths]:
        raise NkcmeError(f"{place} has no table {unknown[0]!r}; choose from {', '.join(paths)}")
    targets = {} if target else _targets(place if place.is_dir() else place.parent)
    files = []
    for name in names or paths:
        if not (column := target or targets.get(name)):
            raise NkcmeError(
                f"the target of {paths[name]} is not known; name its column with --target, or in "
                f"{TARGETS} beside it"
            )
        files.append(TableFile(name, paths[name], column))
    return files


def _default_folder() -> Path:
    given = os.environ.get(FOLDER_VARIABLE)
    if not given:
        raise NkcmeError(
            f"no tables given; name a CSV file or a folder of them, or set {FOLDER_VARIABLE}"
        )
    return Path(given)


def _named_paths(place: Path) -> dict[str, Path]:
    """The CSV files of a folder, or the one file, by their names without extension."""
    candidates = sorted(place.iterdir()) if place.is_dir() else [place]
    paths: dict[str, Path] = {}
    for path in candidates:
        if not path.name.endswith(_EXTENSIONS):
            continue
        name = path.name.removesuffix(".gz").removesuffix(".csv")
        if name in paths:
            raise NkcmeError(f"{paths[name]} and {path} have the same name; remove one of them")
        paths[name] = path
    if not paths or not all(path.exists() for path in paths.values()):
        raise NkcmeError(f"{place} is no CSV file (.csv, .csv.gz) and no folder with one")
    return paths


def _targets(folder: Path) -> dict[str, str]:
    """The targets by table of a folder's tables.json; empty where there is none."""
    path = folder / TARGETS
    if not path.exists():
        return {}
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
        return {name: str(about["target"]) for name, about in tables.items()}
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise NkcmeError(
            f'{path} must be JSON that maps each table to {{"target": COLUMN}}; correct it'
        ) from error


# --- their rows -------------------------------------------------------------------------------


def load_table(file: TableFile, n_shuffled: int) -> FoldedTable:
    """The table of a file; without a column of folds it is split into ``n_shuffled`` folds."""
    # Imports pandas, which experiments without files do not need.
    from nkcme.tables.files import read_table
    from nkcme.tables.target_column import split_target

    frame = read_table(file.path)
    if FOLD in frame.columns and file.target != FOLD:
        folds = _numbered_folds(file.path, frame.pop(FOLD))
    else:
        folds = _shuffled_folds(file.path, len(frame), n_shuffled)
    X, y = split_target(frame, file.target)
    return FoldedTable(X, y, folds)


def _numbered_folds(path: Path, column: pd.Series) -> np.ndarray:
    values = column.to_numpy()
    found = np.unique(values) if values.dtype.kind in "iu" else np.empty(0)
    if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise TableError(
            f"{path}: the column {FOLD!r} must number two or more folds 0, 1, 2, ... without gaps; "
            "correct it, or remove it to have the rows shuffled"
        )
    return values.astype(np.int64)


def _shuffled_folds(path: Path, n_rows: int, n_folds: int) -> np.ndarray:
    if n_rows < n_folds:
        raise TableError(f"{path} has {n_rows} rows, too few for {n_folds} folds; choose fewer")
    return np.random.default_rng(_SHUFFLE_SEED).permutation(n_rows) % n_folds
