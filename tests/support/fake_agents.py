"""Training that takes no time, rows as agents would leave them, and a process that is slow.

    python fake_agents.py ROWS SECONDS

runs three cells with a pause of so many seconds in each, so that a test can kill it between two.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.experiments import cells as experiments
from benchmarks.experiments.curves import pack
from benchmarks.experiments.rl_specs import rl_cells
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from benchmarks.experiments.specs import Cell
from nkcme.rl.curve import Curve, thin

PAUSE = 0.0

#: Where agents begin and where they end up, by environment.
RANGES = {"CartPole-v1": (10, 480), "Acrobot-v1": (-500, -79), "MountainCar-v0": (-200, -104)}


def fake_returns(env: str, n: int, seed: int, late: float = 0.0) -> np.ndarray:
    """A curve that rises from the lowest to the highest; ``late`` makes it slower."""
    low, high = RANGES[env]
    rng = np.random.default_rng(seed)
    rise = 1 - np.exp(-np.linspace(0, 1, n) / (0.05 + 0.1 * late + 0.02 * rng.random()))
    rise -= (0.05 * rng.random() + 0.02 * np.abs(rng.normal(size=n))) * rise
    return np.rint(low + (high - low) * rise)


def fake_train(env: str, agent: Any, settings: Any, *, seeds: Sequence[int]) -> Any:
    """What `experiments` asks of a result."""
    time.sleep(PAUSE)
    steps = np.arange(settings.eval_every, settings.n_steps + 1, settings.eval_every)
    returns = np.stack([fake_returns(env, len(steps), seed) for seed in seeds], axis=1)
    return SimpleNamespace(curve=Curve(steps, returns), n_steps=settings.n_steps, interrupted=False)


def put(rows: Rows, cell: Cell, seeds: Sequence[int], late: float = 0.0) -> None:
    """Finished rows of a cell."""
    settings = cell.parameters["settings"]
    n = settings["n_steps"] // settings["eval_every"]
    for seed in seeds:
        returns = fake_returns(cell.dataset, n, seed, late)
        thinned, span = thin(returns)
        row = {
            "run": seed, "fingerprint": cell.fingerprint, "parameters": cell.parameters,
            "protocol": cell.protocol,
            "metrics": {
                "last_fifth": float(returns[-(n // 5) :].mean()), "area": float(returns.mean()),
            },
            "curve": {"every": span * settings["eval_every"], "returns": pack(thinned)},
            "seconds": {"fit_all": 20.0, "fitted_together": len(seeds)},
            "steps": settings["n_steps"], "notes": [],
            "device": "abacus", "commit": "c0ffee", "versions": {"jax": "1"},
            "when": "2026-01-02T03",
        }  # fmt: skip
        rows.put(cell, row)


if __name__ == "__main__":
    experiments.train = fake_train
    PAUSE = float(sys.argv[2])
    run_cells(rl_cells("tuned", n_seeds=3, n_steps=1000), Rows(Path(sys.argv[1])), print)
