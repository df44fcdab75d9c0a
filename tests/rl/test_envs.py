"""Environments: gymnax's dynamics are Gymnasium's, and what neither loop can use is refused."""

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
def rollout(env, key, n, clever):
    """n steps by the policy, where ``clever`` says so, or at random: states, actions and steps."""

    def step(carry, inputs):
        state, observation = carry
        key, by_policy = inputs
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, (), 0, env.n_actions)
        if env.name in POLICIES:
            action = jnp.where(by_policy, POLICIES[env.name](observation), action)
        after, came = env.step(step_key, state, action)
        return (after, came.observation), (state, observation, action, came)

    start = env.reset(jax.random.fold_in(key, 0))
    return jax.lax.scan(step, start, (jax.random.split(key, n), clever))[1]


@pytest.mark.parametrize("name", STATES)
def test_gymnax_steps_as_gymnasium_does(name):
    """From each state that gymnax comes to: where the same action leads, what it brings, and
    whether that is an end and of which kind. Gymnasium counts its steps on its own."""
    compiled, hosted = Compiled(name), Hosted(name)
    assert compiled.n_actions == hosted.n_actions
    assert compiled.observation_size == hosted.observation_size
    assert compiled.max_steps == LIMITS[name]
    n = 1500
    clever = jnp.arange(n) < 900
    states, observations, actions, came = jax.device_get(
        rollout(compiled, jax.random.key(0), n, clever)
    )
    ends = np.flatnonzero(came.terminated | came.truncated)
    assert not np.any(came.terminated & came.truncated)
    assert came.terminated.any()
    assert came.truncated.any()

    core, ours = hosted._env.unwrapped, []
    of_state = np.stack(STATES[name](states), axis=1).astype(np.float64)
    hosted.reset(seed=0)
    for i in range(n):
        core.state = of_state[i].copy()
        final, reward, terminated, truncated = hosted.step(int(actions[i]))
        ours.append((*final, reward, terminated, truncated))
        if terminated or truncated:
            hosted.reset()
    theirs = np.column_stack([came.final, came.reward, came.terminated, came.truncated])
    np.testing.assert_allclose(theirs, np.array(ours, float), rtol=2e-5, atol=2e-5)

    # What is acted on next is where the action led, or a new episode's beginning.
    going = np.ones(n, bool)
    going[ends] = False
    np.testing.assert_allclose(came.observation[going], came.final[going], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(came.observation[:-1], observations[1:])
    assert np.all(np.abs(came.observation[ends] - came.final[ends]).max(axis=1) > 1e-3)
    lengths = np.diff(ends, prepend=-1)
    assert np.all((lengths == LIMITS[name]) == came.truncated[ends])


@pytest.mark.parametrize("name", STATES)
def test_episodes_begin_as_gymnasiums_do(name):
    """The same distribution over first observations: equal ranges, by many draws."""
    first = jax.vmap(lambda k: Compiled(name).reset(k)[1])(jax.random.split(jax.random.key(0), 400))
    hosted = Hosted(name)
    theirs = np.stack([hosted.reset(seed) for seed in range(400)])
    for q in (0.02, 0.5, 0.98):
        # Angles are observed by cosines, too, which vary by 0.005 only.
        close = np.abs(np.quantile(first, q, axis=0) - np.quantile(theirs, q, axis=0))
        assert np.all(close < 0.025), (q, close)


@pytest.mark.parametrize("name", ["Breakout-MinAtar", "SpaceInvaders-MinAtar"])
def test_minatar_runs(name):
    env = make(name)
    assert isinstance(env, Compiled)
    n = 300
    _, observations, _, came = rollout(env, jax.random.key(1), n, jnp.zeros(n, bool))
    assert observations.shape == (n, env.observation_size)
    assert env.observation_size == np.prod(env.observation_shape)
    assert set(np.unique(observations)) == {0.0, 1.0}
    assert came.terminated.any()
    assert not np.any(came.terminated & came.truncated)
    assert np.all(np.isfinite(came.reward))


def test_gymnax_is_preferred_and_gymnasium_has_the_rest():
    assert make("CartPole-v1") == Compiled("CartPole-v1")
    assert hash(make("CartPole-v1")) == hash(Compiled("CartPole-v1"))
    assert isinstance(make("CartPole-v1", backend="gymnasium"), Hosted)
    assert isinstance(make("CartPole-v1", backend="gymnax"), Compiled)


def one_line(error) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


class Strange(gymnasium.Env):
    def __init__(self, actions, observations):
        self.action_space, self.observation_space = actions, observations


BOX = gymnasium.spaces.Box(-1, 1, (2,))


def test_what_the_agents_cannot_use_is_refused():
    spaces = gymnasium.spaces
    with pytest.raises(NkcmeError) as error:
        make("Pendulum-v1", backend="gymnasium")
    assert "discrete action space" in one_line(error)
    with pytest.raises(NkcmeError) as error:
        Hosted("strange", Strange(spaces.Discrete(2), spaces.Dict(a=BOX)))
    assert "vector as observation" in one_line(error)
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


def test_what_is_not_installed_is_named_with_the_way_to_install_it(monkeypatch):
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


def test_hosted_actions_begin_where_the_space_does_and_ends_are_told_apart():
    class Later(gymnasium.Env):
        """Actions 3 and 4; the third step both terminates and hits a limit."""

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
