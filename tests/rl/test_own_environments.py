"""Environments of one's own: objects, classes, functions, wrapped and vectorised ones."""

from __future__ import annotations

import sys
import threading
import types
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit, TransformReward

from nkcme.errors import NkcmeError
from nkcme.rl import DQN, NKDQN, Settings, make, train
from nkcme.rl.envs import make_again
from nkcme.rl.hosted import Hosted
from nkcme.rl.hosted_vector import HostedVector
from nkcme.rl.play import play, record
from nkcme.rl.transitions import Transitions

SETTINGS = Settings(
    n_steps=200,
    hidden=(8,),
    batch_size=8,
    target_every=20,
    buffer_size=200,
    prefill=100,
    epsilon_steps=100,
    eval_every=100,
)


class Walk(gymnasium.Env):
    """Places 0 to 3 of a line, as a state; at 3 the episode ends with a reward of 1.

    Its constructor has no ``render_mode``.
    """

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return self.place, {}

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        return self.place, float(self.place == 3), self.place == 3, False, {}


def limited_walk():
    return TimeLimit(Walk(), 20)


def vector_of_walks(mode=AutoresetMode.NEXT_STEP, n=3):
    return SyncVectorEnv([limited_walk] * n, autoreset_mode=mode)


@pytest.fixture
def module(monkeypatch):
    """A module `walks` with the class, a function, and a registered name."""
    made = types.ModuleType("walks")
    made.Walk, made.limited_walk = Walk, limited_walk
    monkeypatch.setitem(sys.modules, "walks", made)
    monkeypatch.setattr(Walk, "__module__", "walks")
    monkeypatch.setattr(limited_walk, "__module__", "walks")
    gymnasium.register("Walk-v0", entry_point=Walk, max_episode_steps=20)
    yield made
    del gymnasium.registry["Walk-v0"]


@pytest.mark.parametrize(
    ("given", "name", "by_name"),
    [
        (lambda: limited_walk, "walks:limited_walk", True),
        (lambda: Walk, "walks:Walk", True),
        (lambda: limited_walk(), "Walk", False),
        (lambda: lambda: limited_walk(), "Walk", False),
        (lambda: "Walk-v0", "Walk-v0", True),
        (lambda: "walks:Walk-v0", "walks:Walk-v0", True),
        (lambda: "walks:limited_walk", "walks:limited_walk", True),
        (lambda: gymnasium.make("Walk-v0"), "Walk-v0", False),
        (lambda: TransformReward(limited_walk(), lambda r: 2 * r), "Walk", False),
    ],
)
def test_any_environment_is_made(module, given, name, by_name):
    env = make(given())
    assert isinstance(env, Hosted)
    assert (env.name, env.by_name) == (name, by_name)
    assert (env.n_actions, env.observation_size) == (2, 4)
    other = env.another()
    assert env.reset(0).tolist() == other.reset(0).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert env.step(1)[0].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert other.step(0)[0].tolist() == [1.0, 0.0, 0.0, 0.0]  # its own state


@pytest.mark.parametrize(
    "given",
    [limited_walk, limited_walk(), vector_of_walks, vector_of_walks()],
    ids=["function", "environment", "function-of-vectors", "vectors"],
)
def test_agents_learn_in_an_environment_of_ones_own(given):
    """From each state it is best to go on; the values of the last two states are 1 and gamma."""
    settings = replace(SETTINGS, n_steps=600, learning_rate=1e-2, gamma=0.5, n_step=2)
    result = train(given, DQN(), settings, seeds=2)
    assert result.curve.returns.shape == (6, 2)
    assert result.curve.returns[-1].tolist() == [1.0, 1.0]
    for agent in range(2):
        assert [result.act(state, agent) for state in range(3)] == [1, 1, 1]
        values = result.return_distribution(np.eye(4), agent)[1].mean()
        np.testing.assert_allclose(values[1:3], [0.5, 1.0], atol=0.15)
    episodes = play(result, given, 7)
    assert episodes.lengths.tolist() == [3] * 7
    assert episodes.terminated.all()
    assert record(result, given).actions.tolist() == [1, 1, 1]


