"""Packages of others: run in separate environments, and scored like this library's methods.

A peer is not a dependency of this library. It is installed when a benchmark first needs it, into a
virtual environment under the directory that ``NKCME_PEERS`` names, else in the user's cache.
`peer_program` runs there as a process with one thread.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import platformdirs

from benchmarks.experiments import paper, peer_program
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.methods import PEERS
from nkcme import metrics
from nkcme.errors import NkcmeError
from nkcme.evaluation import NOMINAL

#: The environment variable that names the directory of the peers' virtual environments.
HOME_VARIABLE = "NKCME_PEERS"

#: A file in each environment: the requirement that was installed. It is written last, so an
#: environment without it is incomplete.
STAMP = "installed.txt"

_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR")

#: How quantiles are computed from values. `quantiles` are those at (i + 1/2) / n. Below the k-th of
#: n `independent` draws lies a share k / (n + 1) of the predicted distribution on average, so that
#: few draws are not scored as a narrow prediction.
_RULES: dict[str, Any] = {"quantiles": "hazen", "independent": "weibull"}

#: Draws are turned into this number of quantiles before bins of equal probability are counted.
_N_QUANTILES = 1000


class FoldData(NamedTuple):
    """The training rows and the test inputs of a fold, as numbers.

    ``categories`` are the columns of X that hold codes of categories, -1 where missing.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    categories: tuple[int, ...] = ()


class Prediction(NamedTuple):
    """A peer's prediction of the test rows: ``values`` (n_draws, n_rows) and ``mean`` (n_rows,).

    ``scale`` (n_rows,) is the standard deviation of a predicted normal distribution, which has the
    mean ``mean``; None where a peer predicts no density.
    """

    values: np.ndarray
    mean: np.ndarray
    fit_seconds: float
    predict_seconds: float
    versions: dict[str, str]
    scale: np.ndarray | None = None

    def provenance(self) -> dict[str, Any]:
        """The seconds and versions of a row."""
        return {
            "seconds": {
                "fit_all": self.fit_seconds,
                "fitted_together": 1,
                "predict": self.predict_seconds,
            },
            "peer": self.versions,
        }


def perform_fold(cell: Cell, data: FoldData, y_test: np.ndarray, seed: int) -> dict[str, Any]:
    """Fit a cell's peer, predict and score one fold: the run's share of its row."""
    prediction = predict(cell, data, even_levels(cell.protocol["n_draws"]), seed)
    return {**score(cell, prediction, y_test), **prediction.provenance()}


def even_levels(n: int) -> np.ndarray:
    """(i + 1/2) / n: the n points that represent a distribution best are its quantiles there."""
    return (np.arange(n) + 0.5) / n


def score(cell: Cell, prediction: Prediction, y: np.ndarray) -> dict[str, Any]:
    """The scores of this library's methods; the CRPS of draws is the unbiased estimate."""
    sampling = cell.protocol["draws"]
    values, rule = prediction.values, _RULES[sampling]
    quantiles = values
    if sampling == "independent":
        quantiles = np.quantile(values, even_levels(_N_QUANTILES), axis=0, method=rule)
    bins = metrics.decile_counts(y, quantiles)
    interval = np.quantile(values, [(1 - NOMINAL) / 2, (1 + NOMINAL) / 2], axis=0, method=rule).T
    crps = metrics.crps_ensemble(y, values, fair=sampling == "independent")
    return {
        "metrics": {
            "qice_percent": 100 * metrics.qice_from_counts(bins),
            "rmse": paper.rmse_scale(cell.dataset) * metrics.rmse(y, prediction.mean),
            "crps": float(crps.mean()),
            "coverage": metrics.coverage(y, interval),
            "width": metrics.interval_width(interval),
        },
        "bins": bins.tolist(),
    }


def predict(cell: Cell, data: FoldData, levels: np.ndarray, seed: int) -> Prediction:
    """Fit a cell's peer in its environment, and predict the test rows.

    The values are quantiles at ``levels``; a peer that samples makes as many draws.
    """
    python = environment(cell.method)
    settings = {
        "parameters": cell.parameters,
        "seed": seed,
        "levels": levels.tolist(),
        "categories": data.categories,
    }
    with tempfile.TemporaryDirectory(prefix="nkcme-peer-") as scratch:
        given, found = Path(scratch, "input.npz"), Path(scratch, "output.npz")
        np.savez(given, X=data.X, y=data.y, X_test=data.X_test)
        _run(
            # Isolated (-I): neither this library nor PYTHONPATH is visible there.
            [python, "-I", peer_program.__file__, cell.method, json.dumps(settings), given, found],
            failure=f"{cell.method} failed",
        )
        with np.load(found) as output:
            return Prediction(
                output["values"],
                output["mean"],
                float(output["fit_seconds"]),
                float(output["predict_seconds"]),
                json.loads(str(output["versions"])),
                output.get("scale"),
            )


# --- environments -----------------------------------------------------------------------------


def environment(peer: str) -> Path:
    """The Python of a peer's environment, which is created if it does not exist."""
    python = _environment(peer, _home())
    if isinstance(python, NkcmeError):
        raise python
    return python


def folder(peer: str) -> str:
    """The name of a peer's environment; it contains the version of Python that it is for."""
    return f"{peer}-{sys.implementation.cache_tag}"


def _home() -> Path:
    """The directory of all environments."""
    given = os.environ.get(HOME_VARIABLE)
    return Path(given) if given else Path(platformdirs.user_cache_dir("nkcme")) / "peers"


@cache
def _environment(peer: str, home: Path) -> Path | NkcmeError:
    """The Python of an environment, or the error: cached, so a failure is not retried per fold."""
    requirement = PEERS[peer].requirement
    place = home / folder(peer)
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = place / STAMP
    if stamp.exists() and stamp.read_text(encoding="utf-8") == requirement and python.exists():
        return python
    try:  # isolated (-I), because peers run isolated: PYTHONPATH must not satisfy a requirement
        _run(
            [sys.executable, "-I", "-m", "venv", "--clear", place],
            failure=f"cannot create an environment for {peer}",
            advice=f"set {HOME_VARIABLE} to another directory",
        )
        _run(
            [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             requirement],
            failure=f"{requirement} cannot be installed",
            advice="pip needs a package index; run without --peers where there is none",
        )  # fmt: skip
        stamp.write_text(requirement, encoding="utf-8")
    except (NkcmeError, KeyboardInterrupt) as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, NkcmeError):
            return error
        raise
    return python


def _run(command: list[Any], failure: str, advice: str = "") -> None:
    """Run a program on one thread; if it fails, its last line of output becomes the error."""
    one_thread = {f"{name}_NUM_THREADS": "1" for name in _THREADS}
    done = subprocess.run(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ | one_thread,
    )
    if done.returncode:
        output = done.stderr.strip() or done.stdout  # venv reports a missing pip on stdout
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")]  # pip warns after errors
        reasons = errors or lines or [f"exit status {done.returncode} without output"]
        raise NkcmeError(f"{failure}: {reasons[-1]}{advice and f'; {advice}'}")
