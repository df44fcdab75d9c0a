"""Presets for the agents: the paper's (appendix E and its authors' runs), and our own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.rl.agents import MMDQN, Agent, agent_named
from nkcme.rl.agents.base import AtomAgent
from nkcme.rl.settings import Settings

PRESETS = ("paper", "tuned")

#: The environments of the paper.
ENVIRONMENTS = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")

#: The number of steps in the paper.
N_STEPS = 500_000

#: The environments in which every step costs 1 until the goal is reached.
_STEPS_COST = ("Acrobot-v1", "MountainCar-v0")

_SLOW = {"learning_rate": 1e-4, "adam_eps": 1e-5}


def paper(agent: str, env: str, n_steps: int = N_STEPS) -> tuple[Agent, Settings]:
    """Return the paper's agent and settings.

    Parameters
    ----------
    agent
        The name of an agent: "fuse", "single", "c51", "mmdqn" or "dqn".
    env
        The name of an environment. One that the paper does not have gets the settings of Acrobot.
    n_steps
        The number of environment steps.

    Returns
    -------
    agent, settings
        The arguments of `nkcme.rl.train`.

    Raises
    ------
    NkcmeError
        If there is no agent of that name.

    Examples
    --------
    >>> from nkcme.rl.presets import paper
    >>> agent, settings = paper("fuse", "CartPole-v1")
    >>> settings.learning_rate
    0.0001
    """
    changes: dict[str, Any] = {"n_steps": n_steps, "bootstrap_on_truncation": False}
    if env == "CartPole-v1":
        changes |= _SLOW
        if agent in ("c51", "single", "mmdqn"):
            changes["target_every"] = 1000
    made = agent_named(agent)
    if agent == "mmdqn" and env in ("CartPole-v1", "MountainCar-v0"):
        changes |= {"target_every": 1000, "reward_scale": 0.1}
        made = MMDQN(bandwidths=tuple(np.linspace(1.0, 10.0, 10).tolist()))
    return made, Settings(**changes)


def tuned(agent: str, env: str, n_steps: int = N_STEPS) -> tuple[Agent, Settings]:
    """Return our agent and settings.

    Compared with the paper's: a wider network, double Q-learning, returns over three steps, a
    replay of a fifth of the run, a learning rate that falls to zero, an automatic support, and
    actions by the moving average of the network. The settings depend on the environment in one
    way: in Acrobot and MountainCar, where every step costs, the time limit counts as an end.
    Without that few agents reach MountainCar's goal (docs/findings.md).

    Parameters
    ----------
    agent, env, n_steps
        As in `paper`.

    Returns
    -------
    agent, settings
        As in `paper`.

    Raises
    ------
    NkcmeError
        If there is no agent of that name.
    """
    made = agent_named(agent)
    if isinstance(made, AtomAgent):
        made = replace(made, support="auto")
    return made, Settings(
        n_steps=n_steps,
        hidden=(128, 128),
        schedule="cosine",
        double=True,
        averaging=0.999,
        n_step=3,
        buffer_size=max(10_000, n_steps // 10 * 2),
        bootstrap_on_truncation=env not in _STEPS_COST,
    )


def preset(name: str, agent: str, env: str, n_steps: int = N_STEPS) -> tuple[Agent, Settings]:
    """Return the agent and settings of a preset.

    Parameters
    ----------
    name
        "paper" (see `paper`) or "tuned" (see `tuned`).
    agent, env, n_steps
        As in `paper`.

    Returns
    -------
    agent, settings
        The arguments of `nkcme.rl.train`.

    Raises
    ------
    NkcmeError
        If there is no preset or agent of that name.
    """
    if name not in PRESETS:
        raise NkcmeError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}")
    return (paper if name == "paper" else tuned)(agent, env, n_steps)
