"""The model of `NKCME` and how it is trained: a network of weights, a learned bandwidth."""

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
from nkcme.estimators.gradient_trained import Descent, padded
from nkcme.estimators.nkcme.folds import Parts
from nkcme.kernels import DensityKernel, kernel_class
from nkcme.networks import MLP
from nkcme.objectives import rkhs_loss, sq_loss
from nkcme.training.loop import Objective, Task


class NeuralEmbedding(eqx.Module):
    """x -> sum_a f_a(x) k(eta_a, .), with f a network and k of a learned bandwidth."""

    network: MLP
    raw_bandwidth: Array  # softplus of it is added to the floor
    atoms: Atoms
    bandwidth_floor: Array
    kernel_name: str = eqx.field(static=True)

    @property
    def kernel(self) -> DensityKernel:
        bandwidth = self.bandwidth_floor + jax.nn.softplus(self.raw_bandwidth)
        return kernel_class(self.kernel_name)(bandwidth)

    def weights(self, x: Array) -> Array:
        """Weights (n, m) at inputs (n, p), as trained: not yet divided by their sum."""
        return jax.vmap(self.network)(x)


class Spec(NamedTuple):
    """The numbers that make a training program; equal specs share one."""

    n_in: int
    n_out: int
    kernel: str
    n_atoms: int
    hidden: tuple[int, ...]
    activation: str
    head: str
    spectral_norm: tuple[int, ...]
    bandwidth: float
    bandwidth_floor: float
    bandwidth_update: str
    bandwidth_period: int
    descent: Descent
    bandwidth_descent: Descent
    learns_atoms: bool = False


#: In spacings between atoms. Herding, with the paper's thousand candidates for a hundred atoms,
#: sees nothing narrower. Without it the paper's unbounded bandwidth goes to zero where y takes few
#: values and some are atoms (Naval): the loss has no lower bound there, and ends as NaN. The
#: value was chosen on Naval, between two that come near the paper's numbers (docs/findings.md).
MIN_BANDWIDTH = 0.18


def _init(spec: Spec, key: Array, atoms: Atoms) -> NeuralEmbedding:
    network = MLP(
        spec.n_in,
        spec.n_atoms,
        spec.hidden,
        activation=spec.activation,
        head=spec.head,
        spectral_norm=spec.spectral_norm,
        key=key,
    )
    # The bandwidth starts where it was asked to, at floor + softplus(raw), and where it is fixed it
    # stays there. Few atoms far apart must not push the floor up to it.
    lowest = max(spec.bandwidth_floor, MIN_BANDWIDTH)
    floor = jnp.minimum(lowest * atoms.neighbour_distance(), 0.5 * spec.bandwidth)
    if spec.bandwidth_update == "fixed":
        floor = jnp.zeros_like(floor)
    above = spec.bandwidth - floor
    raw_bandwidth = above + jnp.log(-jnp.expm1(-above))  # the inverse of softplus
    return NeuralEmbedding(network, raw_bandwidth, atoms, floor, spec.kernel)