def test_a_state_gives_an_int_and_a_table_an_array():
    result = train(limited_walk, DQN(), SETTINGS)
    assert type(result.act(2)) is int
    assert type(result.act(np.int64(2))) is int
    assert type(result.act(np.eye(4)[2])) is int
    assert result.act(np.eye(4)).shape == (4,)
    for bad in (4, -1, 0.5, np.zeros(3), None):
        with pytest.raises(NkcmeError, match="whole number from 0 to 3"):
            result.act(bad)


def test_seeds_do_not_share_an_environment():
    """Each has copies of the object that was given, so a seed is the same alone and with others."""

    class Counting(Walk):
        episodes = 0

        def reset(self, *, seed=None, options=None):
            self.episodes += 1
            return super().reset(seed=seed)

        def step(self, action):
            place, reward, *rest = super().step(action)
            return place, reward * self.episodes, *rest

    both = train(TimeLimit(Counting(), 20), DQN(), SETTINGS, seeds=[3, 4])
    alone = train(TimeLimit(Counting(), 20), DQN(), SETTINGS, seeds=[4])
    np.testing.assert_array_equal(both.curve.returns[:, 1], alone.curve.returns[:, 0])


def test_an_evaluation_does_not_end_the_training_episode():
    """An episode of 150 steps spans an evaluation every 100."""
    lengths = []

    class Long(Walk):
        def reset(self, *, seed=None, options=None):
            self.t = 0
            return super().reset(seed=seed)

        def step(self, action):
            self.t += 1
            if self.t == 150:
                lengths.append(self.t)
            return 0, 1.0, False, self.t == 150, {}

        def __deepcopy__(self, memo):
            return Walk()

    train(Long(), DQN(), replace(SETTINGS, n_steps=500))
    assert len(lengths) == 600 // 150


class Locked(Walk):
    """An environment that cannot be copied."""

    def __init__(self):
        self.lock = threading.Lock()


def test_an_object_that_cannot_be_copied_is_refused():
    with pytest.raises(
        NkcmeError, match=r"Locked cannot be copied \(.*lock.*a class or a function"
    ):
        train(Locked(), DQN(), SETTINGS)
    assert train(Locked, DQN(), replace(SETTINGS, n_steps=100)).env_name.endswith("Locked")


def test_an_object_with_a_specification_is_made_again(module):
    gymnasium.register("Locked-v0", entry_point=Locked, max_episode_steps=20)
    try:
        env = make(gymnasium.make("Locked-v0")).another()
    finally:
        del gymnasium.registry["Locked-v0"]
    assert isinstance(env._env.unwrapped, Locked)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vectorised_environment_gives_the_rows_of_its_copies_in_turns(mode):
    """Each copy's rows follow each other, and none is of a step that only began an episode."""
    env = make(lambda: vector_of_walks(mode))
    assert isinstance(env, HostedVector)
    assert env.n_envs == 3
    rng = np.random.default_rng(0)
    stream = Transitions(env, seed=0)
    # Copy 0 always goes on, so its episodes end after three steps; copy 2 never does.
    choose = lambda o: [1, int(rng.integers(2)), 0]  # noqa: E731
    rows = np.stack([stream.take(choose) for _ in range(120)])
    for k in range(3):
        own = rows[k::3]
        before, after = own[:, :4].argmax(axis=1), own[:, 4:8].argmax(axis=1)
        action, reward, terminated, ended = own[:, 8:].T
        np.testing.assert_array_equal(after, np.maximum(0, before + 2 * action - 1))
        np.testing.assert_array_equal(reward, after == 3)
        np.testing.assert_array_equal(terminated, after == 3)
        np.testing.assert_array_equal(before[1:], np.where(ended[:-1] == 1, 0, after[:-1]))
    assert rows[0::3, 11].sum() == 13
    assert rows[2::3, 11].sum() == 2  # by the time limit
    assert rows[2::3, 10].sum() == 0


def test_a_vectorised_environment_states_when_it_resets():
    env = vector_of_walks()
    env.metadata = {}
    with pytest.raises(NkcmeError, match="AutoresetMode, found None"):
        make(env)


def test_evaluations_end_where_the_environment_has_no_limit():
    settings = replace(SETTINGS, n_steps=100, eval_epsilon=0.0)

    class Endless(Walk):
        def step(self, action):
            return 0, 1.0, False, False, {}

    with pytest.warns(UserWarning, match=r"did not end within 1,000 steps.*TimeLimit") as caught:
        result = train(Endless, DQN(), settings)
    assert [w.filename for w in caught] == [__file__]
    assert result.curve.returns.tolist() == [[1000.0]]
    assert play(result, Endless, 2).lengths.tolist() == [1000, 1000]


