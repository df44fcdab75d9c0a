"""The cells of the reinforcement-learning experiment, as data: the paper's recipe, and ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.experiments.cell import Cell
from nkcme.errors import NkcmeError
from nkcme.parameter_checks import need_one_of
from nkcme.rl.agents import Agent
from nkcme.rl.agents.base import agent_from_config
from nkcme.rl.curve import N_POINTS
from nkcme.rl.presets import ENVIRONMENTS, N_STEPS, PRESETS, preset
from nkcme.rl.settings import Settings

EXPERIMENT = "rl"

#: The paper's agents and their printed names.
LABELS = {"fuse": "fused", "c51": "C51", "mmdqn": "MMDQN", "dqn": "DQN", "single": "single"}

#: The agents of each recipe.
AGENTS = {"paper": tuple(LABELS), "tuned": ("fuse",)}

#: The scores of a run; higher is better.
METRICS = ("last_fifth", "area")

#: The number of seeds of the paper's figures, and a larger one that tests their claims.
N_SEEDS = 10
MANY_SEEDS = 50

#: Targets for the fused agent's mean return over the last fifth of training.
TARGETS = {
    "paper": {"CartPole-v1": 475.0, "Acrobot-v1": -82.0, "MountainCar-v0": -106.0},
    "tuned": {"CartPole-v1": 499.0, "Acrobot-v1": -76.0, "MountainCar-v0": -101.0},
}

#: Last fifth and area of a prototype written before this library, ten agents each, for comparison:
#: the paper has figures but no numbers.
PROTOTYPE: dict[str, dict[str, tuple[float, float]]] = {
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
    """One agent with one recipe in one environment; a run is a seed."""

    def owns(self, row: dict[str, Any]) -> bool:
        """Whether a row is of this recipe; options that the row lacks had their default values."""
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
    """The cells of a recipe: its agents in the paper's environments, or the given ones of both."""
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
