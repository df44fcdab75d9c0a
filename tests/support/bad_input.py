"""A small table, and a check of predictions that holds for every model.

Most tables have 40 rows and encode to 2 columns, so that few programs are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

N = 40


def make_table() -> tuple[np.ndarray, np.ndarray]:
    """X of shape (40, 2), and y."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=N)


X, Y = make_table()


def with_one(values: np.ndarray, bad: float) -> np.ndarray:
    """A copy with one value replaced, in row 3."""
    values = values.copy()
    values[3] = bad
    return values


def check_sane(model: Any, table: Any = X, shape: tuple[int, ...] = (N,)) -> np.ndarray:
    """Predictions are finite, of the right shape and in order; returns the mean."""
    mean = model.predict(table)
    assert mean.shape == shape
    assert np.isfinite(mean).all()
    variance = model.predict_var(table)
    assert variance.shape == shape
    assert (variance >= 0).all()
    quantiles = model.predict_quantiles(table, [0.05, 0.5, 0.95])
    assert quantiles.shape == (len(mean), 3)
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert np.isfinite(model.sample(table, 2, random_state=0)).all()
    return mean