# --- failures


def broken():
    raise RuntimeError("the map\nis missing")


def needs_argument(path):
    return Walk()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (broken, r"broken could not be made: RuntimeError: the map is missing; correct it"),
        (needs_argument, r"missing 1 required positional argument: 'path'; .* a function without"),
        (lambda: 3, "expected a Gymnasium environment from <lambda>, got int"),
        (3, "a name, a Gymnasium environment, or a class or function that makes one; got int"),
        ("Nowhere-v9", "--import MODULE"),
        ("LunarLander-v1", "LunarLander"),
        ("walks:Nothing", "neither registers an environment 'Nothing' nor has"),
        ("no_such_module:Walk", "'no_such_module' cannot be imported"),
    ],
)
def test_a_failure_to_make_an_environment_is_one_line(module, given, why):
    with pytest.raises(NkcmeError, match=why) as error:
        train(given, DQN(), SETTINGS)
    assert "\n" not in str(error.value)


def test_saved_agents_find_their_environment_again_or_say_why_not(module, monkeypatch):
    assert make_again("walks:Walk", True, None, None).name == "walks:Walk"
    assert make_again("Walk", False, "walks:Walk", None).name == "walks:Walk"
    with pytest.raises(NkcmeError, match=r"object or function.*--env MODULE:NAME"):
        make_again("Walk", False, None, None)
    monkeypatch.delitem(sys.modules, "walks")
    with pytest.raises(NkcmeError, match=r"a file does not decide what is imported.*--import walk"):
        make_again("walks:Walk", True, None, None)


# --- rewards and observations that no agent can use


class Faulty(Walk):
    """A walk with a fault after a number of steps."""

    observation_space = gymnasium.spaces.Box(-9, 9, (2,))

    def __init__(self, fault, after):
        self.fault, self.after, self.t = fault, after, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.t += 1
        answer = (np.zeros(2, np.float32), 1.0, False, self.t % 10 == 0, {})
        if self.t >= self.after:
            answer = self.fault(answer)
        return answer


def with_reward(value):
    return lambda answer: (answer[0], value, *answer[2:])


def with_observation(value):
    return lambda answer: (value, *answer[1:])


FAULTS = {
    "NaN": (with_reward(np.nan), "finite number as reward, got nan"),
    "infinite": (with_reward(-np.inf), "finite number as reward, got -inf"),
    "None": (with_reward(None), "finite number as reward, got None"),
    "array": (with_reward(np.ones(1)), r"finite number as reward, got an array of shape \(1,\)"),
    "text": (with_reward("high"), "finite number as reward, got 'high'"),
    "shape": (with_observation(np.zeros(3)), r"shape \(2,\); got shape \(3,\)"),
    "dtype": (with_observation(np.array(["a", "b"])), "not of numbers"),
    "object": (with_observation(None), "got None"),
    "ragged": (with_observation([[1.0], [2.0, 3.0]]), "different lengths"),
    "NaN observation": (with_observation(np.full(2, np.nan)), "not finite"),
    "old step": (lambda answer: answer[:3] + answer[4:], "from step, got 4 values"),
}
AGENTS = [DQN(), NKDQN(n_atoms=5), NKDQN(n_atoms=5, kernels="single"), "c51", "mmdqn"]


@pytest.mark.parametrize("agent", AGENTS, ids=str)
@pytest.mark.parametrize("fault", ["NaN", "None", "array", "shape", "dtype"])
def test_faults_from_the_first_step_on_are_errors_of_every_agent(agent, fault):
    make_fault, why = FAULTS[fault]
    with pytest.raises(NkcmeError, match=why) as error:
        train(lambda: Faulty(make_fault, 1), agent, SETTINGS)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("Faulty: ")


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_during_training_are_errors(fault):
    make_fault, why = FAULTS[fault]
    with pytest.raises(NkcmeError, match=why):
        train(lambda: Faulty(make_fault, 130), DQN(), SETTINGS)


def test_floats_in_a_space_of_whole_numbers_are_refused():
    class Pixels(Faulty):
        observation_space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)

    with pytest.raises(NkcmeError, match=r"whole numbers of shape \(2,\); got .*float32"):
        train(lambda: Pixels(lambda answer: answer, 1), DQN(), SETTINGS)
