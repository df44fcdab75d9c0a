"""Models and agents saved by earlier versions load and predict what they predicted.

tests/data/saved_models holds a table X.csv, models that were fitted to it (by commit c93f80b; those
called first-version by 204cf3a), and their predictions. On the machine that wrote them the bits are
the same; elsewhere sums have another order.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nkcme import Embedding, load, rl
from nkcme.distributions.sample import SampleDistribution

DATA = Path(__file__).parents[1] / "data"
MODELS = sorted(path.stem for path in (DATA / "saved_models").glob("*.npz"))
AGENTS = sorted(path.stem for path in (DATA / "saved_agents").glob("*.npz"))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_predicts_what_it_predicted(name):
    expected = np.load(DATA / "saved_models" / f"{name}.npz")
    dist = load(DATA / "saved_models" / name).predict_dist(
        pd.read_csv(DATA / "saved_models" / "X.csv")
    )
    embedding = isinstance(dist, Embedding)
    mean = dist.embedding_mean() if embedding else dist.mean()
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-4, atol=1e-4)
    # Earlier versions left the spread within bins out of std, and took it from signed weights.
    exact = dist.n_outputs > 1 or not isinstance(dist, Embedding | SampleDistribution)
    if exact or not (embedding and np.any(dist.weights < 0)):
        np.testing.assert_allclose(dist.std(), expected["std"], 1e-4 if exact else 0.03, 1e-4)
    if dist.n_outputs == 1:
        # Atoms that are not evenly spaced were spread evenly over their bins, which moved means.
        off = np.abs(dist.ppf([0.05, 0.5, 0.95]) - expected["ppf"]) / expected["std"][:, None]
        assert np.max(off) < (0.2 if embedding else 1e-3)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_acts_as_it_acted(name):
    expected = np.load(DATA / "saved_agents" / f"{name}.npz")
    agents = rl.load(DATA / "saved_agents" / name)
    observations = np.load(DATA / "saved_agents" / "observations.npy")
    np.testing.assert_array_equal(agents.act(observations), expected["action"])
    np.testing.assert_array_equal(agents.curve.returns, expected["curve"])
