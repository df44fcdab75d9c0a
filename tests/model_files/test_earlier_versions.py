"""Models and agents saved by earlier versions load and predict what they predicted.

tests/data/saved_models holds a table X.csv, models that were fitted to it (by commit c93f80b; those
called first-version by 204cf3a), and their predictions. On the machine that wrote them the bits are
the same; elsewhere sums have another order.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nkcme import load, rl

DATA = Path(__file__).parents[1] / "data"
MODELS = sorted(path.stem for path in (DATA / "saved_models").glob("*.npz"))
AGENTS = sorted(path.stem for path in (DATA / "saved_agents").glob("*.npz"))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_predicts_what_it_predicted(name):
    expected = np.load(DATA / "saved_models" / f"{name}.npz")
    dist = load(DATA / "saved_models" / name).predict_dist(
        pd.read_csv(DATA / "saved_models" / "X.csv")
    )
    predicted = {"mean": dist.mean(), "std": dist.std()}
    if dist.n_outputs == 1:
        predicted["ppf"] = dist.ppf([0.05, 0.5, 0.95])
    assert predicted.keys() == set(expected) - {"pdf"}
    for statistic, values in predicted.items():
        np.testing.assert_allclose(values, expected[statistic], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_acts_as_it_acted(name):
    expected = np.load(DATA / "saved_agents" / f"{name}.npz")
    agents = rl.load(DATA / "saved_agents" / name)
    observations = np.load(DATA / "saved_agents" / "observations.npy")
    np.testing.assert_array_equal(agents.act(observations), expected["action"])
    np.testing.assert_array_equal(agents.curve.returns, expected["curve"])
