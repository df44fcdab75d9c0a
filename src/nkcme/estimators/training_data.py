"""A training table as estimators see it: encoded, distinct rows, with units and a seed."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from nkcme.distributions.support import EVERYTHING, Support
from nkcme.distributions.transforms import LOG, NONE, restored, transformed
from nkcme.errors import NkcmeError, TableError
from nkcme.tables.columns import Table
from nkcme.tables.encoding import ColumnTypes, TableEncoder
from nkcme.tables.row_groups import RowGroups, row_groups
from nkcme.tables.sample_weights import (
    are_whole,
    checked_weight,
    need_enough_rows,
    repetitions,
)
from nkcme.tables.table_summary import TableSummary
from nkcme.tables.target import TargetScaler, as_target


class Target(NamedTuple):
    """What is known of y of one output, and what of it is modelled."""

    support: Support = EVERYTHING  # the values that y can take, in its own units
    transform: str = NONE  # "log" where log y is standardised and modelled


class Encoded(NamedTuple):
    """Standardised, finite, two-dimensional float32 arrays.

    The rows are distinct, of positive weight, and sorted, but for tables that are too large for
    cross-fitting. The fit therefore depends neither on the order of the table nor on whether a row
    has weight two or occurs twice.
    """

    x: np.ndarray  # (n, p)
    y: np.ndarray  # (n, d)
    weight: np.ndarray  # (n,)
    x_validation: np.ndarray | None
    y_validation: np.ndarray | None
    n_rows: int  # of the table, repetitions counted; rules that depend on its size use this
    seed: int
    scaler: TargetScaler  # the units of y, or of its transform
    target: Target = Target()
    groups: RowGroups | None = None  # rows that are held out together

    @property
    def by_time(self) -> bool:
        """Whether new rows are later than these."""
        return self.groups is not None and self.groups.by_time

    @property
    def support(self) -> Support:
        """The values that y can take, in its own units."""
        return self.target.support

    @property
    def exact_y(self) -> np.ndarray:
        """The y (n,) of one output in its own units, without the rounding to float32 where the
        support says what it was."""
        g = self.scaler.inverse(self.y)[:, 0]
        # Single precision is relative to the distance from the location, double to y itself: far
        # from zero a share of y would be more than the distance between its values.
        location, scale = self.scaler.location[0], self.scaler.scale[0]
        rounding = 1e-6 * (scale + np.abs(g - location)) + 1e-15 * np.abs(g)
        y = restored(g, self.target.transform)
        # An error of a logarithm is a relative one of y.
        rounding = rounding if self.target.transform == NONE else rounding * y
        return self.support.snapped(y, rounding)

    def rows(self, chosen: np.ndarray) -> Encoded:
        """Some of the rows, as a table of their own."""
        share = self.weight[chosen].sum() / self.weight.sum()
        return self._replace(
            x=self.x[chosen],
            y=self.y[chosen],
            weight=self.weight[chosen],
            groups=None if self.groups is None else self.groups.rows(chosen),
            n_rows=max(round(self.n_rows * share), 1),
        )

    def with_copies(self, most_rows: int) -> Encoded:
        """The table with repeated rows as rows of their own, which folds can tell apart.

        A new row can be a copy of an old one as well. Predicted out-of-fold without all of its
        copies, a row would seem harder than new rows are. Weights that are not whole count no
        copies. In large tables one row stands for several copies, so that about ``most_rows`` rows
        suffice.
        """
        if not are_whole(self.weight):
            return self
        copies_per_row = max(1.0, self.n_rows / most_rows)
        n_rows = np.ceil(self.weight / copies_per_row).astype(int)
        each = np.repeat(np.arange(len(self.x)), n_rows)
        weight = (self.weight / n_rows)[each]
        groups = None if self.groups is None else self.groups.rows(each)
        return self._replace(x=self.x[each], y=self.y[each], weight=weight, groups=groups)

    def digest(self) -> str:
        """A hash of the data and the seed, which identifies the run of a checkpoint."""
        sha = hashlib.sha256(f"{self.n_rows} {self.seed}".encode())
        rows = (self.x, self.y, self.weight, None if self.groups is None else self.groups.codes)
        for array in (*rows, self.x_validation, self.y_validation):
            sha.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()


class TrainingTable(NamedTuple):
    """An encoded training table, and what a fitted estimator keeps of the original.

    ``attributes`` are the learned attributes that describe the table. They are set only once
    training has succeeded.
    """

    data: Encoded
    attributes: dict[str, Any]


def encode_training(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    X_val: Any,
    y_val: Any,
    *,
    standardize: bool | str,
    random_state: Any,
    types: ColumnTypes | None = None,
    groups: Any = None,
    times: Any = None,
    distinct: bool = True,
) -> TrainingTable:
    """Check and encode a training table; ``estimator`` itself is not changed.

    Unless its rows are to be ``distinct`` they stay in their order, and repeated.

    ``types`` are those of some columns, instead of what is found. Rows of one of ``groups``, or of
    neighbouring ``times``, are held out together.
    An estimator that has ``_understand_target(x, y, weight, seed, groups)`` says by it what
    y (n, d) is, beside encoded inputs (n, p); see `Target`.
    """
    probe = copy.copy(estimator)  # scikit-learn's checks set attributes on it
    target = as_target(y)
    X = checked_table(probe, X, reset=True)
    n = len(X)
    if len(target) != n:
        raise TableError(f"X has {n} rows and y has {len(target)}: they must have the same")
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, target, dtype=np.float64)
    weight = checked_weight(sample_weight, n)
    n_rows = repetitions(weight)
    need_enough_rows(n_rows)
    columns = target.reshape(n, -1)
    together = row_groups(groups, times, n)
    encoder = TableEncoder.fit(X, standardize=standardize, sample_weight=weight, types=types)
    x, seed = encoder.transform(X), int(check_random_state(random_state).randint(2**31 - 1))
    understand = getattr(estimator, "_understand_target", None)
    about = Target() if understand is None else understand(x, columns, weight, seed, together)
    modelled = transformed(columns, about.transform)
    scaler = TargetScaler.fit(
        modelled,
        standardize=bool(standardize),
        sample_weight=weight,
        logarithmic=about.transform == LOG,
    )
    attributes = {
        "y_ndim_": target.ndim,
        "n_outputs_": columns.shape[1],
        "encoder_": encoder,
        "columns_": TableSummary.of(X, encoder, columns, types),
        "scaler_": scaler,
        "n_features_in_": probe.n_features_in_,
    }
    if hasattr(probe, "feature_names_in_"):
        attributes["feature_names_in_"] = probe.feature_names_in_
    z = scaler.transform(modelled)
    if distinct:
        x, z, weight, together = distinct_rows(x, z, weight, together)
    data = Encoded(
        x,
        z,
        weight,
        *_encode_validation(probe, X_val, y_val, encoder, scaler, about.transform),
        n_rows,
        seed,
        scaler,
        about,
        together,
    )
    return TrainingTable(data, attributes)


def _encode_validation(
    estimator: BaseEstimator,
    X_val: Any,
    y_val: Any,
    encoder: TableEncoder,
    scaler: TargetScaler,
    transform: str,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if (X_val is None) != (y_val is None):
        raise NkcmeError("give X_val and y_val together, or neither")
    if X_val is None:
        return None, None
    y = as_target(y_val)
    y = y.reshape(len(y), -1)
    x = encoder.transform(checked_table(estimator, X_val, reset=False))
    if len(y) != len(x):
        raise TableError(f"X_val has {len(x)} rows and y_val {len(y)}: they must have the same")
    n_outputs = len(scaler.location)
    if y.shape[1] != n_outputs:
        raise TableError(
            f"y has {n_outputs} outputs and y_val {y.shape[1]}: they must have the same"
        )
    if transform == LOG:
        need_positive(y, "y_val")
    return x, scaler.transform(transformed(y, transform))


def need_positive(y: np.ndarray, name: str, weight: np.ndarray | None = None) -> None:
    """Raises where y has rows, of positive weight, that have no logarithm."""
    counts = np.ones(len(y), bool) if weight is None else weight > 0
    bad = np.flatnonzero(counts & ~(y > 0).all(axis=1))
    if len(bad):
        raise TableError(
            f'transform="log" needs {name} above zero; got {len(bad)} values that are not, the '
            f"first in row {bad[0]} (counting from 0): {y[bad[0]].min():g}; correct {name}, or use "
            'transform="auto" or "none"'
        )


def checked_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """X after scikit-learn's checks, as far as they apply to tables of mixed types."""
    Table.read(X, "X")  # raises in one line where X is no table
    if hasattr(X, "columns") or hasattr(X, "__dataframe__"):
        if reset:
            validate_data(estimator, X, skip_check_array=True)
        return X  # the encoder checks names, kinds and order
    kind = np.asarray(X).dtype.kind if isinstance(X, np.ndarray | list | tuple) else ""
    dtype = None if kind and kind in "OUSM" else "numeric"
    # The encoder checks that numbers are finite or missing: it names the column and the row.
    return validate_data(estimator, X, reset=reset, dtype=dtype, ensure_all_finite=False)


