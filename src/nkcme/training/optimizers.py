"""Optimisers and learning-rate schedules, by the names that parameters have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import optax

#: The learning rate over a number of steps: ``SCHEDULES[name](rate, n_steps)``.
SCHEDULES: dict[str, Callable[[float, int], Any]] = {
    "constant": lambda rate, n_steps: rate,
    "cosine": optax.cosine_decay_schedule,
}


class Descent(NamedTuple):
    """AdamW with a learning-rate schedule, as plain values that compare and hash."""

    learning_rate: float
    weight_decay: float
    beta2: float
    schedule: str
    n_steps: int

    def optimizer(self) -> optax.GradientTransformation:
        """Build the optimiser."""
        rate = SCHEDULES[self.schedule](self.learning_rate, max(self.n_steps, 1))
        return optax.adamw(rate, b2=self.beta2, weight_decay=self.weight_decay)
