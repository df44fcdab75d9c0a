"""Reinforcement learning: the embedding as a distributional agent (paper, section 5)."""

from nkcme.rl.agents import C51, DQN, MMDQN, NKDQN, Agent
from nkcme.rl.curve import Curve
from nkcme.rl.envs import make
from nkcme.rl.loop import train
from nkcme.rl.result import Result, load
from nkcme.rl.settings import Settings
from nkcme.rl.tensorboard import TensorBoard

__all__ = [
    "C51",
    "DQN",
    "MMDQN",
    "NKDQN",
    "Agent",
    "Curve",
    "Result",
    "Settings",
    "TensorBoard",
    "load",
    "make",
    "train",
]