@lru_cache(maxsize=64)
def make_task(spec: Spec) -> Task:
    """The training task of a spec; the same object for equal specs, so compiled once."""

    def loss(criterion: Any, model: NeuralEmbedding, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        if spec.n_out == 1:
            return criterion(model.weights(x), y, model.atoms, model.kernel)
        # A target of several outputs stands for its cell, whose law spreads the atom again. The
        # best weights are then the probabilities of cells, however wide the kernel is; and as
        # k(0) falls with the power of d, the loss is taken in units of it.
        kernel, nowhere = model.kernel, jnp.zeros(spec.n_out)
        peak = jax.lax.stop_gradient(kernel.value(nowhere))
        return criterion(model.weights(x), model.atoms.nearest(y), model.atoms, kernel) / peak

    def only(network: bool, bandwidth: bool, model: NeuralEmbedding) -> NeuralEmbedding:
        """Marks what an objective moves."""
        nothing = jax.tree.map(lambda _: False, model)
        moved = model.network.trainable() if network else nothing.network
        marks = eqx.tree_at(lambda m: (m.network, m.raw_bandwidth), nothing, (moved, bandwidth))
        if spec.learns_atoms and network:
            marks = eqx.tree_at(lambda m: m.atoms.locations, marks, True)
        return marks

    network_optimizer = spec.descent.optimizer()

    def label(model: NeuralEmbedding) -> NeuralEmbedding:
        """Who moves what. Atoms go with the bandwidth: decay would pull them to the mean of y."""
        labels = jax.tree.map(lambda _: "network", model)
        labels = eqx.tree_at(lambda m: m.raw_bandwidth, labels, "bandwidth")
        if spec.learns_atoms:
            labels = eqx.tree_at(lambda m: m.atoms.locations, labels, "bandwidth")
        return labels

    joint = network_optimizer
    if spec.bandwidth_descent != spec.descent:
        joint = optax.multi_transform(
            {"network": network_optimizer, "bandwidth": spec.bandwidth_descent.optimizer()}, label
        )
    # In turns, it takes a step every so many of the network's.
    turns = spec.bandwidth_descent._replace(n_steps=spec.descent.n_steps // spec.bandwidth_period)
    objectives = {
        "joint": (Objective(partial(loss, rkhs_loss), partial(only, True, True), joint),),
        "fixed": (
            Objective(partial(loss, rkhs_loss), partial(only, True, False), network_optimizer),
        ),
        "iterative": (
            Objective(partial(loss, rkhs_loss), partial(only, True, False), network_optimizer),
            Objective(
                partial(loss, sq_loss),
                partial(only, False, True),
                turns.optimizer(),
                spec.bandwidth_period,
            ),
        ),
    }
    return Task(
        init=partial(_init, spec),
        objectives=objectives[spec.bandwidth_update],
        advance=lambda m: eqx.tree_at(lambda m: m.network, m, m.network.iterate()),
        monitor=lambda m: {"bandwidth": m.kernel.bandwidth},
        validation=_validation_crps,
    )


def _validation_crps(model: NeuralEmbedding, batch: tuple[Array, Array]) -> Array:
    """The training losses are no yardstick across steps: they change with the bandwidth."""
    x, y = batch
    return energy_of_atoms(model.weights(x), model.atoms.locations, y)


@jax.jit
def energy_of_atoms(weights: Array, eta: Array, y: Array) -> Array:
    """The energy score of the measure sum_a w_a delta(eta_a), weights divided by their sum; for one
    output the CRPS. A value a row."""
    w = weights / jnp.sum(weights, axis=1, keepdims=True)
    to_y = jnp.linalg.norm(y[:, None] - eta[None], axis=-1)
    between = jnp.linalg.norm(eta[:, None] - eta[None], axis=-1)
    return jnp.sum(w * to_y, axis=1) - 0.5 * jnp.sum((w @ between) * w, axis=1)


# --- several members, stacked along a leading axis ------------------------------------------------


@jax.jit
def mean_weights(members: NeuralEmbedding, x: Array) -> Array:
    """The mean of the members' weights: a mean of embeddings with the same atoms and kernel."""
    return jnp.mean(each_weights(members, x), axis=0)


@jax.jit
def each_weights(members: NeuralEmbedding, x: Array) -> Array:
    """The weights (n_members, n, m) of each."""
    with jax.default_matmul_precision("highest"):  # a GPU's ten bits are enough to train only
        return jax.vmap(lambda member: member.weights(x))(members)


def weights_out_of_part(
    members: NeuralEmbedding, x: np.ndarray, parts: Parts, deal: int
) -> np.ndarray:
    """The weights (n, m) of each row by the member of a deal that has not seen it."""

    def say(member: int, rows: np.ndarray) -> np.ndarray:
        alone = jax.tree.map(lambda leaf: leaf[member : member + 1], members)
        return np.asarray(mean_weights(alone, padded(x[rows])))[: len(rows)]

    return parts.out_of_part(deal, say)


def mean_bandwidth(members: NeuralEmbedding) -> float:
    """Of several members the geometric mean."""
    values = np.asarray(jax.vmap(lambda member: member.kernel.bandwidth)(members), np.float64)
    return float(np.exp(np.mean(np.log(values)))) if len(values) > 1 else float(values[0])
