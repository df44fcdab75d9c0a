"""Episodes of trained agents, stepped from Python: for scores, recordings and pictures.

Several episodes are played side by side, so that one call of the network serves all of them. The
agents do not learn and do not explore: every action is that of `Result.act`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.rl.envs import AnyEnvironment, Compiled, Hosted, make
from nkcme.rl.episode_batches import EpisodeBatch, episode_batch, largest_batch
from nkcme.rl.result import Result
from nkcme.short_repr import shapes_in_repr

#: Colours (Okabe and Ito) for the planes of a game, where the observation is a stack of planes.
_PLANE_COLOURS = np.array(
    [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233],
     [240, 228, 66], [0, 0, 0], [150, 150, 150], [120, 60, 20]], np.uint8
)  # fmt: skip
_BACKGROUND = np.array([245, 245, 245], np.uint8)


@shapes_in_repr
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


@shapes_in_repr
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
    env: Any,
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
        The environment, or whatever `nkcme.rl.make` makes one from.
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
    made = _fitting(result, env)
    most = largest_batch(made)
    parts = []
    for first in range(0, n_episodes, most):
        n = min(most, n_episodes - first)
        with episode_batch(made, n, seed + first) as batch:
            parts.append(_play_batch(result, batch, n, agent, risk))
    return Episodes(*map(np.concatenate, zip(*parts, strict=True)))


def _play_batch(
    result: Result, batch: EpisodeBatch, n: int, agent: int, risk: float | None
) -> Episodes:
    """Play the first n episodes of a batch to their ends."""
    starts = batch.observations
    size = len(starts)
    running = np.arange(size) < n
    returns, discounted = np.zeros(size), np.zeros(size)
    lengths, over = np.zeros(size, int), np.zeros(size, bool)
    while running.any():
        rewards, terminated, truncated = batch.step(
            result.actions(batch.observations, agent, risk=risk), running
        )
        returns += np.where(running, rewards, 0.0)
        discounted += np.where(running, result.settings.gamma**lengths * rewards, 0.0)
        lengths += running
        over |= running & terminated
        running &= ~(terminated | truncated)
    return Episodes(*(values[:n] for values in (starts, returns, discounted, lengths, over)))


def record(
    result: Result,
    env: Any,
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
    observations, actions, rewards = [], [], []
    with episode_batch(_fitting(result, env), 1, seed) as batch:
        running = np.arange(len(batch.observations)) == 0
        ended = False
        while not ended:
            observations.append(batch.observations[0])
            chosen = result.actions(batch.observations, agent, risk=risk)
            reward, terminated, truncated = batch.step(chosen, running)
            actions.append(chosen[0])
            rewards.append(reward[0])
            ended = bool(terminated[0] or truncated[0])
    return Recording(
        np.stack(observations), np.array(actions), np.array(rewards), bool(terminated[0]), seed
    )


def _fitting(result: Result, env: Any) -> AnyEnvironment:
    """Make the environment; refuse one with other actions or observations than in training."""
    made = make(env)
    found, wanted = (
        f"{one.n_actions} actions and observations of {one.observation_size} numbers"
        for one in (made, result)
    )
    if found != wanted:
        raise NkcmeError(
            f"expected an environment with {wanted}, as these agents were trained in; {made.name} "
            f"has {found}"
        )
    return made


def stage(env: str | AnyEnvironment) -> Compiled | Hosted:
    """Make an environment that `frames` can draw: Gymnasium's, or a game on a grid.

    Parameters
    ----------
    env
        The environment, or its name.

    Raises
    ------
    NkcmeError
        If there is no such environment, or it cannot be drawn.
    """
    made, drawn = make(env), None
    if isinstance(made, Hosted):
        drawn = made if made.can_render else made.another("rgb_array")
    elif isinstance(made, Compiled):  # Gymnasium may have it too, and draws it
        with suppress(NkcmeError):
            drawn = Hosted(made.name, render_mode="rgb_array")
    if drawn is not None and drawn.can_render:
        return drawn
    if isinstance(made, Compiled) and len(made.observation_shape) == 3:
        return made
    raise NkcmeError(
        f"{made.name} cannot be drawn: neither does Gymnasium draw it (render_mode "
        '"rgb_array"), nor are its observations a grid; nkcme rl report shows the predicted '
        "returns without it"
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
