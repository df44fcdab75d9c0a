"""Agents that were trained for a moment only, for tests of what is done with agents."""

from dataclasses import replace
from typing import Any

from nkcme.rl import Result, Settings, train
from nkcme.rl.agents import agent_named
from nkcme.rl.presets import preset

#: All that takes long is short.
SHORT = {
    "n_steps": 400,
    "hidden": (8,),
    "prefill": 100,
    "buffer_size": 500,
    "epsilon_steps": 100,
    "eval_every": 100,
}


def hardly_trained(env: object, agent: str = "fuse", seeds: int = 2) -> Result:
    return train(env, agent_named(agent), Settings(**SHORT), seeds=seeds)


def short_recipe(*names: Any) -> tuple[Any, Settings]:
    """What `nkcme.rl.presets.preset` gives, but for networks and replays made in a moment."""
    made, settings = preset(*names)
    return made, replace(settings, **SHORT | {"n_steps": settings.n_steps})
