"""Environments: gymnax and Gymnasium agree; environments that no loop can use are refused."""

from __future__ import annotations

from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.rl import envs
from nkcme.rl.envs import Compiled, Hosted, make
from nkcme.rl.risky_path import RiskyPath

# For each: the state that Gymnasium keeps, and a policy that makes episodes end as they can.
STATES = {
    "CartPole-v1": lambda s: (s.x, s.x_dot, s.theta, s.theta_dot),
    "Acrobot-v1": lambda s: (s.joint_angle1, s.joint_angle2, s.velocity_1, s.velocity_2),
    "MountainCar-v0": lambda s: (s.position, s.velocity),
}
POLICIES = {
    "CartPole-v1": lambda o: (0.05 * o[0] + 0.1 * o[1] + o[2] + 0.3 * o[3] > 0).astype(int),
    "Acrobot-v1": lambda o: jnp.where(o[4] > 0, 0, 2),
    "MountainCar-v0": lambda o: jnp.where(o[1] > 0, 2, 0),
}
LIMITS = {"CartPole-v1": 500, "Acrobot-v1": 500, "MountainCar-v0": 200}


@partial(jax.jit, static_argnums=(0, 2))
def rollout(env, key, n, by_policy):
    """Take n steps, by the policy where ``by_policy`` is set and otherwise at random."""

    def step(carry, inputs):
        state, observation = carry
        key, use_policy = inputs
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, (), 0, env.n_actions)
        if env.name in POLICIES:
            action = jnp.where(use_policy, POLICIES[env.name](observation), action)
        after, taken = env.step(step_key, state, action)
        return (after, taken.observation), (state, observation, action, taken)

    start = env.reset(jax.random.fold_in(key, 0))
    return jax.lax.scan(step, start, (jax.random.split(key, n), by_policy))[1]


@pytest.mark.parametrize("name", STATES)
def test_gymnax_and_gymnasium_take_the_same_steps(name):
    """From each state that gymnax reaches, both give the same observation, reward and kind of end
    for the same action. Gymnasium counts its own steps."""
    compiled, hosted = Compiled(name), Hosted(name)
    assert compiled.n_actions == hosted.n_actions
    assert compiled.observation_size == hosted.observation_size
    assert compiled.max_steps == LIMITS[name]
    n = 1500
    by_policy = jnp.arange(n) < 900
    states, observations, actions, taken = jax.device_get(
        rollout(compiled, jax.random.key(0), n, by_policy)
    )
    ends = np.flatnonzero(taken.terminated | taken.truncated)
    assert not np.any(taken.terminated & taken.truncated)
    assert taken.terminated.any()
    assert taken.truncated.any()

    core, ours = hosted._env.unwrapped, []
    of_state = np.stack(STATES[name](states), axis=1).astype(np.float64)
    hosted.reset(seed=0)
    for i in range(n):
        core.state = of_state[i].copy()
        final, reward, terminated, truncated = hosted.step(int(actions[i]))
        ours.append((*final, reward, terminated, truncated))
        if terminated or truncated:
            hosted.reset()
    theirs = np.column_stack([taken.final, taken.reward, taken.terminated, taken.truncated])
    np.testing.assert_allclose(theirs, np.array(ours, float), rtol=2e-5, atol=2e-5)

    # The next observation is the one that the action led to, or the first of a new episode.
    running = np.ones(n, bool)
    running[ends] = False
    np.testing.assert_allclose(
        taken.observation[running], taken.final[running], rtol=1e-5, atol=1e-7
    )
    np.testing.assert_array_equal(taken.observation[:-1], observations[1:])
    assert np.all(np.abs(taken.observation[ends] - taken.final[ends]).max(axis=1) > 1e-3)
    lengths = np.diff(ends, prepend=-1)
    assert np.all((lengths == LIMITS[name]) == taken.truncated[ends])


@pytest.mark.parametrize("name", STATES)
def test_first_observations_have_the_same_distribution(name):
    """Their quantiles over many episodes agree."""
    first = jax.vmap(lambda k: Compiled(name).reset(k)[1])(jax.random.split(jax.random.key(0), 400))
    hosted = Hosted(name)
    theirs = np.stack([hosted.reset(seed) for seed in range(400)])
    for q in (0.02, 0.5, 0.98):
        # Some observations are cosines of angles, which vary by 0.005 only.
        close = np.abs(np.quantile(first, q, axis=0) - np.quantile(theirs, q, axis=0))
        assert np.all(close < 0.025), (q, close)


