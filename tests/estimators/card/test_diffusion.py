"""The diffusion, on Gaussian conditionals: the best noise predictor is known in closed form."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.estimators.card.diffusion import BETAS, add_noise, alpha_bars, betas, sample

N_STEPS = 100
N_SAMPLES = 20_000

#: Of y, and of f(x): the guide only sets where the diffusion starts.
MEAN = 0.3
GUIDE_AND_STD = np.array([[0.3, 0.5], [-1.0, 0.5], [0.3, 0.05], [0.3, 2.0]], np.float32)


class ExactNoise(eqx.Module):
    """E[e | y_t] for y ~ N(MEAN, std^2), which is linear in y_t, as (y_t, e) is Gaussian."""

    def condition(self, x, mean):
        return x

    def noise(self, x, noisy, time):
        guide, std = x
        alpha_bar = alpha_bars(N_STEPS)[jnp.floor(time * N_STEPS).astype(int)]
        root = jnp.sqrt(alpha_bar)
        centered = noisy - root * MEAN - (1 - root) * guide
        return jnp.sqrt(1 - alpha_bar) * centered / (alpha_bar * std**2 + 1 - alpha_bar)


class ExactModel(eqx.Module):
    """x = (guide, std) -> the diffusion without any error of the networks."""

    noise: ExactNoise
    low: jax.Array
    high: jax.Array

    def mean(self, x):
        return x[:1]


@pytest.fixture
def exact():
    return ExactModel(ExactNoise(), jnp.full(1, -jnp.inf), jnp.full(1, jnp.inf))


def exact_mean_and_std(guide, std, n_steps):
    """Mean and standard deviation of the samples of an exact model, by Bayes' rule for Gaussians.

    In v = y - f the forward step is v_t = r v_{t-1} + b e with r^2 + b^2 = 1. A reverse step draws
    from q(v_{t-1} | v_t, v_0) at v_0 = E[v | v_t]. Precisions add, and everything is linear in v_t.
    """
    beta = betas(n_steps)
    alpha_bar = np.cumprod(1 - beta)
    previous = np.concatenate([[1.0], alpha_bar[:-1]])
    target, mean, variance = MEAN - guide, 0.0, 1.0
    for b, a, a_previous in zip(beta[::-1], alpha_bar[::-1], previous[::-1], strict=True):
        gain = np.sqrt(a) * std**2 / (a * std**2 + 1 - a)  # E[v | v_t] = target + gain (...)
        clean, clean_slope = target + gain * (mean - np.sqrt(a) * target), gain
        if a_previous == 1:
            return guide + clean, np.sqrt(clean_slope**2 * variance)
        precision = (1 - b) / b + 1 / (1 - a_previous)
        of_noisy = np.sqrt(1 - b) / b / precision
        of_clean = np.sqrt(a_previous) / (1 - a_previous) / precision
        mean = of_noisy * mean + of_clean * clean
        variance = (of_noisy + of_clean * clean_slope) ** 2 * variance + 1 / precision
    raise AssertionError("the first step starts from A_0 = 1")


def test_an_exact_noise_predictor_samples_the_exact_distribution(exact):
    samples = np.asarray(
        sample(exact, GUIDE_AND_STD, jax.random.key(0), N_SAMPLES, N_STEPS, False)
    )[..., 0]
    for found, (guide, std) in zip(samples.T, GUIDE_AND_STD.astype(float), strict=True):
        mean, expected_std = exact_mean_and_std(guide, std, N_STEPS)
        # Five standard errors.
        np.testing.assert_allclose(found.mean(), mean, atol=5 * expected_std / N_SAMPLES**0.5)
        np.testing.assert_allclose(found.std(), expected_std, rtol=5 / (2 * N_SAMPLES) ** 0.5)
    correlation = np.corrcoef(samples.T) - np.eye(len(GUIDE_AND_STD))
    assert np.abs(correlation).max() < 0.04


def test_a_thousand_steps_reach_the_distribution_of_y_for_any_guide():
    for guide, std in GUIDE_AND_STD.astype(float):
        mean, found = exact_mean_and_std(guide, std, 1000)
        np.testing.assert_allclose(mean, MEAN, atol=0.01)
        np.testing.assert_allclose(found, std, rtol=0.1)


def test_shared_noise_gives_equal_rows_equal_samples(exact):
    rows = np.tile(GUIDE_AND_STD[:1], (3, 1))
    samples = np.asarray(sample(exact, rows, jax.random.key(0), 50, N_STEPS, True))
    np.testing.assert_allclose(samples[:, 1:], samples[:, :1].repeat(2, axis=1), atol=1e-5)


def test_bounds_apply_while_little_of_y_remains(exact):
    """At the first reverse steps A_t is close to zero, and so is the divisor of the estimate."""
    bounded = eqx.tree_at(lambda m: (m.low, m.high), exact, (jnp.full(1, 5.0), jnp.full(1, 5.0)))
    early = np.sqrt(np.asarray(alpha_bars(N_STEPS))) < 0.5
    assert early[-1]
    assert not early[0]
    free, pulled = (
        np.asarray(sample(model, GUIDE_AND_STD, jax.random.key(0), 50, N_STEPS, False))
        for model in (exact, bounded)
    )
    assert np.all(pulled > free)


def test_every_number_of_steps_ends_with_the_same_share_of_y():
    thousand = np.asarray(alpha_bars(1000))
    np.testing.assert_allclose(thousand[0], 1 - BETAS[0], rtol=1e-6)
    assert thousand[-1] < 1e-4
    for n_steps in (1, 10, 50, 300):
        np.testing.assert_allclose(alpha_bars(n_steps)[-1], thousand[-1], rtol=1e-4)
    np.testing.assert_allclose(betas(1000), np.linspace(*BETAS, 1000))


def test_noised_targets_have_the_variance_of_their_step():
    """One forward step after another gives the distribution that `add_noise` reaches directly."""
    y, guide = 1.7, -0.4
    mean, variance = y, 0.0
    for beta, alpha_bar in zip(betas(20), np.asarray(alpha_bars(20), float), strict=True):
        mean = np.sqrt(1 - beta) * mean + (1 - np.sqrt(1 - beta)) * guide
        variance = (1 - beta) * variance + beta
        np.testing.assert_allclose(add_noise(y, guide, alpha_bar, 0.0), mean, rtol=1e-5)
        added = add_noise(y, guide, alpha_bar, 1.0) - add_noise(y, guide, alpha_bar, 0.0)
        np.testing.assert_allclose(added**2, variance, rtol=1e-5)
