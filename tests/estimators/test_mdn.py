"""MDN on mixtures with known likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nkcme import MDN, metrics
from nkcme.estimators.mdn import LOG_STD


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
