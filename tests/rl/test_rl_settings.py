"""Settings and presets: the paper's numbers, and what cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.rl.agents import AGENTS
from nkcme.rl.presets import ENVIRONMENTS, PRESETS, preset
from nkcme.rl.settings import Settings


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("name", AGENTS)
def test_the_papers_recipe(name, env):
    """Appendix E, and what its authors' runs settled."""
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
    # "Single" has the settings of CDQN.
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
def test_presets_are_there_for_any_environment(which, name):
    agent, settings = preset(which, name, "Elsewhere-v0")
    assert type(agent) is type(AGENTS[name])
    assert isinstance(settings, Settings)


def test_unknown_presets_and_agents_are_refused():
    with pytest.raises(NkcmeError, match="paper, tuned"):
        preset("x", "fuse", "CartPole-v1")
    with pytest.raises(NkcmeError, match="fuse, single"):
        preset("paper", "x", "CartPole-v1")


def test_truncation_is_no_end_by_default():
    assert Settings().bootstrap_on_truncation


def test_settings_go_to_a_config_and_back():
    settings = Settings(hidden=[8, 9], n_step=3)
    assert settings.hidden == (8, 9)
    assert Settings(**settings.to_config()) == settings
    assert hash(Settings(**settings.to_config())) == hash(settings)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_steps": 0},
        {"n_steps": 150},  # no multiple of eval_every
        {"eval_every": 101},  # nor this of update_every
        {"target_every": 3},
        {"buffer_size": 9_999},
        {"prefill": 20_000},
        {"prefill": 2, "n_step": 3},
        {"hidden": (0,)},
        {"hidden": 5},
        {"activation": "x"},
        {"schedule": "x"},
        {"learning_rate": 0.0},
        {"learning_rate": np.nan},
        {"gamma": 1.0},
        {"gamma": 0.0},
        {"epsilon": 1.5},
        {"eval_epsilon": -0.1},
        {"averaging": 1.0},
        {"reward_scale": 0.0},
        {"batch_size": 2.5},
        {"n_step": 0},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(bad):
    with pytest.raises(NkcmeError) as error:
        replace(Settings(), **bad)
    text = str(error.value)
    assert "\n" not in text
    assert any(name in text for name in bad)
