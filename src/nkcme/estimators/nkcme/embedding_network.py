"""The model of `NKCME` and its training task: a network of weights, a learned bandwidth."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from nkcme.atoms import Atoms
from nkcme.distributions.blocks import map_rows
from nkcme.estimators.nkcme.components import Components
from nkcme.estimators.nkcme.recipe import ComponentRecipe
from nkcme.kernels import DensityKernel, kernel_class
from nkcme.networks import MLP
from nkcme.objectives import rkhs_loss, sq_loss
from nkcme.training.loop import Objective, Task
from nkcme.training.optimizers import Descent


class NeuralEmbedding(eqx.Module):
    """x -> sum_a f_a(x) k(eta_a, .), with f a network and k of a learned bandwidth."""

    network: MLP
    raw_bandwidth: Array  # its softplus is added to the floor
    atoms: Atoms
    bandwidth_floor: Array
    kernel_name: str = eqx.field(static=True)
    components: Components | None = None  # None: the network's outputs are the weights

    @property
    def kernel(self) -> DensityKernel:
        return kernel_class(self.kernel_name)(self.bandwidth)

    @property
    def bandwidth(self) -> Array:
        return self.bandwidth_floor + jax.nn.softplus(self.raw_bandwidth)

    def with_inputs(self, n_in: int) -> NeuralEmbedding:
        """The same for another number of inputs; see `MLP.with_inputs`."""
        return eqx.tree_at(lambda m: m.network, self, self.network.with_inputs(n_in))

    def weights(self, x: Array) -> Array:
        """Weights (n, m) at inputs (n, p), as trained: not yet divided by their sum."""
        outputs = jax.vmap(self.network)(x)
        return outputs if self.components is None else self.components.weights(outputs, self.atoms)


class TableValues(NamedTuple):
    """Numbers that differ between tables. A training program takes them as arrays, so that tables
    share it."""

    n_in: Any  # inputs; those of the program beyond them are padding
    bandwidth_floor: Any  # in spacings between atoms
    weight_decay: Any


class Spec(NamedTuple):
    """The numbers that make a training program; equal specs share one.

    The weight decays of the optimisers are in units of that of `TableValues`.
    """

    n_in: int
    n_out: int
    kernel: str
    n_atoms: int
    hidden: tuple[int, ...]
    activation: str
    head: str
    spectral_norm: tuple[int, ...]
    bandwidth: float
    bandwidth_update: str
    bandwidth_period: int
    descent: Descent
    bandwidth_descent: Descent
    learns_atoms: bool = False
    n_components: int = 0  # 0: the network gives the weights themselves
    components: ComponentRecipe = ComponentRecipe()
    averaging: float = 0.0


def _init(spec: Spec, key: Any, constant: tuple[Atoms, TableValues]) -> NeuralEmbedding:
    """The model before training; from arrays of NumPy, those of all replicas, stacked."""
    atoms, values = constant
    network = MLP(
        spec.n_in,
        3 * spec.n_components or spec.n_atoms,
        spec.hidden,
        activation=spec.activation,
        head="signed" if spec.n_components else spec.head,
        spectral_norm=spec.spectral_norm,
        key=key,
        fan_in=values.n_in,
    )
    # The bandwidth starts at floor + softplus(raw) = spec.bandwidth and, where it is fixed, stays
    # there. Few atoms far apart must not push the floor up to it.
    distance = atoms.neighbour_distance()
    xp = distance.__array_namespace__()
    floor = xp.minimum(values.bandwidth_floor * distance, 0.5 * spec.bandwidth)
    bandwidth = xp.full_like(floor, spec.bandwidth)
    components = None
    if spec.n_components:
        components = Components.on(atoms, spec.n_components, spec.components)
        # No bandwidth enters a likelihood. With weights that fit, the RKHS loss falls with it.
        bandwidth = bandwidth if spec.bandwidth_update == "fixed" else floor
    if spec.n_components or spec.bandwidth_update == "fixed":
        floor = xp.zeros_like(floor)
    above = bandwidth - floor
    raw_bandwidth = above + xp.log(-xp.expm1(-above))  # the inverse of softplus
    return NeuralEmbedding(network, raw_bandwidth, atoms, floor, spec.kernel, components)


@lru_cache(maxsize=64)
def make_task(spec: Spec) -> Task:
    """The training task of a spec; the same object for equal specs, so compiled once."""

    def loss(criterion: Any, model: NeuralEmbedding, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        if spec.n_out == 1:
            return criterion(model.weights(x), y, model.atoms, model.kernel)
        # With several outputs a target is replaced by its nearest atom, whose covariance spreads it
        # again at prediction. The best weights are then the probabilities of the atoms' Voronoi
        # regions, however wide the kernel is. k(0) falls with the power of d, so the loss is
        # divided by it.
        kernel, origin = model.kernel, jnp.zeros(spec.n_out)
        peak = jax.lax.stop_gradient(kernel.value(origin))
        return criterion(model.weights(x), model.atoms.nearest(y), model.atoms, kernel) / peak

    def negative_log_likelihood(
        model: NeuralEmbedding, batch: tuple[Array, Array], _: Array
    ) -> Array:
        x, y = batch
        assert model.components is not None
        outputs, share = jax.vmap(model.network)(x), spec.components.uniform_share
        return -jnp.mean(model.components.log_likelihood(outputs, y, model.atoms, share))

    def trainable(network: bool, bandwidth: bool, model: NeuralEmbedding) -> NeuralEmbedding:
        """Marks the leaves that an objective updates."""
        nothing = jax.tree.map(lambda _: False, model)
        in_network = model.network.trainable() if network else nothing.network
        marks = eqx.tree_at(
            lambda m: (m.network, m.raw_bandwidth), nothing, (in_network, bandwidth)
        )
        if spec.learns_atoms and network:
            marks = eqx.tree_at(lambda m: m.atoms.locations, marks, True)
        return marks

    def of_network(constant: tuple[Atoms, TableValues]) -> optax.GradientTransformation:
        return spec.descent.optimizer(constant[1].weight_decay)

    def label(model: NeuralEmbedding) -> NeuralEmbedding:
        """Which optimiser updates which leaf. Atoms go with the bandwidth: weight decay would pull
        them to the mean of y."""
        labels = jax.tree.map(lambda _: "network", model)
        labels = eqx.tree_at(lambda m: m.raw_bandwidth, labels, "bandwidth")
        if spec.learns_atoms:
            labels = eqx.tree_at(lambda m: m.atoms.locations, labels, "bandwidth")
        return labels

    def joint(constant: tuple[Atoms, TableValues]) -> optax.GradientTransformation:
        if spec.bandwidth_descent == spec.descent:
            return of_network(constant)
        of_bandwidth = spec.bandwidth_descent.optimizer(constant[1].weight_decay)
        return optax.multi_transform(
            {"network": of_network(constant), "bandwidth": of_bandwidth}, label
        )

    # In iterative optimisation the bandwidth takes one step every `bandwidth_period` steps.
    periodic = spec.bandwidth_descent._replace(
        n_steps=spec.descent.n_steps // spec.bandwidth_period
    )
    objectives = {
        "joint": (Objective(partial(loss, rkhs_loss), partial(trainable, True, True), joint),),
        "fixed": (
            Objective(partial(loss, rkhs_loss), partial(trainable, True, False), of_network),
        ),
        "iterative": (
            Objective(partial(loss, rkhs_loss), partial(trainable, True, False), of_network),
            Objective(
                partial(loss, sq_loss),
                partial(trainable, False, True),
                lambda constant: periodic.optimizer(constant[1].weight_decay),
                spec.bandwidth_period,
            ),
        ),
    }
    by_likelihood = (
        Objective(negative_log_likelihood, partial(trainable, True, False), of_network),
    )
    return Task(
        init=partial(_init, spec),
        starts_by_numpy=not spec.spectral_norm,
        objectives=by_likelihood if spec.n_components else objectives[spec.bandwidth_update],
        advance=lambda m: eqx.tree_at(lambda m: m.network, m, m.network.iterate()),
        monitor=lambda m: {"bandwidth": m.kernel.bandwidth},
        validation=_validation_score,
        averaging=spec.averaging,
    )


def _validation_score(model: NeuralEmbedding, batch: tuple[Array, Array]) -> Array:
    """The energy score. The training losses depend on the bandwidth, so they cannot be compared
    between steps."""
    x, y = batch
    return energy_score(model.weights(x), model.atoms.locations, y)


def energy_score(weights: Array, eta: Array, y: Array) -> Array:
    """The energy score of sum_a w_a delta(eta_a), weights divided by their sum; one value per row.

    For one output it is the CRPS.
    """
    w = weights / jnp.sum(weights, axis=1, keepdims=True)
    to_y = jnp.linalg.norm(y[:, None] - eta[None], axis=-1)
    between = jnp.linalg.norm(eta[:, None] - eta[None], axis=-1)
    return jnp.sum(w * to_y, axis=1) - 0.5 * jnp.sum((w @ between) * w, axis=1)


def energy_scores(weights: np.ndarray, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`energy_score` in NumPy, for any number of rows."""
    between = np.linalg.norm(eta[:, None] - eta[None], axis=-1)

    def of_block(weights: np.ndarray, y: np.ndarray) -> np.ndarray:
        w = weights / weights.sum(axis=1, keepdims=True)
        to_y = np.linalg.norm(y[:, None] - eta[None], axis=-1)
        return np.sum(w * to_y, axis=1) - 0.5 * np.sum((w @ between) * w, axis=1)

    return map_rows(of_block, weights, y, block_rows=_BLOCK_ROWS)


#: Rows whose distances to all atoms are computed together.
_BLOCK_ROWS = 4096
