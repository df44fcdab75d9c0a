"""Environments that Python steps: a Gymnasium environment, checked at every step.

`Hosted` is one environment and `HostedVector` (`nkcme.rl.hosted_vector`) several that are stepped
together. The training loop sees both as `n_envs` environments: `begin`, `current` and `advance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.rl.gymnasium_envs import (
    Made,
    discrete_actions,
    is_vector,
    observations_of,
    one_line,
    time_limit,
)
from nkcme.rl.observations import Observations

#: What `step` and `reset` of a Gymnasium environment return.
_STEP = "(observation, reward, terminated, truncated, info)"
_RESET = "(observation, info)"


class Taken(NamedTuple):
    """The result of one action: the observation that it led to, before any reset."""

    final: np.ndarray
    reward: float
    terminated: bool
    ended: bool


class HostedBase:
    """What `Hosted` and `HostedVector` share."""

    backend = "gymnasium"
    name: str
    n_actions: int
    first_action: int
    observations: Observations

    def __init__(self, made: Made, action_space: Any, observation_space: Any):
        self._made, self._env = made, made.env
        self.name = made.name
        self.n_actions, self.first_action = discrete_actions(self.name, action_space)
        self.observations = observations_of(self.name, observation_space)
        self.max_steps = time_limit(self._env)

    @property
    def by_name(self) -> bool:
        """Whether `nkcme.rl.make` makes such an environment from its name alone."""
        return self._made.by_name

    @property
    def observation_size(self) -> int:
        """The length of an observation as a vector."""
        return self.observations.size

    def close(self) -> None:
        """Release what the environment holds."""
        self._env.close()

    def _unpacked(self, answer: Any, method: str, expected: str) -> Any:
        """Return what a method of the environment gave, if it has as many values as expected."""
        n = expected.count(",") + 1
        if not isinstance(answer, tuple) or len(answer) != n:
            found = f"{len(answer)} values" if isinstance(answer, tuple) else type(answer).__name__
            raise NkcmeError(
                f"{self.name}: expected {expected} from {method}, got {found}; environments follow "
                "gymnasium.Env"
            )
        return answer

    def _vector(self, observation: Any) -> np.ndarray:
        try:
            return self.observations.vector(observation)
        except NkcmeError as error:
            raise NkcmeError(
                f"{self.name}: {error}: correct the environment, or its observation_space"
            ) from None

    def _reward(self, reward: Any) -> float:
        """Return a reward as a float; refuse None, arrays and values that are not finite."""
        number = np.asarray(reward) if not isinstance(reward, str) else np.asarray(None)
        if number.ndim == 0 and number.dtype.kind in "biuf" and np.isfinite(number):
            return float(number)
        shape = f"an array of shape {number.shape}"
        found = shape if number.ndim else one_line(f"{reward!r:.60}")
        raise NkcmeError(
            f"{self.name}: expected a finite number as reward, got {found}: correct the "
            "environment's step"
        )


class Hosted(HostedBase):
    """A Gymnasium environment with discrete actions, and an array or a state as observation.

    Parameters
    ----------
    name
        The name that Gymnasium has for it, and that results keep.
    env
        An environment object to use instead of making one by name, or a class or a function
        without arguments that makes one.
    render_mode
        Gymnasium's ``render_mode``; "rgb_array" for `frame`.

    Raises
    ------
    NkcmeError
        If the environment cannot be made, its actions are not discrete, or its observation is
        neither an array nor a state.
    """

    n_envs = 1

    def __init__(self, name: str | Made, env: Any = None, *, render_mode: str | None = None):
        if isinstance(name, Made):
            made = name
        elif env is None:
            made = Made.from_name(name, render_mode)
        else:
            made = Made.from_object(env, name)
        if is_vector(made.env):
            raise NkcmeError(
                f"{made.name} is vectorised: expected a single environment, as its class or a "
                "function that makes one"
            )
        super().__init__(made, made.env.action_space, made.env.observation_space)

    def another(self, render_mode: str | None = None) -> Self:
        """Make another environment of the same kind, with a render mode where it takes one."""
        return type(self)(self._made.another(render_mode))

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin an episode; return its first observation, (observation_size,)."""
        return self._vector(self._unpacked(self._env.reset(seed=seed), "reset", _RESET)[0])

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Take an action; return the observation it led to, the reward, terminated, truncated."""
        answer = self._env.step(self.first_action + action)
        observation, reward, terminated, truncated, _ = self._unpacked(answer, "step", _STEP)
        return (
            self._vector(observation),
            self._reward(reward),
            bool(terminated),
            bool(truncated) and not terminated,
        )

    def begin(self, seed: int | None = None) -> None:
        """Begin an episode; ``current`` (1, observation_size) is the observation to act on."""
        self.current = self.reset(seed)[None]

    def advance(self, actions: Sequence[int]) -> list[Taken]:
        """Take one action, and begin a new episode where one ended."""
        final, reward, terminated, truncated = self.step(actions[0])
        ended = terminated or truncated
        self.current = (self.reset() if ended else final)[None]
        return [Taken(final, reward, terminated, ended)]

    @property
    def can_render(self) -> bool:
        """Whether `frame` works: the environment supports and was made with "rgb_array"."""
        return self._env.render_mode == "rgb_array"

    def frame(self) -> np.ndarray:
        """Return a picture of the current state, (height, width, 3)."""
        return self._env.render()
