"""Reinforcement learning: train an agent in an environment with all its seeds as one program."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.curves import pack
from benchmarks.experiments.protocols.fitting import Outcome
from benchmarks.timing import timed
from nkcme.rl.agents.base import agent_from_config
from nkcme.rl.curve import thin
from nkcme.rl.loop import train
from nkcme.rl.settings import Settings


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train one agent per seed and keep its learning curve; warnings become notes of the rows."""
    agent = agent_from_config(cell.parameters["agent"])
    settings = Settings(**cell.parameters["settings"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result, seconds = timed(lambda: train(cell.dataset, agent, settings, seeds=list(runs)))
    if result.interrupted:
        raise KeyboardInterrupt
    curve = result.curve
    last_fifth, area = curve.last_fifth(), curve.area()
    for k, run in enumerate(runs):
        returns, span = thin(curve.returns[:, k], cell.protocol["curve_points"])
        yield (
            run,
            {
                "metrics": {"last_fifth": float(last_fifth[k]), "area": float(area[k])},
                "curve": {"every": span * settings.eval_every, "returns": pack(returns)},
                "seconds": {"fit_all": seconds, "fitted_together": len(runs)},
                "steps": result.n_steps,
                "notes": [str(warning.message) for warning in caught],
            },
        )
