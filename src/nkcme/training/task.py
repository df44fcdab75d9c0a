"""What is trained: a task, and the objectives that its steps apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from nkcme.training.row_shares import RowShare

PyTree = Any


class Objective(NamedTuple):
    """One gradient update: a loss, the leaves it moves, its optimiser and when it is applied.

    ``loss(model, batch, key)`` returns a scalar; ``trainable(model)`` marks with True the leaves
    that this objective moves. ``optimizer`` is an optimiser, or a function that makes one of the
    replica's constant: numbers that differ between tables are then no part of the program. The
    update is applied in every ``every``-th step. With a ``window`` it is applied only from the
    window's first step up to, but not including, its second, so that one run can train the parts of
    a model one after the other.
    """

    loss: Callable[[PyTree, PyTree, Array], Array]
    trainable: Callable[[PyTree], PyTree]
    optimizer: optax.GradientTransformation | Callable[[PyTree], optax.GradientTransformation]
    every: int = 1
    window: tuple[int, int] | None = None

    def optimizer_for(self, constant: PyTree) -> optax.GradientTransformation:
        """The optimiser of a replica with this constant."""
        return self.optimizer(constant) if callable(self.optimizer) else self.optimizer


class Task(NamedTuple):
    """What is trained.

    ``init(key, constant)`` returns one replica, a pytree of arrays only. The objectives
    are applied in order in each step, on the same minibatch. ``advance`` updates state
    that is not learned, once per step. ``monitor`` returns named scalars for the history.
    ``validation(model, batch)`` returns one value per row; lower is better. With ``averaging``
    above zero the result is not the last state but a running mean of the states, over about this
    share of the steps so far: as good as a state whose learning rate has fallen, at any step.
    With ``starts_by_numpy``, ``init`` makes all replicas at once from arrays of NumPy that have a
    leading axis, the words of their keys and their constants, and nothing is compiled.

    Tasks are compared by identity: training the same task object again on arrays of the same
    shapes reuses the compiled program.
    """

    init: Callable[[Array, PyTree], PyTree]
    objectives: tuple[Objective, ...]
    advance: Callable[[PyTree], PyTree] = lambda model: model
    monitor: Callable[[PyTree], dict[str, Array]] = lambda model: {}
    validation: Callable[[PyTree, PyTree], Array] | None = None
    averaging: float = 0.0
    starts_by_numpy: bool = False


def apply_objective(
    objective: Objective,
    constant: PyTree,
    model: PyTree,
    opt_state: PyTree,
    batch: PyTree,
    key: Array,
    t: Array,
    share: RowShare = RowShare(),  # noqa: B008
) -> tuple[PyTree, PyTree, Array]:
    """Apply one objective, if step ``t`` is one of its steps.

    The batch is this device's ``share`` of a minibatch, and loss and gradient are means over all
    of it.
    optax.conditionally_transform also skips updates, but computes the gradient in every step.
    """

    def gradient_of(inputs: PyTree, rows: PyTree) -> tuple[Array, PyTree]:
        moving, still, key = inputs
        loss = lambda m: objective.loss(eqx.combine(m, still), rows, key)  # noqa: E731
        return jax.value_and_grad(loss)(moving)

    def update(model: PyTree, opt_state: PyTree) -> tuple[PyTree, PyTree, Array]:
        moving, still = eqx.partition(model, objective.trainable(model))
        loss, gradient = share.mean(gradient_of, (moving, still, key), batch)
        change, opt_state = objective.optimizer_for(constant).update(gradient, opt_state, moving)
        return eqx.combine(optax.apply_updates(moving, change), still), opt_state, loss

    if objective.every == 1 and objective.window is None:
        return update(model, opt_state)
    first, last = objective.window or (0, jnp.iinfo(jnp.int32).max)
    now = ((t + 1) % objective.every == 0) & (t >= first) & (t < last)
    skip = lambda model, opt_state: (model, opt_state, jnp.zeros(()))  # noqa: E731
    return jax.lax.cond(now, update, skip, model, opt_state)
