"""Episodes of trained agents, stepped from Python: for scores, recordings and pictures.

Several episodes are played side by side, so that one call of the network serves all of them. The
agents do not learn and do not explore: every action is that of `Result.act`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.rl.environment import Environment, Step
from nkcme.rl.envs import Compiled, Hosted, make
from nkcme.rl.result import Result
from nkcme.training.replicas import single_precision

#: Colours (Okabe and Ito) for the planes of a game, where the observation is a stack of planes.
_PLANE_COLOURS = np.array(
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233],
     [240, 228, 66], [0, 0, 0], [150, 150, 150], [120, 60, 20]], np.uint8
)  # fmt: skip
_BACKGROUND = np.array([245, 245, 245], np.uint8)


class Episodes(NamedTuple):
    """Whole episodes of one agent; each array has one row per episode.

    Attributes
    ----------
    starts : ndarray of shape (n, observation_size)
        The first observations.
    returns : ndarray of shape (n,)
        The sums of rewards.
    discounted : ndarray of shape (n,)
        The discounted sums of rewards, which the agent predicts.
    lengths : ndarray of shape (n,)
        The numbers of steps.
    terminated : ndarray of shape (n,), bool
        Whether the episode terminated; the others were cut off by a time limit.
    """

    starts: np.ndarray
    returns: np.ndarray
    discounted: np.ndarray
    lengths: np.ndarray
    terminated: np.ndarray


class Recording(NamedTuple):
    """One episode, step by step.

    Attributes
    ----------
    observations : ndarray of shape (T, observation_size)
        The observations that were acted on.
    actions, rewards : ndarray of shape (T,)
        The actions and their rewards.
    terminated : bool
        Whether the episode terminated; otherwise a time limit cut it off.
    seed : int
        The seed of the episode.
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool
    seed: int

    def returns_to_go(self, gamma: float) -> np.ndarray:
        """Return the discounted sum of the rewards from each step on, (T,)."""
        returns, total = np.zeros(len(self.rewards)), 0.0
        for t in reversed(range(len(returns))):
            returns[t] = total = self.rewards[t] + gamma * total
        return returns


def play(
    result: Result,
    env: Environment | Hosted,
    n_episodes: int,
    *,
    agent: int = 0,
    seed: int = 0,
    risk: float | None = None,
) -> Episodes:
    """Play episodes with one agent.

    Parameters
    ----------
    result
        The trained agents.
    env
        The environment, from `nkcme.rl.make`.
    n_episodes
        The number of episodes.
    agent
        The position of the agent among the seeds.
    seed
        The seed of the environment.
    risk
        How to rank actions; see `Result.act`.

    Returns
    -------
    Episodes
        Starts, returns and lengths.

    Raises
    ------
    NkcmeError
        If the environment has other actions or observations than the agents were trained with.

    Examples
    --------
    >>> from nkcme import rl
    >>> from nkcme.rl.play import play
    >>> settings = rl.Settings(n_steps=200, prefill=100, buffer_size=100)
    >>> result = rl.train("RiskyPath", rl.NKDQN(support=(-6, 3)), settings)
    >>> play(result, rl.make("RiskyPath"), 10).returns.shape
    (10,)
    """
    batch = _episode_batch(result, env, n_episodes, seed)
    starts = batch.observations
    running = np.ones(n_episodes, bool)
    returns, discounted = np.zeros(n_episodes), np.zeros(n_episodes)
    lengths, over = np.zeros(n_episodes, int), np.zeros(n_episodes, bool)
    while running.any():
        rewards, terminated, truncated = batch.step(
            result.act(batch.observations, agent, risk=risk), running
        )
        returns += np.where(running, rewards, 0.0)
        discounted += np.where(running, result.settings.gamma**lengths * rewards, 0.0)
        lengths += running
        over |= running & terminated
        running &= ~(terminated | truncated)
    return Episodes(starts, returns, discounted, lengths, over)


def record(
    result: Result,
    env: Environment | Hosted,
    *,
    agent: int = 0,
    seed: int = 0,
    risk: float | None = None,
) -> Recording:
    """Play one episode with one agent and keep every step.

    Parameters
    ----------
    result, env, agent, seed, risk
        As in `play`.

    Returns
    -------
    Recording
        Observations, actions and rewards.

    Raises
    ------
    NkcmeError
        If the environment has other actions or observations than the agents were trained with.
    """
    batch = _episode_batch(result, env, 1, seed)
    observations, actions, rewards = [], [], []
    running = np.ones(1, bool)
    while True:
        observations.append(batch.observations[0])
        action = result.act(batch.observations, agent, risk=risk)
        reward, terminated, truncated = batch.step(action, running)
        actions.append(action[0])
        rewards.append(reward[0])
        if terminated[0] or truncated[0]:
            return Recording(
                np.stack(observations),
                np.array(actions),
                np.array(rewards),
                bool(terminated[0]),
                seed,
            )


