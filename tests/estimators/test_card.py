"""The diffusion against Gaussian conditionals, whose noise can be told exactly."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.estimators.card import BETAS, CARD, NoiseNetwork, _diffuse, _kept, betas

N_STEPS = 1000


class Teller(eqx.Module):
    """The noise in y_t when y is N(centre, spread^2): E[e | y_t], linear in y_t.

    y_t = sqrt(A) y + (1 - sqrt(A)) f + sqrt(1 - A) e is Gaussian, and so is e with it.
    """

    centre: jax.Array
    spread: jax.Array

    def before(self, x, mean):
        return mean

    def after(self, guide, noisy, time):
        kept = _kept(N_STEPS)[jnp.floor(time * N_STEPS).astype(int)]
        root = jnp.sqrt(kept)
        away = noisy - root * self.centre - (1 - root) * guide
        return jnp.sqrt(1 - kept) * away / (kept * self.spread**2 + 1 - kept)


class Oracle(eqx.Module):
    noise: Teller
    guide: jax.Array
    low: jax.Array = eqx.field(default_factory=lambda: jnp.full(1, -jnp.inf))
    high: jax.Array = eqx.field(default_factory=lambda: jnp.full(1, jnp.inf))

    def mean(self, x):
        return self.guide


def spread_after_all_steps(spread):
    """Of the chain undone by who tells the noise exactly, by Bayes' rule for Gaussians.

    With f = 0 and y centred, y_t = r y_{t-1} + b e with r^2 + b^2 = 1. Undoing a step draws from
    q(y_{t-1} | y_t, y_0) at y_0 = E[y | y_t]: precisions add, and all is linear in y_t.
    """
    beta = betas(N_STEPS)
    kept = np.cumprod(1 - beta)
    before = np.concatenate([[1.0], kept[:-1]])
    variance = 1.0
    for b, a, a_before in zip(beta[::-1], kept[::-1], before[::-1], strict=True):
        clean = np.sqrt(a) * spread**2 / (a * spread**2 + 1 - a)  # E[y | y_t] = clean y_t
        if a_before == 1:
            return np.sqrt(clean**2 * variance)
        precision = (1 - b) / b + 1 / (1 - a_before)
        slope = (np.sqrt(1 - b) / b + np.sqrt(a_before) * clean / (1 - a_before)) / precision
        variance = slope**2 * variance + 1 / precision
    raise AssertionError


@pytest.mark.parametrize(("guide", "spread"), [(0.3, 0.5), (-1.0, 0.5), (0.3, 0.05), (0.3, 2.0)])
def test_who_tells_the_noise_exactly_draws_the_conditional_exactly(guide, spread):
    # Whatever the guide: it only says where the diffusion starts.
    oracle = Oracle(Teller(jnp.float32(0.3), jnp.float32(spread)), jnp.full(1, guide))
    inputs = jnp.zeros((2, 1))
    draws = np.asarray(_diffuse(oracle, inputs, jax.random.key(0), 20000, N_STEPS, False))
    assert draws.shape == (20000, 2, 1)
    # Five standard errors of 20,000 draws, and the little that a thousand steps leave.
    np.testing.assert_allclose(draws.mean(axis=0), 0.3, atol=5 * spread / np.sqrt(20000) + 0.01)
    expected = spread_after_all_steps(spread)
    np.testing.assert_allclose(expected, spread, rtol=0.1)  # what a thousand steps can do
    np.testing.assert_allclose(draws.std(axis=0), expected, rtol=0.03)
    assert abs(np.corrcoef(draws[:, 0, 0], draws[:, 1, 0])[0, 1]) < 0.04


def test_shared_noise_gives_rows_the_same_draws_about_their_means():
    oracle = Oracle(Teller(jnp.float32(0.3), jnp.float32(0.5)), jnp.full(1, 0.1))
    draws = np.asarray(_diffuse(oracle, jnp.zeros((3, 1)), jax.random.key(0), 50, N_STEPS, True))
    np.testing.assert_allclose(draws[:, 1:], draws[:, :1].repeat(2, axis=1), atol=1e-5)


def test_after_the_last_step_next_to_nothing_is_left():
    kept = np.asarray(_kept(N_STEPS))
    np.testing.assert_allclose(kept[0], 1 - BETAS[0], rtol=1e-6)
    assert kept[-1] < 1e-4
    for fewer in (1, 10, 50, 300):
        np.testing.assert_allclose(_kept(fewer)[-1], kept[-1], rtol=1e-4)
    np.testing.assert_allclose(betas(1000), np.linspace(*BETAS, 1000))


def test_the_noise_network_is_the_same_in_one_piece_and_in_two():
    network = NoiseNetwork(3, 2, (16, 8), key=jax.random.key(0))
    x, mean, noisy = (jax.random.normal(jax.random.key(i), (n,)) for i, n in enumerate((3, 2, 2)))
    whole = jnp.concatenate([noisy, mean, x])
    np.testing.assert_allclose(
        network.before(x, mean) + network.layers[0].weight[:, :2] @ noisy,
        network.layers[0](whole),
        rtol=1e-5,
    )
    assert not np.allclose(network(x, mean, noisy, 0.1), network(x, mean, noisy, 0.9))


def gaussian(n, seed):
    """y = 3 + 2 x + s(x) e with s from .2 to 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return x[:, None], 3 + 2 * x + (0.6 + 0.4 * x) * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    model = CARD(
        hidden=(32,),
        noise_hidden=(32, 32),
        n_diffusion_steps=150,
        n_draws=300,
        mean_epochs=50,
        epochs=150,
        learning_rate=3e-3,
        random_state=0,
    )
    return model.fit(*gaussian(4000, 0))


