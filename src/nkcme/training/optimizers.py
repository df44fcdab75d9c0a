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


#: The learning rate over a number of steps: ``SCHEDULES[name](rate, n_steps)``.
SCHEDULES: dict[str, Callable[[float, int], Any]] = {
    "constant": lambda rate, n_steps: rate,
    "cosine": optax.cosine_decay_schedule,
}

#: The name of the schedule for runs of no fixed length. It is not a choice of users: it goes with
#: averaged parameters and a judge that ends the run.
OPEN = "open"


class Descent(NamedTuple):
    """AdamW with a learning-rate schedule, as plain values that compare and hash."""

    learning_rate: float
    weight_decay: float
    beta2: float
    schedule: str
    n_steps: int

    def optimizer(self, decay_unit: Any = 1.0) -> optax.GradientTransformation:
        """Build the optimiser; the weight decay is in this unit, which may be an array."""
        schedule = _open if self.schedule == OPEN else SCHEDULES[self.schedule]
        rate = schedule(self.learning_rate, max(self.n_steps, 1))
        return optax.adamw(rate, b2=self.beta2, weight_decay=decay_unit * self.weight_decay)
