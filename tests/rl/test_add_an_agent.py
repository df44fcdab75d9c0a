"""A new agent in one file: the template, filled in, passes the contract and can be trained."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from contracts.test_agents import AgentContract
from nkcme import rl
from nkcme.errors import ModelFileError
from nkcme.rl.agents.base import KINDS
from nkcme.rl.risky_path import RiskyPath

TEMPLATE = Path(__file__).parents[2] / "docs" / "templates" / "agent.py"

BLANK = re.compile(r'raise NotImplementedError\("(\w+)"\)')

#: DQN with the Huber loss.
FILLED_IN = {
    "width": "return 1",
    "value": "return output[..., 0]",
    "losses": """import optax
        return optax.huber_loss(
            output[:, 0], reward + discount * target[:, 0], delta=self.my_parameter
        )""",
    "distribution": """from nkcme.distributions.sample import Draws
        return Draws(scale * output.T)""",
}


@pytest.fixture(scope="module")
def filled_in(tmp_path_factory):
    """The class in a file that is the template with its blanks filled in."""
    text = TEMPLATE.read_text(encoding="utf-8")
    assert set(BLANK.findall(text)) == set(FILLED_IN)
    path = tmp_path_factory.mktemp("agent") / "my_agent.py"
    path.write_text(BLANK.sub(lambda blank: FILLED_IN[blank[1]], text), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("my_agent", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["my_agent"] = module
    try:
        spec.loader.exec_module(module)
        yield module.MyAgent
    finally:
        del sys.modules["my_agent"]
        KINDS.pop("my-agent", None)


class TestFilledInTemplate(AgentContract):
    @pytest.fixture
    def agent(self, filled_in):
        return filled_in(my_parameter=0.5)


def test_the_new_agent_is_trained_saved_and_loaded(filled_in, tmp_path, monkeypatch):
    settings = rl.Settings(
        n_steps=4000,
        hidden=(16,),
        learning_rate=3e-3,
        gamma=0.9,
        prefill=1000,
        epsilon=0.3,
        eval_every=1000,
    )
    result = rl.train(RiskyPath(), filled_in(my_parameter=10.0), settings)
    # In the valley, one step before the end, every action gives a reward of 1.
    valley = RiskyPath.observe(2)
    for returns in result.return_distribution(valley):
        np.testing.assert_allclose(returns.mean(), 1.0, atol=0.15)
    result.save(tmp_path / "agents")
    loaded = rl.load(tmp_path / "agents")
    assert loaded.agent == filled_in(my_parameter=10.0)
    states = np.eye(3)
    for ours, theirs in zip(
        loaded.return_distribution(states), result.return_distribution(states), strict=True
    ):
        np.testing.assert_array_equal(ours.mean(), theirs.mean())
    # Without the module that defines its class the file is refused.
    monkeypatch.delitem(KINDS, "my-agent")
    with pytest.raises(ModelFileError, match="found 'my-agent': import the module") as error:
        rl.load(tmp_path / "agents")
    assert "\n" not in str(error.value)
