"""How an agent is trained: everything that is neither the agent nor the environment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nkcme.errors import NkcmeError
from nkcme.networks import ACTIVATIONS
from nkcme.parameter_checks import need_number, need_one_of, need_whole, need_wholes

SCHEDULES = ("constant", "cosine")

_SIZES = ("n_steps", "batch_size", "buffer_size", "prefill")
_PERIODS = ("update_every", "target_every", "eval_every", "epsilon_steps", "n_step")


@dataclass(frozen=True)
class Settings:
    """The defaults are the paper's, but for three: episodes that are cut off by a time limit are
    not taken for ones that ended (``bootstrap_on_truncation``), and learning rate and Adam's eps,
    which the paper chooses by environment, are those of two of its three.

    ``prefill`` random steps fill the replay before the first update and do not count as steps.
    ``epsilon`` falls linearly from 1 to its value over ``epsilon_steps``. ``averaging`` above 0
    acts in evaluations, and at the end, with that moving average of the network's parameters.
    ``prioritized`` draws transitions in proportion to a power of their last loss (Schaul et al.).
    """

    n_steps: int = 500_000
    hidden: tuple[int, ...] = (50, 50)
    activation: str = "relu"
    learning_rate: float = 1e-3
    schedule: str = "constant"
    adam_eps: float = 1e-4
    batch_size: int = 32
    gamma: float = 0.99
    update_every: int = 2
    target_every: int = 100
    buffer_size: int = 10_000
    prefill: int = 10_000
    epsilon: float = 0.01
    epsilon_steps: int = 10_000
    eval_every: int = 100
    eval_epsilon: float = 0.001
    reward_scale: float = 1.0
    bootstrap_on_truncation: bool = True
    double: bool = False
    n_step: int = 1
    prioritized: bool = False
    averaging: float = 0.0

    def __post_init__(self) -> None:
        need_wholes("hidden", self.hidden)
        object.__setattr__(self, "hidden", tuple(self.hidden))
        need_one_of("activation", self.activation, tuple(ACTIVATIONS))
        need_one_of("schedule", self.schedule, SCHEDULES)
        for name in (*_SIZES, *_PERIODS):
            need_whole(name, getattr(self, name))
        for name in ("learning_rate", "adam_eps", "reward_scale"):
            need_number(name, getattr(self, name), above=0.0)
        for name in ("epsilon", "eval_epsilon"):
            need_number(name, getattr(self, name), least=0.0, most=1.0)
        need_number("gamma", self.gamma, above=0.0, below=1.0)
        need_number("averaging", self.averaging, least=0.0, below=1.0)
        for name in ("target_every", "eval_every", "buffer_size", "prefill"):
            self._need_multiple(name, "update_every")
        self._need_multiple("n_steps", "eval_every")
        if self.prefill > self.buffer_size:
            raise NkcmeError(
                f"prefill must be at most buffer_size, {self.buffer_size}; got {self.prefill}"
            )
        if self.prefill < self.n_step:
            raise NkcmeError(f"prefill must be at least n_step, {self.n_step}; got {self.prefill}")

    def _need_multiple(self, name: str, of: str) -> None:
        value, unit = getattr(self, name), getattr(self, of)
        if value % unit:
            raise NkcmeError(f"{name} must be a multiple of {of}, {unit}; got {value}")

    def to_config(self) -> dict[str, Any]:
        return asdict(self)
