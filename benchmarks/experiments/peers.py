"""What people use instead, asked in environments of their own and scored as ours are.

A peer is no dependency of this library. It is installed when a benchmark first needs it, into a
virtual environment under the directory that ``NKCME_PEERS`` names, else in the user's cache, and is
run there by `peer_program` as a process of one thread.
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

from benchmarks.experiments import peer_program, specs
from benchmarks.experiments.specs import Cell
from nkcme import metrics
from nkcme.errors import NkcmeError
from nkcme.evaluation import NOMINAL

#: The environment: a directory for the peers' virtual environments.
HOME_VARIABLE = "NKCME_PEERS"

#: In an environment: the requirement that was installed. It is written last, so that an environment
#: without it was never finished.
STAMP = "installed.txt"

_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR")

#: How quantiles are read off values: `quantiles` are those of the mid-levels (i + 1/2) / n
#: themselves; the k-th of n `independent` draws has a share k / (n + 1) of the predicted
#: distribution below it on average, so that few draws do not pass for a narrow prediction.
_RULES: dict[str, Any] = {"quantiles": "hazen", "independent": "weibull"}

#: Draws are turned into so many quantiles where bins of equal probability are counted.
_N_QUANTILES = 1000


class Answer(NamedTuple):
    """What a peer said of the test rows: ``values`` (n_draws, n_rows), ``mean`` (n_rows,)."""

    values: np.ndarray
    mean: np.ndarray
    fit_seconds: float
    predict_seconds: float
    versions: dict[str, str]


def perform_fold(
    cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, seed: int
) -> dict[str, Any]:
    """Fit a cell's peer, predict, and score: the part of a row that a run gives."""
    answer = ask(cell, X, y, X_test, seed)
    return {
        **score(cell, answer, y_test),
        "seconds": {
            "fit_all": answer.fit_seconds,
            "fitted_together": 1,
            "predict": answer.predict_seconds,
        },
        "peer": answer.versions,
    }


def score(cell: Cell, answer: Answer, y: np.ndarray) -> dict[str, Any]:
    """The scores of our own methods; the CRPS of draws is the estimate without bias."""
    how = cell.protocol["draws"]
    values, rule = answer.values, _RULES[how]
    in_tenths = values
    if how == "independent":
        levels = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
        in_tenths = np.quantile(values, levels, axis=0, method=rule)
    bins = metrics.decile_counts(y, in_tenths)
    interval = np.quantile(values, [(1 - NOMINAL) / 2, (1 + NOMINAL) / 2], axis=0, method=rule).T
    crps = metrics.crps_ensemble(y, values, fair=how == "independent")
    return {
        "metrics": {
            "qice_percent": 100 * metrics.qice_from_counts(bins),
            "rmse": specs.rmse_scale(cell.dataset) * metrics.rmse(y, answer.mean),
            "crps": float(crps.mean()),
            "coverage": metrics.coverage(y, interval),
            "width": metrics.interval_width(interval),
        },
        "bins": bins.tolist(),
    }


def ask(cell: Cell, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, seed: int) -> Answer:
    """Fit a cell's peer to X and y in its environment, and have it predict X_test."""
    python = environment(cell.method)
    settings = {
        "parameters": cell.parameters,
        "seed": seed,
        "n_draws": cell.protocol["n_draws"],
    }
    with tempfile.TemporaryDirectory(prefix="nkcme-peer-") as scratch:
        question, answer = Path(scratch, "question.npz"), Path(scratch, "answer.npz")
        np.savez(question, X=X, y=y, X_test=X_test)
        _run(
            # Isolated: neither this library nor what PYTHONPATH names is seen there.
            [python, "-I", peer_program.__file__, cell.method, json.dumps(settings),
             question, answer],
            failed=f"{cell.method} failed",
        )  # fmt: skip
        with np.load(answer) as found:
            return Answer(
                found["values"],
                found["mean"],
                float(found["fit_seconds"]),
                float(found["predict_seconds"]),
                json.loads(str(found["versions"])),
            )


# --- environments -----------------------------------------------------------------------------


def environment(peer: str) -> Path:
    """The Python of a peer's environment, which is made if it is not there."""
    made = _made(peer, _home())
    if isinstance(made, NkcmeError):
        raise made
    return made


def folder(peer: str) -> str:
    """The name of a peer's environment, of this Python: another's packages are of no use to it."""
    return f"{peer}-{sys.implementation.cache_tag}"


def _home() -> Path:
    given = os.environ.get(HOME_VARIABLE)
    return Path(given) if given else Path(platformdirs.user_cache_dir("nkcme")) / "peers"


@cache
def _made(peer: str, home: Path) -> Path | NkcmeError:
    """Remembered, failures too: what cannot be installed is not tried again for every fold."""
    requirement = specs.PEERS[peer].requirement
    place = home / folder(peer)
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = place / STAMP
    if stamp.exists() and stamp.read_text(encoding="utf-8") == requirement and python.exists():
        return python
    try:  # isolated: what PYTHONPATH names is not there when the peer is asked
        _run(
            [sys.executable, "-I", "-m", "venv", "--clear", place],
            failed=f"no environment can be made for {peer}",
            advice=f"{HOME_VARIABLE} names another directory for it",
        )
        _run(
            [python, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             requirement],
            failed=f"{requirement} cannot be installed",
            advice="pip must reach a package index, else leave out --peers",
        )  # fmt: skip
        stamp.write_text(requirement, encoding="utf-8")
    except (NkcmeError, KeyboardInterrupt) as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, NkcmeError):
            return error
        raise
    return python


def _run(command: list[Any], failed: str, advice: str = "") -> None:
    """Run a program on one thread; if it fails, the line in which it said why is the error."""
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
        told = done.stderr.strip() or done.stdout  # where venv complains of a missing pip
        lines = [line.strip() for line in told.splitlines() if line.strip()]
        said = [line for line in lines if line.startswith("ERROR:")] or lines  # pip warns after it
        reason = said[-1] if said else f"exit status {done.returncode} and no word"
        raise NkcmeError(f"{failed}: {reason}{advice and f'; {advice}'}")
