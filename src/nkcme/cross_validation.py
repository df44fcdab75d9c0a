"""Out-of-fold predictions: the distribution of each row by a model that was not fitted to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from nkcme.distributions.joined import JoinedDistribution
from nkcme.errors import NkcmeError, TableError
from nkcme.evaluation import as_table, native, need_distributions
from nkcme.tables.target import as_target


def cross_val_predict_dist(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    groups: Any = None,
    params: Mapping[str, Any] | None = None,
) -> JoinedDistribution:
    """Predict the distribution of each row of a table by a model fitted to the other folds.

    The counterpart of scikit-learn's ``cross_val_predict``. Clones of the model are fitted.

    Parameters
    ----------
    model : estimator or DistributionPipeline
        With ``fit`` and ``predict_dist``; it need not be fitted and does not change.
    X : table
        An array, or a pandas or polars frame.
    y : array_like of shape (n_rows,) or (n_rows, d)
        The observed values.
    cv : int, splitter, iterable of (train, test) or None
        The folds, as in scikit-learn: a number of folds without shuffling, 5 if None. The folds
        must be a partition: each row is in the test rows of exactly one.
    groups : array_like of shape (n_rows,) or None
        For splitters of groups, such as ``GroupKFold``.
    params : dict or None
        More arguments of ``fit``. Those with one value per row, such as ``sample_weight``, are
        split like the rows.

    Returns
    -------
    JoinedDistribution
        A `Distribution` with the rows in the order of X.

    Raises
    ------
    NkcmeError
        If the model predicts no distributions, or if the folds are no partition.
    TableError
        If ``X`` is no table, or if ``y`` does not fit to it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nkcme import KernelCME, cross_val_predict_dist
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> dist = cross_val_predict_dist(KernelCME(random_state=0), X[:100], y[:100], cv=4)
    >>> dist.crps(y[:100]).shape
    (100,)
    """
    need_distributions(model)
    table, target = as_table(X), as_target(y)
    n_rows = len(table)
    if len(target) != n_rows:
        raise TableError(f"X has {n_rows} rows and y has {len(target)}: they must have the same")
    splits = list(check_cv(cv).split(np.zeros((n_rows, 1)), target, groups))
    _need_partition([test for _, test in splits], n_rows)
    parts = []
    for train, test in splits:
        fitted = clone(model).fit(
            native(table[train]), target[train], **_of_rows(params, train, n_rows)
        )
        parts.append(fitted.predict_dist(native(table[test])))
    return JoinedDistribution(parts, [test for _, test in splits])


def _need_partition(tests: list[np.ndarray], n_rows: int) -> None:
    """Raise unless each row is in exactly one of the sets of test rows."""
    counts = np.bincount(np.concatenate(tests), minlength=n_rows) if tests else np.zeros(n_rows)
    if np.any(counts != 1):
        never, often = int(np.sum(counts == 0)), int(np.sum(counts > 1))
        raise NkcmeError(
            f"cross_val_predict_dist needs folds in which each row is tested once; here {never} "
            f"rows are never tested and {often} several times: use a splitter such as KFold or "
            "GroupKFold"
        )


def _of_rows(params: Mapping[str, Any] | None, rows: np.ndarray, n_rows: int) -> dict[str, Any]:
    """The arguments of ``fit`` for these rows; one that has no value per row stays as it is."""
    return {
        name: np.asarray(value)[rows] if np.shape(value)[:1] == (n_rows,) else value
        for name, value in (params or {}).items()
    }
