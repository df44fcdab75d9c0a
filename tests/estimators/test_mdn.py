"""MDN on mixtures with known likelihood."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from nkcme import MDN, metrics
from nkcme.estimators.mdn import LOG_STD, log_likelihood


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_likelihood_is_that_of_the_mixture(n_outputs):
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(4))
    means, stds = rng.normal(size=(2, 4, n_outputs))
    stds = np.exp(stds)
    for y in rng.normal(size=(5, n_outputs)):
        components = [
            stats.multivariate_normal(m, np.diag(s**2)).logpdf(y)
            for m, s in zip(means, stds, strict=True)
        ]
        ours = log_likelihood(*map(jnp.asarray, (np.log(weights), means, np.log(stds), y)))
        np.testing.assert_allclose(ours, logsumexp(components, b=weights), rtol=1e-5)


def test_the_log_likelihood_is_finite_far_from_every_component():
    log_weights, means, log_stds = jnp.log(jnp.ones(2) / 2), jnp.zeros((2, 1)), jnp.zeros((2, 1))
    value = log_likelihood(log_weights, means, log_stds, jnp.asarray([1e4]))
    np.testing.assert_allclose(value, -0.5e8 - 0.5 * np.log(2 * np.pi), rtol=1e-6)


def bimodal(n, seed):
    """y = x + B + 0.2 e with B = 1 with probability 1 / (1 + exp(-x)), else -1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    up = rng.uniform(size=n) < 1 / (1 + np.exp(-x))
    return x[:, None], x + np.where(up, 1, -1) + 0.2 * rng.normal(size=n)


def true_log_density(x, y):
    share = 1 / (1 + np.exp(-x[:, 0]))
    low, high = (stats.norm(x[:, 0] + b, 0.2).pdf(y) for b in (-1, 1))
    return np.log((1 - share) * low + share * high)


@pytest.fixture(scope="module")
def fitted():
    model = MDN(hidden=(32, 32), n_components=3, epochs=80, learning_rate=1e-2, random_state=0)
    return model.fit(*bimodal(4000, 0))


def test_it_learns_a_known_mixture_up_to_its_entropy(fitted):
    x, y = bimodal(4000, 1)
    dist = fitted.predict_dist(x)
    excess = metrics.nll(dist.logpdf(y)) - metrics.nll(true_log_density(x, y))
    assert 0 < excess < 0.03  # nats; the true density has the lowest expected score
    np.testing.assert_allclose(dist.mean(), x[:, 0] + np.tanh(x[:, 0] / 2), atol=0.15)


def test_the_loss_in_the_history_is_the_negative_log_likelihood_of_the_prediction(fitted):
    x, y = bimodal(4000, 0)
    in_standard_units = fitted.predict_dist(x).logpdf(y) + np.log(fitted.scaler_.scale[0])
    # The history has the mean over the minibatches of a chunk.
    assert abs(fitted.history_["loss"][-1] + in_standard_units.mean()) < 0.02


def test_standard_deviations_are_bounded_where_targets_repeat():
    x = np.linspace(-1, 1, 64)[:, None]
    model = MDN(hidden=(8,), n_components=2, epochs=3000, learning_rate=0.1, random_state=0)
    model.set_params(batch_size=64, validation_fraction=0.0, standardize=False)
    dist = model.fit(x, np.sign(x[:, 0])).predict_dist(x)
    assert np.isfinite(dist.logpdf(np.sign(x[:, 0]))).all()
    assert dist.stds.min() >= np.exp(LOG_STD[0]) * (1 - 1e-6)