def stage(name: str) -> Compiled | Hosted:
    """Make an environment that `frames` can draw: Gymnasium's, or a game on a grid.

    Parameters
    ----------
    name
        The name of the environment.

    Raises
    ------
    NkcmeError
        If there is no such environment, or it cannot be drawn.
    """
    try:
        env = Hosted(name, render_mode="rgb_array")
    except NkcmeError:
        drawn = make(name)  # raises with the reason where the name is unknown
        if isinstance(drawn, Compiled) and len(drawn.observation_shape) == 3:
            return drawn
    else:
        if env.can_render:
            return env
    raise NkcmeError(
        f"{name} cannot be drawn: neither does Gymnasium draw it, nor are its observations a grid; "
        "nkcme rl report shows the predicted returns without it"
    )


def frames(recording: Recording, env: Compiled | Hosted, every: int) -> Iterator[np.ndarray]:
    """Yield pictures (height, width, 3) of every ``every``-th state that was acted on.

    A Gymnasium environment plays the episode again, so that no picture needs to be stored.

    Parameters
    ----------
    recording
        The episode.
    env
        The environment, from `stage`.
    every
        The number of states from one picture to the next.
    """
    if isinstance(env, Hosted):
        env.reset(recording.seed)
        for t, action in enumerate(recording.actions):
            if t % every == 0:
                yield env.frame()
            env.step(int(action))
    else:
        for observation in recording.observations[::every]:
            yield _painted(observation.reshape(env.observation_shape))


def _painted(planes: np.ndarray) -> np.ndarray:
    """Paint planes (height, width, n) as one picture, later ones above earlier ones."""
    picture = np.broadcast_to(_BACKGROUND, (*planes.shape[:2], 3)).copy()
    for k in range(planes.shape[2]):
        picture[planes[:, :, k] > 0] = _PLANE_COLOURS[k % len(_PLANE_COLOURS)]
    return picture


class _CompiledBatch:
    """Episodes of an environment in JAX; those that ended continue, and their steps are ignored."""

    @single_precision()
    def __init__(self, env: Environment, n: int, seed: int):
        self._env = env
        self._keys = jax.random.split(jax.random.key(seed), n)
        self._t = 0
        self._states, observations = _begin(env, self._keys)
        self.observations = np.asarray(observations)

    @single_precision()
    def step(
        self, actions: np.ndarray, running: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._t += 1
        self._states, taken = _advance(self._env, self._keys, self._t, self._states, actions)
        self.observations = np.asarray(taken.observation)
        truncated = np.asarray(taken.truncated) | (self._t >= self._env.max_steps)
        return np.asarray(taken.reward, np.float64), np.asarray(taken.terminated), truncated


@partial(jax.jit, static_argnums=0)
def _begin(env: Environment, keys: Array) -> tuple[Any, Array]:
    return jax.vmap(lambda key: env.reset(jax.random.fold_in(key, 0)))(keys)


@partial(jax.jit, static_argnums=0)
def _advance(
    env: Environment, keys: Array, t: Array, states: Any, actions: Array
) -> tuple[Any, Step]:
    one = lambda key, state, action: env.step(jax.random.fold_in(key, t), state, action)  # noqa: E731
    return jax.vmap(one)(keys, states, actions)


class _HostedBatch:
    """Episodes of a Gymnasium environment, one copy each; the seeds are consecutive numbers."""

    def __init__(self, env: Hosted, n: int, seed: int):
        self._envs = [env, *(Hosted(env.name) for _ in range(n - 1))]
        self.observations = np.stack([e.reset(seed + i) for i, e in enumerate(self._envs)])

    def step(
        self, actions: np.ndarray, running: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n = len(running)
        rewards, terminated, truncated = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)
        self.observations = self.observations.copy()
        for i in np.flatnonzero(running):
            self.observations[i], rewards[i], terminated[i], truncated[i] = self._envs[i].step(
                int(actions[i])
            )
        return rewards, terminated, truncated


def _episode_batch(
    result: Result, env: Environment | Hosted, n: int, seed: int
) -> _CompiledBatch | _HostedBatch:
    found, wanted = (
        f"{one.n_actions} actions and observations of {one.observation_size} numbers"
        for one in (env, result)
    )
    if found != wanted:
        raise NkcmeError(
            f"expected an environment with {wanted}, as these agents were trained in; {env.name} "
            f"has {found}"
        )
    if isinstance(env, Hosted):
        return _HostedBatch(env, n, seed)
    return _CompiledBatch(env, n, seed)
