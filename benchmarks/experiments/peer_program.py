"""The program that a peer's own environment runs: fit once, predict once, write down the answer.

    python peer_program.py PEER SETTINGS QUESTION.npz ANSWER.npz

It knows NumPy and the peer, and nothing of this library, which is not installed there. SETTINGS is
JSON: ``parameters`` of the estimator, ``seed``, and how many quantiles or draws, ``n_draws``. The
question is ``X``, ``y`` and ``X_test``; the answer ``values`` (n_draws, n_rows), ``mean``
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
    """(i + 1/2) / n: the best n points to stand for a distribution are its quantiles there."""
    return (np.arange(n) + 0.5) / n


# --- NGBoost ----------------------------------------------------------------------------------


def _make_ngboost(parameters: dict[str, Any], seed: int) -> Any:
    from ngboost import NGBRegressor

    return NGBRegressor(**parameters, random_state=seed, verbose=False)


def _ask_ngboost(model: Any, X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the normal distribution that it predicts, and its mean."""
    predicted = model.pred_dist(X).params
    z = np.array([NormalDist().inv_cdf(level) for level in _levels(n)])
    return predicted["loc"] + predicted["scale"] * z[:, None], predicted["loc"]


# --- quantile-forest --------------------------------------------------------------------------


def _make_quantile_forest(parameters: dict[str, Any], seed: int) -> Any:
    from quantile_forest import RandomForestQuantileRegressor

    return RandomForestQuantileRegressor(**parameters, random_state=seed)


def _ask_quantile_forest(model: Any, X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    return model.predict(X, quantiles=_levels(n).tolist()).T, model.predict(X, quantiles="mean")


# --- Treeffuser -------------------------------------------------------------------------------


def _make_treeffuser(parameters: dict[str, Any], seed: int) -> Any:
    from treeffuser import Treeffuser

    return Treeffuser(**parameters, seed=seed)


def _ask_treeffuser(model: Any, X: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent draws and their mean, as its own `predict` has it.

    Without a seed: given one, its sampler starts every ten draws from the same noise again.
    """
    draws = np.sort(model.sample(X, n), axis=0)
    return draws, draws.mean(axis=0)


# --- the program ------------------------------------------------------------------------------


class _Peer(NamedTuple):
    make: Callable[[dict[str, Any], int], Any]
    ask: Callable[[Any, np.ndarray, int], tuple[np.ndarray, np.ndarray]]


_PEERS = {
    "ngboost": _Peer(_make_ngboost, _ask_ngboost),
    "quantile-forest": _Peer(_make_quantile_forest, _ask_quantile_forest),
    "treeffuser": _Peer(_make_treeffuser, _ask_treeffuser),
}


def main(name: str, settings_text: str, question_path: str, answer_path: str) -> None:
    settings = json.loads(settings_text)
    with np.load(question_path) as question:
        X, y, X_test = question["X"], question["y"], question["X_test"]
    peer = _PEERS[name]
    model = peer.make(settings["parameters"], settings["seed"])
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    values, mean = peer.ask(model, X_test, settings["n_draws"])
    predicted = time.perf_counter()
    versions = {package: version(package) for package in (name, "scikit-learn", "numpy")}
    np.savez(
        answer_path,
        values=values,
        mean=mean,
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        versions=json.dumps(versions),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