@pytest.mark.parametrize("name", ["Breakout-MinAtar", "SpaceInvaders-MinAtar"])
def test_minatar_games_are_compiled(name):
    env = make(name)
    assert isinstance(env, Compiled)
    n = 300
    _, observations, _, taken = rollout(env, jax.random.key(1), n, jnp.zeros(n, bool))
    assert observations.shape == (n, env.observation_size)
    assert env.observation_size == np.prod(env.observation_shape)
    assert set(np.unique(observations)) == {0.0, 1.0}
    assert taken.terminated.any()
    assert not np.any(taken.terminated & taken.truncated)
    assert np.all(np.isfinite(taken.reward))


def test_gymnax_is_preferred_to_gymnasium():
    assert make("CartPole-v1") == Compiled("CartPole-v1")
    assert hash(make("CartPole-v1")) == hash(Compiled("CartPole-v1"))
    assert isinstance(make("CartPole-v1", backend="gymnasium"), Hosted)
    assert isinstance(make("CartPole-v1", backend="gymnax"), Compiled)


def test_the_environment_of_this_package_has_a_name():
    assert make("RiskyPath") == RiskyPath()
    assert make("TwoRoads") == RiskyPath()  # in files of earlier versions


def one_line(error) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


class Strange(gymnasium.Env):
    def __init__(self, actions, observations):
        self.action_space, self.observation_space = actions, observations


BOX = gymnasium.spaces.Box(-1, 1, (2,))


def test_environments_without_discrete_actions_or_array_observations_are_refused():
    spaces = gymnasium.spaces
    with pytest.raises(NkcmeError) as error:
        make("Pendulum-v1", backend="gymnasium")
    assert "discrete action space" in one_line(error)
    with pytest.raises(NkcmeError) as error:
        Hosted("strange", Strange(spaces.Discrete(2), spaces.Dict(a=BOX)))
    assert "array or a discrete state as observation" in one_line(error)
    assert "FlattenObservation" in one_line(error)
    with pytest.raises(NkcmeError) as error:
        Hosted("strange", Strange(BOX, BOX))
    assert "discrete action space" in one_line(error)
    with pytest.raises(NkcmeError) as error:
        make("Pendulum-v1", backend="gymnax")
    assert "discrete" in one_line(error)


@pytest.mark.parametrize("backend", [None, "gymnax", "gymnasium"])
@pytest.mark.parametrize("name", ["Nothing-v0", "no:such/thing", ""])
def test_unknown_names_are_refused(name, backend):
    with pytest.raises(NkcmeError) as error:
        make(name, backend)
    assert repr(name) in one_line(error)


def test_unknown_backends_are_refused():
    with pytest.raises(NkcmeError, match="gymnax, gymnasium; got 'x'"):
        make("CartPole-v1", "x")


def test_a_missing_library_is_named_with_how_to_install_it(monkeypatch):
    missing = {"gymnax"}
    monkeypatch.setattr(envs, "_has", lambda library: library not in missing)
    with pytest.raises(NkcmeError) as error:
        make("CartPole-v1", "gymnax")
    assert "gymnax is not installed" in one_line(error)
    assert "pip install 'nkcme[rl]'" in one_line(error)
    assert isinstance(make("CartPole-v1"), Hosted)
    missing.add("gymnasium")
    with pytest.raises(NkcmeError, match=r"gymnasium is not installed.*pip install"):
        make("CartPole-v1")


def test_hosted_actions_start_where_the_space_does_and_ends_are_distinguished():
    class Later(gymnasium.Env):
        """Actions 3 and 4; the third step both terminates and reaches a time limit."""

        action_space = gymnasium.spaces.Discrete(2, start=3)
        observation_space = gymnasium.spaces.Box(-9, 9, (2, 2))

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.t = 0
            return np.zeros((2, 2)), {}

        def step(self, action):
            self.t += 1
            return np.full((2, 2), action), 1, self.t == 3, self.t >= 2, {}

    env = Hosted("later", Later())
    assert (env.n_actions, env.observation_size) == (2, 4)
    assert env.reset(0).tolist() == [0.0] * 4
    observation, reward, terminated, truncated = env.step(1)
    assert observation.tolist() == [4.0] * 4
    assert observation.dtype == np.float32
    assert (reward, terminated, truncated) == (1.0, False, False)
    assert env.step(0)[2:] == (False, True)
    assert env.step(0)[2:] == (True, False)
