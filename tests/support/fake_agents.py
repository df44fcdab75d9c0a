"""Training of agents that takes no time, and rows as trained agents would produce them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.curves import pack
from benchmarks.experiments.rows import Rows
from nkcme.rl.curve import Curve, thin

#: The lowest and the highest return by environment.
RANGES = {"CartPole-v1": (10, 480), "Acrobot-v1": (-500, -79), "MountainCar-v0": (-200, -104)}


def fake_returns(env: str, n: int, seed: int, slowness: float = 0.0) -> np.ndarray:
    """A learning curve that rises from the lowest return to the highest."""
    low, high = RANGES[env]
    rng = np.random.default_rng(seed)
    rise = 1 - np.exp(-np.linspace(0, 1, n) / (0.05 + 0.1 * slowness + 0.02 * rng.random()))
    rise -= (0.05 * rng.random() + 0.02 * np.abs(rng.normal(size=n))) * rise
    return np.rint(low + (high - low) * rise)


def fake_train(env: str, agent: Any, settings: Any, *, seeds: Sequence[int]) -> Any:
    """A stand-in for `nkcme.rl.train`: the attributes of its result that the benchmark uses."""
    steps = np.arange(settings.eval_every, settings.n_steps + 1, settings.eval_every)
    returns = np.stack([fake_returns(env, len(steps), seed) for seed in seeds], axis=1)
    return SimpleNamespace(curve=Curve(steps, returns), n_steps=settings.n_steps, interrupted=False)


def put_rows(rows: Rows, cell: Cell, seeds: Sequence[int], slowness: float = 0.0) -> None:
    """Add finished rows of a cell, trained together."""
    settings = cell.parameters["settings"]
    n = settings["n_steps"] // settings["eval_every"]
    for seed in seeds:
        returns = fake_returns(cell.dataset, n, seed, slowness)
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
