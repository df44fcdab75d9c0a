"""Template for an estimator that is trained by gradient steps.

Copy this file, rename ``MyEstimator``, do everything marked TODO, and replace every ``raise
NotImplementedError``. Import your copy: `nkcme.load` and the command line then know the estimator.
docs/add-an-estimator.md explains each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.base import Distribution
from nkcme.estimators import register_estimator
from nkcme.estimators.gradient_trained import GradientTrainedEstimator
from nkcme.networks import MLP
from nkcme.parameter_checks import need_number
from nkcme.training.optimizers import Descent
from nkcme.training.padding import pad_rows
from nkcme.training.task import Objective, Task


class Spec(NamedTuple):
    """The values that define a training program. Equal specs share a compiled program."""

    n_in: int
    n_out: int
    hidden: tuple[int, ...]
    activation: str
    descent: Descent
    my_parameter: float  # TODO: the parameters that the network or the loss depends on


def network_width(spec: Spec) -> int:
    """The number of network outputs for y with ``spec.n_out`` columns."""
    raise NotImplementedError("network_width")


def row_loss(spec: Spec, output: Array, y: Array) -> Array:
    """The loss of one row, from the network output (network_width,) and standardised y (n_out,)."""
    raise NotImplementedError("row_loss")


@lru_cache(maxsize=64)
def make_task(spec: Spec) -> Task:
    """The training task of a spec. Equal specs get the same object, which is compiled once."""

    def init(key: Array, _: tuple[()]) -> MLP:
        return MLP(
            spec.n_in,
            network_width(spec),
            spec.hidden,
            activation=spec.activation,
            head="signed",
            key=key,
        )

    def losses(model: MLP, batch: tuple[Array, Array]) -> Array:
        """One loss per row; on held-out rows, the validation score."""
        x, y = batch
        return jax.vmap(lambda x, y: row_loss(spec, model(x), y))(x, y)

    objective = Objective(
        loss=lambda model, batch, key: jnp.mean(losses(model, batch)),
        trainable=lambda model: model.trainable(),
        optimizer=spec.descent.optimizer(),
    )
    return Task(init=init, objectives=(objective,), validation=losses)


@jax.jit
def network_outputs(model: MLP, x: Array) -> Array:
    """The outputs (n, network_width) at inputs (n, p)."""
    with jax.default_matmul_precision("highest"):
        return jax.vmap(model)(x)


@register_estimator
class MyEstimator(GradientTrainedEstimator):
    """TODO: one line about P(y | x).

    TODO: number the steps of `fit`, with equations.

    Parameters
    ----------
    my_parameter : float
        TODO: its meaning. Parameters are numbers, text or tuples of them: they are saved in files.
    hidden, activation, learning_rate, weight_decay, beta2, schedule, batch_size, epochs, \
standardize, validation_fraction, patience, random_state, verbose, checkpoint
        As in `MDN`.
    """

    def __init__(
        self,
        *,
        my_parameter: float = 1.0,
        hidden: Sequence[int] = (64, 64),
        activation: str = "relu",
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        beta2: float = 0.999,
        schedule: str = "cosine",
        batch_size: int = 256,
        epochs: int | None = None,
        standardize: bool = True,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
        checkpoint: str | Path | None = None,
    ):
        self.my_parameter = my_parameter
        self.hidden = hidden
        self.activation = activation
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self.schedule = schedule
        self.batch_size = batch_size
        self.epochs = epochs
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _check_own_parameters(self) -> None:
        # TODO: check your parameters. The others are checked by the base class.
        need_number("my_parameter", self.my_parameter, above=0.0)

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> Spec:
        return Spec(
            n_in=n_in,
            n_out=n_out,
            hidden=tuple(int(h) for h in self.hidden),
            activation=self.activation,
            descent=self._descent(n_steps),
            my_parameter=float(self.my_parameter),
        )

    _task = staticmethod(make_task)

    def _distribution(self, x: np.ndarray) -> Distribution:
        """The distributions of y at encoded inputs (n, p)."""
        output = np.asarray(network_outputs(self.model_, pad_rows(x)), np.float64)[: len(x)]
        # The units of y: y = location + scale * standardised y.
        units = {"location": self.scaler_.location, "scale": self.scaler_.scale}
        return self._from_output(output, units)

    def _from_output(self, output: np.ndarray, units: dict[str, Any]) -> Distribution:
        """The distributions of y from network outputs (n, network_width)."""
        raise NotImplementedError("_from_output")
