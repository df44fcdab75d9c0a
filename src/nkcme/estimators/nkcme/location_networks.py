"""Networks as bases of a centre: all members of all data sets train as one program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import ModelFileError
from nkcme.estimators.base import Encoded
from nkcme.estimators.gradient_trained import Descent, filled, named_leaves, padded, seed_keys
from nkcme.estimators.nkcme.folds import Parts
from nkcme.networks import MLP
from nkcme.training.loop import Checkpoint, Objective, Plan, Progress, Rows, Task, train

PyTree = Any

_ACTIVATION = "relu"


class NetworkRecipe(NamedTuple):
    """How the networks of a base are made and trained."""

    hidden: tuple[int, ...]
    descent: Descent
    batch_size: int


def early_networks(n_rows: int) -> NetworkRecipe:
    """Networks that stop before they know their rows by heart: few passes over the table."""
    n_steps = _steps(2000 * np.sqrt(n_rows / 5000), 600, 6000)
    descent = Descent(5e-3, 0.03, 0.99, "cosine", n_steps)
    return NetworkRecipe((64, 64, 64), descent, _batch(256, n_rows))


def late_networks(n_rows: int) -> NetworkRecipe:
    """Networks that overfit, each in its own way: where noise is small or rows are many their mean
    is far better than that of careful ones (docs/findings.md)."""
    n_steps = _steps(2000 * np.sqrt(n_rows / 400), 2000, 20_000)
    if n_rows < 5000:
        descent = Descent(5e-3, 0.03, 0.99, "cosine", n_steps)
        return NetworkRecipe((64, 64, 64), descent, _batch(256, n_rows))
    descent = Descent(3e-3, 0.01, 0.99, "cosine", n_steps)
    return NetworkRecipe((128, 128, 128), descent, 256 if n_rows < 20_000 else 512)


def _steps(n_steps: float, least: int, most: int) -> int:
    return int(np.clip(n_steps, least, most)) // 100 * 100


def _batch(size: int, n_rows: int) -> int:
    return min(size, max(n_rows // 4, 1))


#: The recipes, by the name of the base, for a table of so many rows.
NETWORKS = {"early": early_networks, "late": late_networks}


class Networks(NamedTuple):
    """Networks that give the mean, stacked along a leading axis of members."""

    models: MLP

    @property
    def n_members(self) -> int:
        return len(jax.tree.leaves(self.models)[0])

    def members(self, x: np.ndarray) -> np.ndarray:
        """What each says at encoded inputs, (n_members, n, d)."""
        return np.asarray(_each_member(self.models, padded(x)))[:, : len(x)]

    def to_arrays(self) -> dict[str, np.ndarray]:
        return named_leaves(self.models)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> Networks:
        """From an untrusted file, which says how wide they are and how many."""
        widths = [v.shape for k, v in sorted(arrays.items()) if k.endswith("bias")]
        if not widths or not all(len(shape) == 2 for shape in widths):
            raise ModelFileError("the centre's networks in the model file are not complete")
        hidden = tuple(width for _, width in widths[:-1])
        init = partial(_init, n_in, n_out, hidden)
        skeleton = eqx.filter_eval_shape(init, jax.random.key(0), ())
        return cls(filled(skeleton, arrays, (widths[0][0],)))


def _init(n_in: int, n_out: int, hidden: tuple[int, ...], key: Array, _: PyTree) -> MLP:
    return MLP(n_in, n_out, hidden, activation=_ACTIVATION, head="signed", key=key)


@lru_cache(maxsize=64)
def _task(n_in: int, n_out: int, recipe: NetworkRecipe) -> Task:
    def loss(model: MLP, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        return jnp.mean(jnp.sum(jnp.square(jax.vmap(model)(x) - y), axis=1))

    objective = Objective(loss, lambda model: model.trainable(), recipe.descent.optimizer())
    return Task(init=partial(_init, n_in, n_out, recipe.hidden), objectives=(objective,))


@jax.jit
def _each_member(models: MLP, x: Array) -> Array:
    with jax.default_matmul_precision("highest"):
        return jax.vmap(lambda model: jax.vmap(model)(x))(models)


_member_keys = jax.jit(jax.vmap(jax.random.fold_in))


def fit_networks(
    recipe: NetworkRecipe,
    datasets: Sequence[Encoded],
    parts: Sequence[Parts],
    *,
    checkpoint: Checkpoint | None,
    fingerprint: str,
    progress: Progress | None,
) -> tuple[list[tuple[Networks, np.ndarray]], bool]:
    """The networks of every data set and what they say out of part, (deals, n, d); also whether
    Ctrl-C came."""
    first = np.cumsum([0] + [len(data.x) for data in datasets[:-1]])
    rows, weights = [], []
    for data, dealt, start in zip(datasets, parts, first, strict=True):
        for member in range(dealt.n_members):
            chosen = dealt.rows_of(member)
            rows.append(chosen + start)
            weights.append(data.weight[chosen])
    seeds = np.array([data.seed for data in datasets], np.uint32)
    n_members = [dealt.n_members for dealt in parts]
    keys = _member_keys(
        seed_keys(np.repeat(seeds, n_members)), np.concatenate([np.arange(n) for n in n_members])
    )
    trained = train(
        _task(datasets[0].x.shape[1], datasets[0].y.shape[1], recipe),
        (),
        tuple(np.concatenate([getattr(d, name) for d in datasets]) for name in ("x", "y")),
        Rows.of(rows, weights),
        Plan(recipe.descent.n_steps, recipe.batch_size),
        keys,
        checkpoint=checkpoint,
        fingerprint=fingerprint,
        progress=progress,
    )
    found: list[tuple[Networks, np.ndarray]] = []
    done = 0
    for data, dealt in zip(datasets, parts, strict=True):
        own = slice(done, done + dealt.n_members)
        done += dealt.n_members
        networks = Networks(jax.tree.map(lambda leaf: leaf[own], trained.models))  # noqa: B023

        def say(member: int, rows: np.ndarray) -> np.ndarray:
            alone = jax.tree.map(lambda leaf: leaf[member : member + 1], networks.models)  # noqa: B023
            return Networks(alone).members(data.x[rows])[0]  # noqa: B023

        said = np.stack([dealt.out_of_part(deal, say) for deal in range(dealt.n_deals)])
        found.append((networks, said))
    return found, trained.interrupted
