"""CARD on data whose conditional distribution is known."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme import CARD


def gaussian(n, seed):
    """y = 3 + 2 x + s(x) e with s from 0.2 to 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return x[:, None], 3 + 2 * x + (0.6 + 0.4 * x) * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    model = CARD(
        hidden=(16,),
        noise_hidden=(16, 16),
        n_diffusion_steps=50,
        n_draws=200,
        mean_epochs=50,
        epochs=150,
        learning_rate=1e-2,
        random_state=0,
    )
    return model.fit(*gaussian(2000, 0))


def test_it_learns_the_mean_and_the_deviation_of_a_gaussian(fitted):
    assert fitted.n_steps_ == 2000 // 256 * (50 + 150)
    x = np.linspace(-0.8, 0.8, 5)[:, None]
    dist = fitted.predict_dist(x)
    np.testing.assert_allclose(dist.mean(), 3 + 2 * x[:, 0], atol=0.15)
    np.testing.assert_allclose(dist.std(), 0.6 + 0.4 * x[:, 0], rtol=0.2)
    samples = fitted.sample(x, 200, random_state=1)
    # Both have a standard error of 0.04 to 0.07 at the largest deviation.
    np.testing.assert_allclose(samples.mean(axis=0), dist.mean(), atol=0.3)
    np.testing.assert_allclose(samples.std(axis=0), dist.std(), rtol=0.25)


def test_sample_runs_the_diffusion_again(fitted):
    x = np.array([[0.8]])
    samples = fitted.sample(x, 200, random_state=0)
    assert samples.shape == (200, 1)
    assert abs(samples.mean() - 4.6) < 0.3
    assert not np.isin(samples, fitted.predict_dist(x).draws).any()
    assert not np.isin(samples, fitted.sample(x, 200, random_state=1)).any()


def test_samples_of_an_untrained_model_stay_near_the_range_of_y():
    x, y = gaussian(100, 0)
    model = CARD(hidden=(8,), noise_hidden=(8,), mean_epochs=1, epochs=1, random_state=0)
    samples = model.set_params(n_diffusion_steps=5).fit(x, y).sample(10 * x, 50, random_state=0)
    assert np.abs(samples - y.mean()).max() < 5 * np.ptp(y)


@pytest.mark.parametrize(("fraction", "n_learned"), [(1.0, 10), (0.6, 6), (0.01, 1)])
def test_the_mean_learns_from_a_random_share_of_the_rows(fraction, n_learned):
    model, x = CARD(mean_fraction=fraction), np.zeros((10, 1))
    (learned,) = model._more_columns(x, 0)
    assert learned.sum() == n_learned
    (again,), (other,) = model._more_columns(x, 0), model._more_columns(x, 1)
    np.testing.assert_array_equal(learned, again)
    assert fraction == 1.0 or not np.array_equal(learned, other)
