"""The noise network."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.estimators.card.networks import NoiseNetwork


@pytest.fixture(scope="module")
def network():
    return NoiseNetwork(3, 2, (16, 8), key=jax.random.key(0))


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(0)
    return tuple(jnp.asarray(rng.normal(size=n), jnp.float32) for n in (3, 2, 2))  # x, f(x), y_t


def test_the_terms_that_are_the_same_in_all_steps_complete_the_first_layer(network, inputs):
    x, mean, noisy = inputs
    np.testing.assert_allclose(
        network.condition(x, mean) + network.layers[0].weight[:, :2] @ noisy,
        network.layers[0](jnp.concatenate([noisy, mean, x])),
        rtol=1e-5,
        atol=1e-6,  # float32 sums in another order
    )


def test_the_noise_depends_on_every_input_and_on_the_step(network, inputs):
    gradients = jax.grad(lambda *given: jnp.sum(network(*given)), argnums=(0, 1, 2, 3))(
        *inputs, jnp.float32(0.3)
    )
    for gradient in gradients:
        assert np.all(gradient != 0.0)
