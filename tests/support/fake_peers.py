"""Environments with fake peers, made without a network.

Each fake has the interface of its package, fits in no time, and predicts N(x_1, 1).
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from benchmarks.experiments import peers
from benchmarks.experiments.methods import PEERS

_NGBOOST = """
import os
from types import SimpleNamespace
import numpy as np

class NGBRegressor:
    def __init__(self, n_estimators, random_state, verbose, **early_stopping):
        assert os.environ["OMP_NUM_THREADS"] == "1"
        self.seed = random_state

    def fit(self, X, y):
        self.best_val_loss_itr = None
        if self.seed == 1 and y[0] > 1e6:
            raise ValueError("y is too large\\nfor seed 1")

    def pred_dist(self, X, max_iter):
        assert max_iter is None
        return SimpleNamespace(params={"loc": X[:, 0], "scale": np.ones(len(X))})
"""

_QUANTILE_FOREST = """
from statistics import NormalDist
import numpy as np

class RandomForestQuantileRegressor:
    def __init__(self, n_estimators, random_state):
        pass

    def fit(self, X, y):
        pass

    def predict(self, X, quantiles):
        if quantiles == "mean":
            return X[:, 0]
        return X[:, :1] + [NormalDist().inv_cdf(q) for q in quantiles]
"""

_TREEFFUSER = """
import numpy as np

class Treeffuser:
    def __init__(self, n_jobs, seed):
        assert n_jobs == 1
        self.seed = seed

    def fit(self, X, y):
        pass

    def sample(self, X, n):
        return X[:, 0] + np.random.default_rng(self.seed).normal(size=(n, len(X)))
"""

_CATBOOST = """
from statistics import NormalDist

class CatBoostRegressor:
    def __init__(self, iterations, loss_function, cat_features, thread_count, **others):
        assert iterations >= 1000 and thread_count == 1
        self.levels = [float(level) for level in loss_function.partition("=")[2].split(",")]
        self.categories = cat_features

    def fit(self, X, y):
        assert all(isinstance(value, int) for value in X[:, self.categories].flat)

    def predict(self, X):
        return X[:, :1].astype(float) + [NormalDist().inv_cdf(level) for level in self.levels]
"""

_LIGHTGBM = """
from statistics import NormalDist

def Dataset(X, y, categorical_feature, free_raw_data):
    return X

class Booster:
    def __init__(self, level):
        self.z = NormalDist().inv_cdf(level)

    def predict(self, X, num_threads):
        return X[:, 0] + self.z

def train(parameters, data):
    assert parameters["num_iterations"] >= 500 and parameters["num_threads"] == 1
    return Booster(parameters["alpha"])
"""

_MODULES = {
    "ngboost": ("ngboost", _NGBOOST),
    "quantile-forest": ("quantile_forest", _QUANTILE_FOREST),
    "treeffuser": ("treeffuser", _TREEFFUSER),
    "catboost": ("catboost", _CATBOOST),
    "lightgbm": ("lightgbm", _LIGHTGBM),
}


def make(home: Path) -> None:
    """Create an environment with a fake module for each peer."""
    for peer, (module, text) in _MODULES.items():
        place = home / peers.folder(peer)
        command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
        subprocess.run(command, check=True)
        packages = Path(
            sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)})
        )
        (packages / f"{module}.py").write_text(text)
        # NumPy and scikit-learn come from the environment that runs the tests.
        (packages / "outside.pth").write_text(sysconfig.get_path("purelib"))
        about = packages / f"{module}-9.9.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {peer}\nVersion: 9.9\n")
        (place / peers.STAMP).write_text(PEERS[peer].requirement)
