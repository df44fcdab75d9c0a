"""The command `nkcme rl watch`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nkcme.cli.rl_env import environment_of
from nkcme.report.agent_plots import animate_episode
from nkcme.report.plots import check_animation
from nkcme.rl import load
from nkcme.rl.play import record, stage

EPISODE = "episode.gif"


def watch_agent(
    agents: Path,
    out: Path | None,
    *,
    number: int | None,
    env_name: str | None,
    imports: Sequence[str],
    seed: int,
    risk: float | None,
) -> dict[str, Any]:
    """Write an animation of an episode beside the return distributions that the agent predicts."""
    path = agents / EPISODE if out is None else out
    check_animation(path)
    result = load(agents)
    agent = result.best() if number is None else number
    result.network(agent)  # refuses a number that no agent has
    env = stage(environment_of(result, env_name, imports))
    episode = record(result, env, agent=agent, seed=seed, risk=risk)
    n_pictures = animate_episode(result, episode, env, path, agent=agent)
    return {
        "animation": str(path),
        "agent": agent,
        "seed": result.seeds[agent],
        "steps": len(episode.actions),
        "return": float(episode.rewards.sum()),
        "pictures": n_pictures,
    }
