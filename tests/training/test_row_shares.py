"""Means over lanes of rows: a device with half of the lanes has a branch of the same sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.training.row_shares import RowShare, sum_of_pairs

RNG = np.random.default_rng(0)


def gradient(weight, batch):
    x, y = batch
    return jax.value_and_grad(lambda w: jnp.mean(jnp.square(x @ w - y)))(weight)


WEIGHT = RNG.normal(size=3).astype(np.float32)
BATCH = (
    RNG.normal(size=(64, 3)).astype(np.float32),
    RNG.lognormal(sigma=3.0, size=64).astype(np.float32),
)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_neighbours_are_added_first(n):
    values = RNG.lognormal(sigma=5.0, size=n).astype(np.float32)
    expected = list(values)
    while len(expected) > 1:
        odd = expected[len(expected) // 2 * 2 :]
        expected = [a + b for a, b in zip(expected[::2], expected[1::2], strict=False)] + odd
    assert sum_of_pairs(jnp.asarray(values)) == expected[0]


@pytest.mark.parametrize("lanes", [2, 4])
def test_halves_of_the_lanes_add_up_to_the_bits_of_all(lanes):
    mean = jax.jit(lambda n, batch: RowShare(n).mean(gradient, WEIGHT, batch), static_argnums=0)
    whole = mean(2 * lanes, BATCH)
    halves = [mean(lanes, [leaf[own] for leaf in BATCH]) for own in np.split(np.arange(64), 2)]
    both = jax.tree.map(lambda a, b: (a + b) / 2, *halves)
    jax.tree.map(np.testing.assert_array_equal, both, whole)


def test_the_mean_over_lanes_is_that_over_rows_also_for_several_replicas():
    weights = np.stack([WEIGHT, 2 * WEIGHT])
    of_all = jax.vmap(lambda w: RowShare().mean(gradient, w, BATCH))(weights)
    of_lanes = jax.vmap(lambda w: RowShare(8).mean(gradient, w, BATCH))(weights)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), of_lanes, of_all)
    alone = RowShare(8).mean(gradient, weights[1], BATCH)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b), of_lanes, alone)
