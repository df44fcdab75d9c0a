"""How an agent is trained: everything that is neither the agent nor the environment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from nkcme.errors import NkcmeError
from nkcme.networks import ACTIVATIONS
from nkcme.parameter_checks import need_number, need_one_of, need_whole, need_wholes
from nkcme.training.optimizers import SCHEDULES

_SIZES = ("n_steps", "batch_size", "buffer_size", "prefill")
_PERIODS = ("update_every", "target_every", "eval_every", "epsilon_steps", "n_step")


@dataclass(frozen=True)
class Settings:
    """The settings of a training run, the same for all agents.

    The defaults are the paper's, with two exceptions. A time limit does not count as the end of an
    episode (``bootstrap_on_truncation``). The learning rate and Adam's epsilon, which the paper
    chooses by environment, are those of two of its three environments.

    Parameters
    ----------
    n_steps
        Environment steps; a multiple of ``eval_every``.
    hidden
        The widths of the network's hidden layers.
    activation
        "relu", "silu", "gelu" or "tanh".
    learning_rate, adam_eps
        Adam's learning rate and epsilon.
    schedule
        "constant", or "cosine" for a learning rate that falls to zero over the run.
    batch_size
        Transitions per update.
    gamma
        The discount, between 0 and 1.
    update_every
        Steps between two updates.
    target_every
        Steps between two copies of the network to the target network.
    buffer_size
        Transitions that the replay holds.
    prefill
        Random steps that fill the replay before the first update; they do not count as steps.
    epsilon, epsilon_steps
        The share of random actions falls linearly from 1 to ``epsilon`` over ``epsilon_steps``.
    eval_every
        Steps between two evaluation episodes.
    eval_epsilon
        The share of random actions in evaluation episodes.
    reward_scale
        A factor for rewards in training. Curves and return distributions are in the environment's
        unit.
    bootstrap_on_truncation
        Whether the Bellman target of a truncated episode includes the value of its last state.
    double
        Double Q-learning: the network chooses the next action, the target network values it.
    n_step
        The number of rewards in a Bellman target.
    prioritized
        Draw transitions in proportion to a power of their last loss (Schaul et al., 2016).
    averaging
        The decay of a moving average of the network's parameters; the average acts in evaluations
        and in the result. 0 for none.

    Raises
    ------
    NkcmeError
        If a value is out of its range, or a period or size is not a multiple of another where it
        must be.

    Examples
    --------
    >>> from nkcme.rl import Settings
    >>> Settings(n_steps=1000, prefill=500).gamma
    0.99
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
        need_one_of("schedule", self.schedule, tuple(SCHEDULES))
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
        """Return the settings as JSON can hold them; ``Settings(**config)`` is their inverse."""
        return asdict(self)
