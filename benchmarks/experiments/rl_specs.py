"""What the benchmark of the agents runs, as data: the paper's two figures, and our recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.experiments.specs import Cell
from nkcme.errors import NkcmeError
from nkcme.parameter_checks import need_one_of
from nkcme.rl.agents import Agent
from nkcme.rl.agents.base import agent_from_config
from nkcme.rl.curve import N_POINTS
from nkcme.rl.presets import ENVIRONMENTS, N_STEPS, PRESETS, preset
from nkcme.rl.settings import Settings

EXPERIMENT = "rl"

#: As the paper has them, and as they are called in print.
LABELS = {"fuse": "fused", "c51": "C51", "mmdqn": "MMDQN", "dqn": "DQN", "single": "single"}

#: Which agents a recipe is benchmarked with.
AGENTS = {"paper": tuple(LABELS), "tuned": ("fuse",)}

#: What a run is scored by; higher is better.
METRICS = ("last_fifth", "area")

#: Seeds of the paper's figures, and those that its claims are put to the test with.
N_SEEDS = 10
MANY_SEEDS = 50

#: What the fused agent's mean over the last fifth shall reach.
BARS = {
    "paper": {"CartPole-v1": 475.0, "Acrobot-v1": -82.0, "MountainCar-v0": -106.0},
    "tuned": {"CartPole-v1": 499.0, "Acrobot-v1": -76.0, "MountainCar-v0": -101.0},
}

#: Last fifth and area of early trials with a throw-away program, ten agents each, for comparison:
#: the paper has figures alone.
TRIALS: dict[str, dict[str, tuple[float, float]]] = {
    "CartPole-v1": {"fuse": (483, 435), "single": (466, 363), "c51": (496, 405), "dqn": (480, 417)},
    "Acrobot-v1": {
        "fuse": (-78.8, -95.7),
        "single": (-77.7, -95.4),
        "c51": (-83.2, -99.3),
        "dqn": (-101.6, -120.0),
    },
    "MountainCar-v0": {
        "fuse": (-104.0, -120.8),
        "single": (-112.4, -127.2),
        "c51": (-109.3, -117.9),
        "dqn": (-139.5, -152.6),
    },
}


@dataclass(frozen=True)
class AgentCell(Cell):
    """One agent by one recipe in one environment; a run is a seed."""

    def owns(self, row: dict[str, Any]) -> bool:
        """Options that came after the row was written stood at their defaults in it."""
        try:
            agent = agent_from_config(row["parameters"]["agent"])
            settings = Settings(**row["parameters"]["settings"])
        except (KeyError, TypeError, NkcmeError):
            return False
        same = replace(self, parameters=_parameters(agent, settings), protocol=row["protocol"])
        return same.fingerprint == self.fingerprint


def rl_cells(
    recipe: str = "paper",
    *,
    envs: Sequence[str] = (),
    agents: Sequence[str] = (),
    n_seeds: int = N_SEEDS,
    n_steps: int = N_STEPS,
) -> list[Cell]:
    """The agents that a recipe is benchmarked with in the paper's environments; or some of them."""
    need_one_of("preset", recipe, PRESETS)
    for env in envs:
        need_one_of("envs", env, ENVIRONMENTS)
    for agent in agents:
        need_one_of(f"agents of the preset {recipe}", agent, AGENTS[recipe])
    cells: list[Cell] = []
    for env in envs or ENVIRONMENTS:
        for name in agents or AGENTS[recipe]:
            made, settings = preset(recipe, name, env, n_steps)
            cells.append(
                AgentCell(
                    experiment=EXPERIMENT,
                    dataset=env,
                    method=f"{recipe}-{name}",
                    estimator=name,
                    parameters=_parameters(made, settings),
                    protocol={"preset": recipe, "curve_points": N_POINTS},
                    n_runs=n_seeds,
                )
            )
    return cells


def _parameters(agent: Agent, settings: Settings) -> dict[str, Any]:
    return {"agent": agent.to_config(), "settings": settings.to_config()}
