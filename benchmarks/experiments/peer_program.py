"""The program that runs in the environment of a peer: fits once, predicts once, writes a file.

    python peer_program.py PEER SETTINGS INPUT.npz OUTPUT.npz

It imports NumPy and the peer; this library is not installed there. SETTINGS is JSON:
``parameters`` of the estimator, ``seed``, the ``levels`` of the quantiles (a peer that samples
makes as many draws), and ``categories``, the columns that hold codes of categories. The input holds
``X``, ``y`` and ``X_test``; the output ``values`` (n_levels, n_rows), ``mean`` (n_rows,),
``fit_seconds``, ``predict_seconds``, ``versions``, and ``scale`` (n_rows,) where the prediction is
a normal distribution.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from statistics import NormalDist
from typing import Any, NamedTuple, Protocol

import numpy as np

#: A column with more categories keeps its codes where others become one column per category.
_MAX_ONE_HOT = 50

#: The mean of a distribution that is given by a few quantiles is that of this number of
#: interpolated ones.
_N_MEAN = 1000


class _Found(NamedTuple):
    """Quantiles or draws (n_levels, n_rows), the mean, and the scale of a normal distribution."""

    values: np.ndarray
    mean: np.ndarray
    scale: np.ndarray | None = None


class _Model(Protocol):
    """A peer, made before the clock starts, since imports are slow.

    ``native`` is true where a peer takes missing values and codes of categories as they are.
    """

    native: bool

    def __init__(self, parameters: dict[str, Any], seed: int, categories: list[int]): ...

    def fit(self, X: np.ndarray, y: np.ndarray) -> object: ...

    def predict(self, X: np.ndarray, levels: np.ndarray) -> _Found: ...


class _NGBoost:
    """A normal distribution."""

    native = False

    def __init__(self, parameters: dict[str, Any], seed: int, categories: list[int]):
        from ngboost import NGBRegressor

        self._model = NGBRegressor(**parameters, random_state=seed, verbose=False)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self._model.fit(X, y)

    def predict(self, X: np.ndarray, levels: np.ndarray) -> _Found:
        best = self._model.best_val_loss_itr  # None without early stopping: all trees
        predicted = self._model.pred_dist(X, max_iter=best).params
        z = np.array([NormalDist().inv_cdf(level) for level in levels])
        loc, scale = predicted["loc"], predicted["scale"]
        return _Found(loc + scale * z[:, None], loc, scale)


class _QuantileForest:
    """Quantiles and mean of the training y in the leaves."""

    native = False

    def __init__(self, parameters: dict[str, Any], seed: int, categories: list[int]):
        from quantile_forest import RandomForestQuantileRegressor

        self._model = RandomForestQuantileRegressor(**parameters, random_state=seed)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self._model.fit(X, y)

    def predict(self, X: np.ndarray, levels: np.ndarray) -> _Found:
        values = self._model.predict(X, quantiles=levels.tolist()).T
        return _Found(values, self._model.predict(X, quantiles="mean"))


class _Treeffuser:
    """Independent draws and their mean, which is also what its own `predict` returns."""

    native = False

    def __init__(self, parameters: dict[str, Any], seed: int, categories: list[int]):
        from treeffuser import Treeffuser

        self._model = Treeffuser(**parameters, seed=seed)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self._model.fit(X, y)

    def predict(self, X: np.ndarray, levels: np.ndarray) -> _Found:
        # Without a seed: with one, its sampler repeats the same noise every ten draws.
        draws = np.sort(self._model.sample(X, len(levels)), axis=0)
        return _Found(draws, draws.mean(axis=0))


class _CatBoost:
    """Quantile regressions of some levels by one model, interpolated."""

    native = True

    def __init__(self, parameters: dict[str, Any], seed: int, categories: list[int]):
        from catboost import CatBoostRegressor

        self._fitted = parameters.pop("levels")
        self._categories = categories
        self._model = CatBoostRegressor(
            **parameters,
            loss_function=f"MultiQuantile:alpha={','.join(map(str, self._fitted))}",
            cat_features=categories,
            random_seed=seed,
            thread_count=1,
            allow_writing_files=False,
            verbose=False,
        )

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self._model.fit(self._table(X), y)

    def predict(self, X: np.ndarray, levels: np.ndarray) -> _Found:
        return _interpolated(self._model.predict(self._table(X)).T, self._fitted, levels)

    def _table(self, X: np.ndarray) -> np.ndarray:
        """It takes whole numbers as categories, and no others."""
        if not self._categories:
            return X
        table = X.astype(object)
        table[:, self._categories] = X[:, self._categories].astype(int)
        return table


class _LightGBM:
    """Quantile regressions of some levels, one model after the other, interpolated."""

    native = True

    def __init__(self, parameters: dict[str, Any], seed: int, categories: list[int]):
        import lightgbm

        self._lightgbm = lightgbm
        self._fitted = parameters.pop("levels")
        self._categories = categories
        self._parameters = parameters | {
            "objective": "quantile", "seed": seed, "num_threads": 1, "verbosity": -1,
        }  # fmt: skip

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        data = self._lightgbm.Dataset(
            X, y, categorical_feature=self._categories, free_raw_data=False
        )
        self._models = [
            self._lightgbm.train(self._parameters | {"alpha": level}, data)
            for level in self._fitted
        ]

    def predict(self, X: np.ndarray, levels: np.ndarray) -> _Found:
        values = np.stack([model.predict(X, num_threads=1) for model in self._models])
        return _interpolated(values, self._fitted, levels)


_PEERS: dict[str, type[_Model]] = {
    "ngboost": _NGBoost,
    "quantile-forest": _QuantileForest,
    "treeffuser": _Treeffuser,
    "catboost": _CatBoost,
    "lightgbm": _LightGBM,
}


# --- quantiles --------------------------------------------------------------------------------


def _interpolated(values: np.ndarray, fitted: list[float], levels: np.ndarray) -> _Found:
    """Quantiles at any levels, and the mean, from ``values`` (n_fitted, n_rows) at a few levels.

    Quantiles that cross are sorted, and those beyond the outermost levels are equal to these.
    """
    ordered = np.sort(values, axis=0)
    even = (np.arange(_N_MEAN) + 0.5) / _N_MEAN
    return _Found(_weights(fitted, levels) @ ordered, _weights(fitted, even).mean(axis=0) @ ordered)


def _weights(fitted: list[float], levels: np.ndarray) -> np.ndarray:
    """The weights (n_levels, n_fitted) of linear interpolation."""
    return np.stack([np.interp(levels, fitted, unit) for unit in np.eye(len(fitted))], axis=1)


# --- tables -----------------------------------------------------------------------------------


def _plain(X: np.ndarray, X_test: np.ndarray, categories: list[int]) -> list[np.ndarray]:
    """Both tables with one column per category, and medians in place of missing numbers."""
    encoded: list[list[np.ndarray]] = [[], []]
    for k in range(X.shape[1]):
        column, known = X[:, k], np.unique(X[:, k])
        one_hot = k in categories and len(known) <= _MAX_ONE_HOT
        present = column[~np.isnan(column)]
        median = np.median(present) if len(present) else 0.0
        for table, parts in zip((X, X_test), encoded, strict=True):
            values = table[:, [k]]
            parts.append(values == known if one_hot else np.where(np.isnan(values), median, values))
    return [np.hstack(parts).astype(np.float64) for parts in encoded]


# --- the program ------------------------------------------------------------------------------


def main(name: str, settings_text: str, input_path: str, output_path: str) -> None:
    """Fit a peer to the input's training rows, predict its test rows, and write the output."""
    settings = json.loads(settings_text)
    with np.load(input_path) as given:
        X, y, X_test = given["X"], given["y"], given["X_test"]
    model = _PEERS[name](settings["parameters"], settings["seed"], settings["categories"])
    if not model.native:
        X, X_test = _plain(X, X_test, settings["categories"])
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    found = model.predict(X_test, np.array(settings["levels"]))
    predicted = time.perf_counter()
    output: dict[str, Any] = {
        "values": found.values,
        "mean": found.mean,
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
        "versions": json.dumps(_versions(name, "scikit-learn", "numpy")),
    }
    if found.scale is not None:
        output["scale"] = found.scale
    np.savez(output_path, **output)


def _versions(*packages: str) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
