"""Agents trained on a chain of two states, where return distributions have a closed form."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.rl import C51, DQN, MMDQN, NKDQN, Settings, train
from support.tiny_envs import Chain

GAMMA = 0.5
# After s1 the episode ends. After s0 follows the better action of s1: 0 or 3, times gamma.
RETURNS = {
    (1, 0): [-1.0, 1.0],
    (1, 1): [0.0, 3.0],
    (0, 0): [0.0, 1.5],
    (0, 1): [-1.0, 0.5, 1.0, 2.5],
}
SETTINGS = Settings(
    n_steps=3000,
    hidden=(16,),
    learning_rate=5e-3,
    schedule="cosine",
    gamma=GAMMA,
    update_every=2,
    target_every=100,
    buffer_size=4000,
    prefill=4000,
    epsilon=1.0,
    eval_every=1000,
    batch_size=32,
)
SUPPORT = (-2.0, 4.0)
AGENTS = {
    "fuse": NKDQN(n_atoms=25, support=SUPPORT),
    "c51": C51(n_atoms=25, support=SUPPORT),
    "mmdqn": MMDQN(n_particles=8, bandwidths=(1.0, 4.0)),
    "dqn": DQN(),
}

#: Between the values, where the CDF is flat.
BETWEEN = np.array([-1.5, -0.5, 0.25, 0.75, 1.25, 2.0, 2.75, 3.5])


@pytest.mark.parametrize("name", AGENTS)
def test_the_learned_return_distribution_is_the_true_one(name):
    result = train(Chain(), AGENTS[name], SETTINGS)
    for (state, action), values in RETURNS.items():
        returns = result.return_distribution(np.eye(2)[state])[action]
        # A probability of one half is estimated from about 1,000 rewards: its error is 0.016.
        np.testing.assert_allclose(returns.mean(), np.mean(values), atol=0.15)
        if name == "dqn":
            continue
        cdf = np.mean(np.array(values)[:, None] <= BETWEEN, axis=0)
        np.testing.assert_allclose(
            returns.cdf(BETWEEN, grid=True)[0], cdf, atol=0.15 if name == "mmdqn" else 0.08
        )
        if len(values) == 2:
            quantiles = returns.ppf([0.25, 0.75])[0]
            np.testing.assert_allclose(quantiles, values, atol=0.35 if name == "mmdqn" else 0.2)
    assert result.act(np.eye(2))[1] == 1