def test_a_gaussian_conditional_is_learned_with_its_mean_and_deviation(fitted):
    x = np.linspace(-0.8, 0.8, 5)[:, None]
    dist = fitted.predict_dist(x)
    np.testing.assert_allclose(dist.mean(), 3 + 2 * x[:, 0], atol=0.15)
    np.testing.assert_allclose(dist.std(), 0.6 + 0.4 * x[:, 0], rtol=0.2)
    fresh = fitted.sample(x, 300, random_state=1)
    np.testing.assert_allclose(fresh.mean(axis=0), dist.mean(), atol=0.2)
    np.testing.assert_allclose(fresh.std(axis=0), dist.std(), rtol=0.2)


def test_chosen_rows_make_fresh_draws_of_their_own(fitted):
    x = np.array([[-0.8], [0.8]])
    second = fitted.predict_dist(x)[1]
    draws = second.rvs(200, 0)
    assert draws.shape == (200, 1)
    assert abs(draws.mean() - 4.6) < 0.2
    assert not np.isin(draws, second.draws).any()


def test_no_draw_is_far_from_the_range_of_y_however_little_was_learned():
    x, y = gaussian(100, 0)
    model = CARD(hidden=(8,), noise_hidden=(8,), mean_epochs=1, epochs=1, random_state=0)
    draws = model.set_params(n_diffusion_steps=5).fit(x, y).sample(10 * x, 50, random_state=0)
    assert np.abs(draws - y.mean()).max() < 5 * np.ptp(y)


def test_the_mean_is_learned_first_and_then_left_alone():
    x, y = gaussian(100, 0)
    short, long = (
        CARD(hidden=(8,), noise_hidden=(8,), mean_epochs=3, epochs=e, batch_size=50).set_params(
            random_state=0, n_diffusion_steps=10
        )
        for e in (2, 5)
    )
    short.fit(x, y), long.fit(x, y)
    assert (short.n_steps_, long.n_steps_) == (2 * (3 + 2), 2 * (3 + 5))
    for ours, theirs in zip(
        jax.tree.leaves(short.model_.mean), jax.tree.leaves(long.model_.mean), strict=True
    ):
        # The rate's course is that of three epochs in both, so the bits are the same.
        np.testing.assert_array_equal(ours, theirs)
    assert not np.array_equal(short.model_.noise.last.weight, long.model_.noise.last.weight)
