"""Presets: the paper's values, and names that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.rl.agents import AGENTS
from nkcme.rl.presets import ENVIRONMENTS, PRESETS, preset
from nkcme.rl.settings import Settings


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("name", AGENTS)
def test_the_paper_preset_is_that_of_appendix_e(name, env):
    """And of its authors' runs, where the appendix does not state a value."""
    agent, settings = preset("paper", name, env)
    common = {
        "n_steps": 500_000,
        "hidden": (50, 50),
        "activation": "relu",
        "schedule": "constant",
        "gamma": 0.99,
        "batch_size": 32,
        "buffer_size": 10_000,
        "prefill": 10_000,
        "update_every": 2,
        "epsilon": 0.01,
        "epsilon_steps": 10_000,
        "eval_every": 100,
        "eval_epsilon": 0.001,
        "bootstrap_on_truncation": False,
        "double": False,
        "n_step": 1,
        "prioritized": False,
        "averaging": 0.0,
    }
    for field, value in common.items():
        assert getattr(settings, field) == value, field
    slow = env == "CartPole-v1"
    assert settings.learning_rate == (1e-4 if slow else 1e-3)
    assert settings.adam_eps == (1e-5 if slow else 1e-4)
    scaled = name == "mmdqn" and env != "Acrobot-v1"
    # "single" has the settings of CDQN.
    rare = scaled or (slow and name in ("c51", "single"))
    assert settings.target_every == (1000 if rare else 100)
    assert settings.reward_scale == (0.1 if scaled else 1.0)
    if name == "mmdqn":
        np.testing.assert_allclose(
            agent.bandwidths, np.linspace(1.0, 10.0 if scaled else 100.0, 10)
        )
        assert agent.n_particles == 51
    else:
        assert agent == AGENTS[name]


@pytest.mark.parametrize("which", PRESETS)
@pytest.mark.parametrize("name", AGENTS)
def test_every_environment_has_presets(which, name):
    agent, settings = preset(which, name, "Elsewhere-v0")
    assert type(agent) is type(AGENTS[name])
    assert isinstance(settings, Settings)


def test_unknown_presets_and_agents_are_refused():
    with pytest.raises(NkcmeError, match="paper, tuned"):
        preset("x", "fuse", "CartPole-v1")
    with pytest.raises(NkcmeError, match="fuse, single"):
        preset("paper", "x", "CartPole-v1")
