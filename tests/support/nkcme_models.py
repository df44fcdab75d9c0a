"""Small `NKCME` models and training data for their tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkcme import NKCME, presets
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.location_regressors import RegressorFits
from nkcme.estimators.training_data import Encoded
from nkcme.tables.target import TargetScaler
from support.tiny_estimators import small_recipe

SMALL = presets.QUICK | {
    "hidden": (16,),
    "n_atoms": 40,
    "epochs": 150,
    "random_state": 0,
    "batch_size": 64,
    "recipe": small_recipe(),
}


def small(**changes: Any) -> NKCME:
    """One small network, trained for long enough to learn a simple problem."""
    return NKCME(**SMALL | changes)


def quick(**changes: Any) -> NKCME:
    """The same, hardly trained."""
    return NKCME(**SMALL | {"epochs": 2} | changes)


def encoded(x: Any, y: Any, weight: np.ndarray | None = None) -> Encoded:
    """A training set as estimators see it."""
    x, y = np.asarray(x, np.float32), np.asarray(y, np.float32).reshape(len(x), -1)
    weight = np.ones(len(x)) if weight is None else weight
    scaler = TargetScaler(np.zeros(y.shape[1]), np.ones(y.shape[1]))
    return Encoded(x, y, weight, None, None, len(x), 0, scaler)


def cross_fitted(regressor: Any, data: Encoded, folds: Folds) -> tuple[Any, np.ndarray]:
    """A cross-fitted regressor and its out-of-fold predictions."""
    return RegressorFits([regressor], [data], [folds]).collect()[0][0]


def line(n: int = 600, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """y = 10 x_0 + N(0, noise^2): nearly determined by x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, 10 * x[:, 0] + noise * rng.normal(size=n)
