"""Agents that the tests of reports share: training them takes most of the time."""

import pytest

from support.agents_at_hand import hardly_trained


@pytest.fixture(scope="session")
def cartpole():
    """Two agents that predict embeddings."""
    return hardly_trained("CartPole-v1")


@pytest.fixture(scope="session")
def cartpole_dqn():
    """One agent that predicts means."""
    return hardly_trained("CartPole-v1", "dqn", seeds=1)
