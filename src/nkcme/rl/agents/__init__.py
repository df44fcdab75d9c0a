"""The agents, one per file. Each defines the outputs of its network and a loss."""

from nkcme.errors import NkcmeError
from nkcme.rl.agents.base import Agent
from nkcme.rl.agents.c51 import C51
from nkcme.rl.agents.dqn import DQN
from nkcme.rl.agents.mmdqn import MMDQN
from nkcme.rl.agents.nkdqn import NKDQN

#: The agents that `nkcme.rl.train` and the command line know by name.
AGENTS: dict[str, Agent] = {
    "fuse": NKDQN(),
    "single": NKDQN(kernels="single"),
    "c51": C51(),
    "mmdqn": MMDQN(),
    "dqn": DQN(),
}


def agent_named(name: str) -> Agent:
    """Return the agent of that name, with the paper's parameters."""
    if name not in AGENTS:
        raise NkcmeError(f"agent must be one of {', '.join(AGENTS)}; got {name!r}")
    return AGENTS[name]


__all__ = ["AGENTS", "C51", "DQN", "MMDQN", "NKDQN", "Agent", "agent_named"]
