"""Well-known environments: each trains for a moment, from Python and on the command line."""

from __future__ import annotations

import importlib.util

import gymnasium
import pytest
from gymnasium.wrappers import TransformReward

from nkcme.cli import rl_train
from nkcme.cli.app import run
from nkcme.rl import Settings, load, train
from support.agents_at_hand import SHORT, short_recipe

SETTINGS = Settings(**SHORT | {"n_steps": 200})


def lander():
    return TransformReward(gymnasium.make("LunarLander-v3"), lambda reward: reward / 10)


# Box2D's types have no module, of which Python 3.11 warns where they are made.
NEEDS_BOX2D = [
    pytest.mark.skipif(
        importlib.util.find_spec("Box2D") is None,
        reason="LunarLander needs Box2D: pip install 'gymnasium[box2d]'",
    ),
    pytest.mark.filterwarnings("ignore:.*has no __module__ attribute:DeprecationWarning"),
]


@pytest.mark.parametrize(
    ("env", "size"),
    [
        ("FrozenLake-v1", 16),
        ("Taxi-v4", 500),
        pytest.param(lander, 8, marks=NEEDS_BOX2D),
    ],
)
def test_it_trains_from_python(env, size):
    result = train(env, "dqn", SETTINGS)
    assert (result.observation_size, result.n_steps) == (size, 200)
    observation = 3 if result.observations.n_states else [0.0] * 8
    assert type(result.act(observation)) is int


@pytest.mark.parametrize(
    "env",
    [
        "FrozenLake-v1",
        "Taxi-v4",
        "Breakout-MinAtar",
        pytest.param("lunar_module:lander", marks=NEEDS_BOX2D),
    ],
)
def test_it_trains_on_the_command_line(env, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rl_train, "recipe", short_recipe)
    monkeypatch.setattr(rl_train, "_draw", lambda *_: [])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lunar_module.py").write_text(
        "import gymnasium\n"
        "from gymnasium.wrappers import TransformReward\n\n\n"
        "def lander():\n"
        "    return TransformReward(gymnasium.make('LunarLander-v3'), lambda r: r / 10)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    command = ["rl", "train", env, "--steps", "200", "--agent", "dqn", "--out", "a"]
    assert run(command) == 0, capsys.readouterr().err
    assert f"in {env}" in capsys.readouterr().out
    assert load("a").n_steps == 200
