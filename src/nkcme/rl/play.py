"""Trained agents at play, stepped from Python: for scores, for aversion to risk, for pictures.

Episodes of both kinds of environments go side by side, so that one question to the network serves
them all. Nothing is learned and nothing explored: every action is the best by `Result.act`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.rl.envs import Compiled, Hosted, Step, make
from nkcme.rl.result import Result
from nkcme.training.replicas import single_precision

if TYPE_CHECKING:
    from nkcme.rl.loop import Environment

#: Colours (Okabe and Ito) of the planes of a game whose observation is a stack of them.
_PLANE_COLOURS = np.array(
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233],
     [240, 228, 66], [0, 0, 0], [150, 150, 150], [120, 60, 20]], np.uint8
)  # fmt: skip
_BACKGROUND = np.array([245, 245, 245], np.uint8)


class Episodes(NamedTuple):
    """Whole episodes of one agent; each array has a row an episode."""

    starts: np.ndarray  # (n, observation_size): the first observations
    returns: np.ndarray  # (n,): sums of rewards
    discounted: np.ndarray  # (n,): the same with gamma, as the agent foresees them
    lengths: np.ndarray  # (n,)
    terminated: np.ndarray  # (n,) bool; the others were cut off by a time limit


class Recording(NamedTuple):
    """One episode, step by step."""

    observations: np.ndarray  # (T, observation_size): those that were acted on
    actions: np.ndarray  # (T,)
    rewards: np.ndarray  # (T,)
    terminated: bool
    seed: int

    def returns_to_go(self, gamma: float) -> np.ndarray:
        """What each step came to in the end, discounted, (T,)."""
        came, total = np.zeros(len(self.rewards)), 0.0
        for t in reversed(range(len(came))):
            came[t] = total = self.rewards[t] + gamma * total
        return came


def play(
    result: Result,
    env: Environment | Hosted,
    n_episodes: int,
    *,
    agent: int = 0,
    seed: int = 0,
    risk: float | None = None,
) -> Episodes:
    """Episodes of one agent, by its place among the seeds; ``risk`` as in `Result.act`."""
    crowd = _crowd(result, env, n_episodes, seed)
    starts = crowd.observations
    going = np.ones(n_episodes, bool)
    returns, discounted = np.zeros(n_episodes), np.zeros(n_episodes)
    lengths, over = np.zeros(n_episodes, int), np.zeros(n_episodes, bool)
    while going.any():
        rewards, terminated, truncated = crowd.step(
            result.act(crowd.observations, agent, risk=risk), going
        )
        returns += np.where(going, rewards, 0.0)
        discounted += np.where(going, result.settings.gamma**lengths * rewards, 0.0)
        lengths += going
        over |= going & terminated
        going &= ~(terminated | truncated)
    return Episodes(starts, returns, discounted, lengths, over)


def record(
    result: Result,
    env: Environment | Hosted,
    *,
    agent: int = 0,
    seed: int = 0,
    risk: float | None = None,
) -> Recording:
    """One episode of one agent."""
    crowd = _crowd(result, env, 1, seed)
    observations, actions, rewards = [], [], []
    going = np.ones(1, bool)
    while True:
        observations.append(crowd.observations[0])
        action = result.act(crowd.observations, agent, risk=risk)
        reward, terminated, truncated = crowd.step(action, going)
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
    """The environment of that name that can be drawn: Gymnasium's, or a game on a grid."""
    try:
        env = Hosted(name, render_mode="rgb_array")
    except NkcmeError:
        drawn = make(name)  # says what is wrong where nobody knows the name
        if isinstance(drawn, Compiled) and len(drawn.observation_shape) == 3:
            return drawn
    else:
        if env.draws:
            return env
    raise NkcmeError(
        f"{name} cannot be drawn: neither does Gymnasium draw it, nor are its observations a grid; "
        "nkcme rl report shows what the agents foresee without it"
    )


def frames(recording: Recording, env: Compiled | Hosted, every: int) -> Iterator[np.ndarray]:
    """Pictures (height, width, 3) of every so-many-th state that was acted on.

    A Gymnasium environment plays the episode again to be drawn: no picture is kept for longer than
    it takes to look at it.
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
    """Planes (height, width, n) as one picture, the later ones above the earlier."""
    picture = np.broadcast_to(_BACKGROUND, (*planes.shape[:2], 3)).copy()
    for k in range(planes.shape[2]):
        picture[planes[:, :, k] > 0] = _PLANE_COLOURS[k % len(_PLANE_COLOURS)]
    return picture


# --------------------------------------------------------------------------------- side by side


class _CompiledCrowd:
    """Episodes of an environment in JAX; those that ended go on unseen."""

    @single_precision()
    def __init__(self, env: Environment, n: int, seed: int):
        self._env = env
        self._keys = jax.random.split(jax.random.key(seed), n)
        self._t = 0
        self._states, observations = _begin(env, self._keys)
        self.observations = np.asarray(observations)

    @single_precision()
    def step(
        self, actions: np.ndarray, going: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._t += 1
        self._states, came = _advance(self._env, self._keys, self._t, self._states, actions)
        self.observations = np.asarray(came.observation)
        truncated = np.asarray(came.truncated) | (self._t >= self._env.max_steps)
        return np.asarray(came.reward, np.float64), np.asarray(came.terminated), truncated


@partial(jax.jit, static_argnums=0)
def _begin(env: Environment, keys: Array) -> tuple[Any, Array]:
    return jax.vmap(lambda key: env.reset(jax.random.fold_in(key, 0)))(keys)


@partial(jax.jit, static_argnums=0)
def _advance(
    env: Environment, keys: Array, t: Array, states: Any, actions: Array
) -> tuple[Any, Step]:
    one = lambda key, state, action: env.step(jax.random.fold_in(key, t), state, action)  # noqa: E731
    return jax.vmap(one)(keys, states, actions)


class _HostedCrowd:
    """Episodes of a Gymnasium environment, each in a copy of its own, seeded one after another."""

    def __init__(self, env: Hosted, n: int, seed: int):
        self._envs = [env, *(Hosted(env.name) for _ in range(n - 1))]
        self.observations = np.stack([e.reset(seed + i) for i, e in enumerate(self._envs)])

    def step(
        self, actions: np.ndarray, going: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rewards = np.zeros(len(going))
        terminated, truncated = np.zeros(len(going), bool), np.zeros(len(going), bool)
        self.observations = self.observations.copy()
        for i in np.flatnonzero(going):
            self.observations[i], rewards[i], terminated[i], truncated[i] = self._envs[i].step(
                int(actions[i])
            )
        return rewards, terminated, truncated


def _crowd(
    result: Result, env: Environment | Hosted, n: int, seed: int
) -> _CompiledCrowd | _HostedCrowd:
    found, wanted = (
        f"{one.n_actions} actions and {one.observation_size} numbers to observe"
        for one in (env, result)
    )
    if found != wanted:
        raise NkcmeError(f"these agents know {wanted}, and {env.name} has {found}")
    if isinstance(env, Hosted):
        return _HostedCrowd(env, n, seed)
    return _CompiledCrowd(env, n, seed)
