"""The program that runs in the environment of a peer: fits once, predicts once, writes a file.

    python peer_program.py PEER SETTINGS INPUT.npz OUTPUT.npz

It imports NumPy and the peer; this library is not installed there. SETTINGS is JSON:
``parameters`` of the estimator, ``seed``, and the number of quantiles or draws, ``n_draws``. The
input holds ``X``, ``y`` and ``X_test``; the output ``values`` (n_draws, n_rows), ``mean``
(n_rows,), ``fit_seconds``, ``predict_seconds`` and ``versions``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np


def _levels(n: int) -> np.ndarray:
    """(i + 1/2) / n: the n points that represent a distribution best are its quantiles there."""
    return (np.arange(n) + 0.5) / n


# --- NGBoost ----------------------------------------------------------------------------------


def _make_ngboost(parameters: dict[str, Any], seed: int) -> Any:
    from ngboost import NGBRegressor

    return NGBRegressor(**parameters, random_state=seed, verbose=False)


def _predict_ngboost(model: Any, X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles and mean of the predicted normal distribution."""
    predicted = model.pred_dist(X).params
    z = np.array([NormalDist().inv_cdf(level) for level in _levels(n)])
    return predicted["loc"] + predicted["scale"] * z[:, None], predicted["loc"]


# --- quantile-forest --------------------------------------------------------------------------


def _make_quantile_forest(parameters: dict[str, Any], seed: int) -> Any:
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(**parameters, random_state=seed)


def _predict_quantile_forest(model: Any, X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles and mean of the training y in the leaves."""
    return model.predict(X, quantiles=_levels(n).tolist()).T, model.predict(X, quantiles="mean")


# --- Treeffuser -------------------------------------------------------------------------------


def _make_treeffuser(parameters: dict[str, Any], seed: int) -> Any:
    from treeffuser import Treeffuser

    return Treeffuser(**parameters, seed=seed)


def _predict_treeffuser(model: Any, X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent draws and their mean, which is also what its own `predict` returns.

    Without a seed: with one, its sampler repeats the same noise every ten draws.
    """
    draws = np.sort(model.sample(X, n), axis=0)
    return draws, draws.mean(axis=0)


# --- the program ------------------------------------------------------------------------------


class _Peer(NamedTuple):
    """How a peer's estimator is made, and how it predicts."""

    make: Callable[[dict[str, Any], int], Any]
    predict: Callable[[Any, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


_PEERS = {
    "ngboost": _Peer(_make_ngboost, _predict_ngboost),
    "quantile-forest": _Peer(_make_quantile_forest, _predict_quantile_forest),
    "treeffuser": _Peer(_make_treeffuser, _predict_treeffuser),
}


def main(name: str, settings_text: str, input_path: str, output_path: str) -> None:
    """Fit a peer to the input's training rows, predict its test rows, and write the output."""
    settings = json.loads(settings_text)
    with np.load(input_path) as given:
        X, y, X_test = given["X"], given["y"], given["X_test"]
    peer = _PEERS[name]
    model = peer.make(settings["parameters"], settings["seed"])
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    values, mean = peer.predict(model, X_test, settings["n_draws"])
    predicted = time.perf_counter()
    versions = {package: version(package) for package in (name, "scikit-learn", "numpy")}
    np.savez(
        output_path,
        values=values,
        mean=mean,
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        versions=json.dumps(versions),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
