"""Seconds of a training step by the kernels of `benchmarks.speed.pallas_kernels`.

`benchmarks.speed.steps` calls `measure` in a new process for each variant on a GPU.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from benchmarks.speed import pallas_kernels as kernels
from benchmarks.speed.steps import N_SEEDS, engine_seconds
from benchmarks.timing import seconds_of
from nkcme.atoms import Atoms
from nkcme.datasets.toy import TOYS
from nkcme.estimators.nkcme.embedding_network import NeuralEmbedding
from nkcme.networks import MLP
from nkcme.objectives import rkhs_loss

#: Ways to train, by the name of a variant.
TRAIN = {"gradients": kernels.train_by_gradients, "steps": kernels.train_in_kernels}

_TIMED_STEPS, _COMPARED_STEPS, _REPEATS = 6400, 20, 5


def measure(method: str, warps: int) -> dict[str, float]:
    """Seconds of a step by the kernels and by the library, and how far the kernels' parameters are
    from those of `plain_training`.

    ``method`` is a key of `TRAIN`, ``warps`` the warps of each kernel.
    """
    data = [TOYS["bimodal"].make(seed=seed) for seed in range(N_SEEDS)]
    X = jnp.asarray([x[:, 0] for x, _ in data], jnp.float32)
    y = jnp.asarray([y for _, y in data], jnp.float32)
    models = initial_models(y)
    state = kernels.initial_state(packed(models))
    atoms = kernels.padded_atoms(models.atoms.locations[..., 0])

    @partial(jax.jit, static_argnums=1)
    def train(key: Array, n_steps: int) -> kernels.State:
        batches = minibatches(key, X, y, n_steps)
        return TRAIN[method](state, *batches, atoms, warps)[0]

    key = jax.random.key(1)
    once = lambda: jax.block_until_ready(train(key, _TIMED_STEPS))  # noqa: E731
    once()  # compile
    seconds = float(np.median([seconds_of(once) for _ in range(_REPEATS)]))

    batches = minibatches(key, X, y, _COMPARED_STEPS)
    with jax.default_matmul_precision("highest"):
        exact = plain_training(models, *batches)[0]
    difference = partial(largest_difference, start=state.parameters, exact=exact)
    return {
        "seconds_a_step": seconds / _TIMED_STEPS,
        "engine_seconds_a_step": engine_seconds(),
        "largest_difference": difference(train(key, _COMPARED_STEPS).parameters),
        "largest_difference_of_plain": difference(plain_training(models, *batches)[0]),
    }


def initial_models(y: Array) -> NeuralEmbedding:
    """A model of the paper's toy recipe for each of the targets (replicas, n), stacked."""

    def one(key: Array, y: Array) -> NeuralEmbedding:
        sizes = (kernels.HIDDEN, kernels.HIDDEN)
        network = MLP(1, kernels.ATOMS, sizes, activation="relu", head="signed", key=key)
        atoms = Atoms.grid(jnp.min(y), jnp.max(y), kernels.ATOMS)
        raw_bandwidth = jnp.log(jnp.expm1(jnp.ones(())))
        return NeuralEmbedding(network, raw_bandwidth, atoms, jnp.zeros(()), "gaussian")

    return eqx.filter_vmap(one)(jax.random.split(jax.random.key(0), len(y)), y)


def packed(models: NeuralEmbedding) -> Array:
    """The parameters of stacked models as the kernels hold them."""

    def one(model: NeuralEmbedding) -> Array:
        layers: Any = model.network.layers
        (w_1, b_1), *others = ((layer.weight, layer.bias) for layer in layers)
        arrays = [w_1[:, 0], b_1, *chain(*others), model.raw_bandwidth[None]]
        return kernels.packed(kernels.Parameters(*arrays))

    return jax.vmap(one)(models)


def minibatches(key: Array, X: Array, y: Array, n_steps: int) -> tuple[Array, Array]:
    """Rows of X and y (replicas, n), drawn with replacement: (steps, replicas, padded rows).

    The padding is drawn as well: its rows have no weight in the loss.
    """
    rows = jax.random.randint(key, (n_steps, len(y), kernels.PADDED_BATCH), 0, y.shape[1])
    of = lambda table: jnp.take_along_axis(table[None], rows, axis=2)  # noqa: E731
    return of(X), of(y)


@eqx.filter_jit
def plain_training(models: NeuralEmbedding, x: Array, y: Array) -> tuple[Array, Array]:
    """Packed parameters after training by the library's loss and optax, and the losses
    (steps, replicas)."""
    optimizer = optax.adamw(kernels.LEARNING_RATE, weight_decay=kernels.WEIGHT_DECAY)

    def one(model: NeuralEmbedding, x: Array, y: Array) -> tuple[NeuralEmbedding, Array]:
        marks = jax.tree.map(lambda _: False, model)
        marks = eqx.tree_at(
            lambda m: (m.network, m.raw_bandwidth), marks, (model.network.trainable(), True)
        )
        moving, still = eqx.partition(model, marks)

        def step(carry: Any, batch: tuple[Array, Array]) -> tuple[Any, Array]:
            moving, opt_state = carry
            x, y = (column[: kernels.BATCH, None] for column in batch)

            def loss(moving: NeuralEmbedding) -> Array:
                model = eqx.combine(moving, still)
                return rkhs_loss(model.weights(x), y, model.atoms, model.kernel)

            value, gradient = jax.value_and_grad(loss)(moving)
            change, opt_state = optimizer.update(gradient, opt_state, moving)
            return (optax.apply_updates(moving, change), opt_state), value

        (moving, _), losses = jax.lax.scan(step, (moving, optimizer.init(moving)), (x, y))
        return eqx.combine(moving, still), losses

    models, losses = jax.vmap(one, in_axes=(0, 1, 1), out_axes=(0, 1))(models, x, y)
    return packed(models), losses


def largest_difference(ours: Array, start: Array, exact: Array) -> float:
    """Over the arrays of `kernels.Parameters`: ||ours - exact|| / ||exact - start||.

    Relative to how far training moved them, because few steps change parameters by little.
    """
    away, moved = (jax.vmap(kernels.unpacked)(change) for change in (ours - exact, exact - start))
    norm = jnp.linalg.norm
    return max(float(norm(a.ravel()) / norm(m.ravel())) for a, m in zip(away, moved, strict=True))
