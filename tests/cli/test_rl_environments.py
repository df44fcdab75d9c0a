"""`nkcme rl` in environments of one's own, of a module in the current directory."""

import json
import sys

import gymnasium
import pytest

from nkcme import rl
from nkcme.cli import rl_train
from support.agents_at_hand import short_recipe

MODULE = """
import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit, TransformReward


class Walk(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        return self.place, float(self.place == 3), self.place == 3, False, {}


class Painted(Walk):
    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def render(self):
        return np.full((8, 8, 3), 60 * self.place, np.uint8)


def wrapped(render_mode=None):
    return TransformReward(TimeLimit(Painted(render_mode), 20), lambda reward: 2 * reward)


def broken():
    raise OSError("no map")


gymnasium.register("Walk-v0", entry_point=Walk, max_episode_steps=20)
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path, monkeypatch):
    """The current directory, with a module that nothing has imported yet."""
    (tmp_path / "my_walks.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(rl_train, "recipe", short_recipe)
    yield
    sys.modules.pop("my_walks", None)
    gymnasium.registry.pop("Walk-v0", None)


def forget():
    """Stands for the end of the process that trained."""
    del sys.modules["my_walks"]
    del gymnasium.registry["Walk-v0"]


TRAIN = ("--steps", 200, "--agent", "dqn", "--out", "a")


def test_a_registered_name_of_an_imported_module(call, refuse):
    call("rl", "train", "Walk-v0", "--import", "my_walks", *TRAIN)
    forget()
    assert "--import MODULE" in refuse("rl", "eval", "a")
    printed = json.loads(
        call("rl", "eval", "a", "--import", "my_walks", "--episodes", 3, "--json")[0]
    )
    assert (printed["env"], printed["backend"]) == ("Walk-v0", "gymnasium")
    assert "cannot be drawn" in refuse("rl", "watch", "a", "--import", "my_walks")


def test_a_function_that_wraps(call, refuse):
    printed = call("rl", "train", "my_walks:wrapped", *TRAIN)[0]
    assert printed.splitlines()[-1].endswith("/a --import my_walks")  # what to do next
    result = rl.load("a")
    assert (result.env_name, result.env_by_name) == ("my_walks:wrapped", True)
    assert result.observations.n_states == 4
    forget()
    assert "add --import my_walks" in refuse("rl", "eval", "a")
    call("rl", "eval", "a", "--import", "my_walks", "--episodes", 2)
    call("rl", "watch", "a", "--env", "my_walks:wrapped")
    call("rl", "report", "a", "--env", "my_walks:wrapped", "--out", "r.html")


def test_agents_of_an_object_are_played_in_the_environment_that_is_named(call, refuse):
    sys.path.append(".")
    import my_walks

    rl.train(my_walks.wrapped(), "dqn", short_recipe("tuned", "dqn", "", 200)[1]).save("a")
    assert "--env MODULE:NAME" in refuse("rl", "eval", "a")
    printed = call("rl", "eval", "a", "--env", "my_walks:wrapped", "--episodes", 2)[0]
    assert "my_walks:wrapped (gymnasium)" in printed


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["Walk-v0"], "--import MODULE"),
        (["Walk-v0", "--import", "no_walks"], "'no_walks' cannot be imported"),
        (["my_walks:broken"], "my_walks:broken could not be made: OSError: no map"),
        (["my_walks:Talk"], "neither registers an environment 'Talk'"),
    ],
)
def test_environments_that_cannot_be_made_are_refused(arguments, why, refuse):
    assert why in refuse("rl", "train", *arguments, *TRAIN)
