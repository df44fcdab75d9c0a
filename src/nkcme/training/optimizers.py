"""Optimisers and learning-rate schedules, by the names that parameters have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

#: Steps after which the rate of the schedule "open" has fallen to 0.7 of its start.
_OPEN_STEPS = 300


def _open(rate: float, n_steps: int) -> Callable[[jax.Array], jax.Array]:
    """A rate that falls with one over the root of the step, for runs of no fixed length."""
    return lambda step: rate / jnp.sqrt(1.0 + step / _OPEN_STEPS)


def _falling(rate: float, n_steps: Any) -> Callable[[jax.Array], jax.Array]:
    """Half a cosine wave down to zero, as optax's, for a number of steps that may be an array."""
    return lambda step: 0.5 * rate * (1.0 + jnp.cos(jnp.pi * jnp.minimum(step / n_steps, 1.0)))


#: The learning rate over a number of steps: ``SCHEDULES[name](rate, n_steps)``.
SCHEDULES: dict[str, Callable[[float, int], Any]] = {
    "constant": lambda rate, n_steps: rate,
    "cosine": optax.cosine_decay_schedule,
}

#: The name of the schedule for runs of no fixed length. It is not a choice of users: it goes with
#: averaged parameters and a judge that ends the run.
OPEN = "open"

#: The name of the cosine schedule for programs that runs of different lengths share.
FALLING = "falling"

_OWN: dict[str, Callable[[float, Any], Any]] = {OPEN: _open, FALLING: _falling}


class Descent(NamedTuple):
    """AdamW with a learning-rate schedule, as plain values that compare and hash."""

    learning_rate: float
    weight_decay: float
    beta2: float
    schedule: str
    n_steps: int

    def optimizer(self, decay_unit: Any = 1.0, n_steps: Any = None) -> optax.GradientTransformation:
        """Build the optimiser. The unit of the weight decay and, for the schedule `FALLING`, the
        number of steps may be arrays."""
        schedule = (SCHEDULES | _OWN)[self.schedule]
        rate = schedule(self.learning_rate, max(self.n_steps, 1) if n_steps is None else n_steps)
        return optax.adamw(rate, b2=self.beta2, weight_decay=decay_unit * self.weight_decay)