def distinct_rows(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, groups: RowGroups | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, RowGroups | None]:
    """The distinct rows of (x, y), their total weights and their groups, sorted, without those of
    weight zero. Equal rows of two groups stay apart."""
    key = [] if groups is None else [groups.codes[:, None].astype(x.dtype)]
    table = np.concatenate([x, *key, y], axis=1)
    if not weight.all():
        table, weight = table[weight > 0], weight[weight > 0]
    table += 0.0  # -0 becomes 0: rows are compared by their bytes
    as_bytes = table.view(np.dtype((np.void, table.shape[1] * table.itemsize)))[:, 0]
    _, first, place = np.unique(as_bytes, return_index=True, return_inverse=True)
    table = table[first]
    total = np.bincount(place, weights=weight)
    n_in = x.shape[1]
    if groups is not None:
        groups = groups._replace(codes=table[:, n_in].astype(np.int64))
    return np.ascontiguousarray(table[:, :n_in]), table[:, n_in + len(key) :].copy(), total, groups


def need_no_validation(datasets: Sequence[Encoded]) -> None:
    """Raises where validation rows were given to an estimator that has no use for them."""
    if any(data.x_validation is not None for data in datasets):
        raise NkcmeError(
            "this estimator has no use for X_val and y_val: it chooses no state of training by "
            "held-out rows; leave them out"
        )
