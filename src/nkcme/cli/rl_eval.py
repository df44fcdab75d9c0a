"""The command `nkcme rl eval`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.cli.rl_env import environment_of
from nkcme.rl import load
from nkcme.rl.play import play


def evaluate_agents(
    agents: Path,
    *,
    n_episodes: int,
    backend: str | None,
    env_name: str | None,
    imports: Sequence[str],
    risk: float | None,
    seed: int,
) -> dict[str, Any]:
    """The returns of episodes that every agent plays from the same starts."""
    result = load(agents)
    env = environment_of(result, env_name, imports, backend)
    rows = []
    for k, one in enumerate(result.seeds):
        returns = play(result, env, n_episodes, agent=k, seed=seed, risk=risk).returns
        rows.append(
            {
                "seed": one,
                "mean": float(returns.mean()),
                "std": float(returns.std()),
                "worst": float(returns.min()),
                "best": float(returns.max()),
            }
        )
    return {
        "agents": str(agents),
        "env": env.name,
        "backend": getattr(env, "backend", "jax"),
        "episodes": n_episodes,
        "risk": risk,
        "mean": float(np.mean([row["mean"] for row in rows])),
        "by_agent": rows,
    }
