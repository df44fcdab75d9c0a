"""Environments by name: gymnax's, Gymnasium's, and those of this package.

`Compiled` environments (gymnax) are stepped inside the compiled loop, `Hosted` ones (Gymnasium)
from Python. Both distinguish an episode that *terminated* (nothing follows) from one that was
*truncated* (a time limit cut it off). Observations are flattened to vectors. No other module
imports gymnax or Gymnasium.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.rl.environment import Environment, Step
from nkcme.rl.risky_path import RiskyPath

_INSTALL = "pip install 'nkcme[rl]'"

#: The values of ``backend`` in `make`.
BACKENDS = ("gymnax", "gymnasium")

#: The environments of this package; the second name is that of earlier versions.
_BUILT_IN = {"RiskyPath": RiskyPath, "TwoRoads": RiskyPath}


def make(name: str, backend: str | None = None) -> Environment | Hosted:
    """Make an environment by its name.

    Parameters
    ----------
    name
        The name of an environment with discrete actions: "RiskyPath" (`nkcme.rl.risky_path`), or
        one that gymnax or Gymnasium has.
    backend
        "gymnax" or "gymnasium". By default gymnax is used where it has the environment, because
        its environments run inside the compiled loop; otherwise Gymnasium.

    Returns
    -------
    Environment or Hosted
        `Hosted` for Gymnasium; otherwise an environment that JAX compiles.

    Raises
    ------
    NkcmeError
        If no environment of that name exists, its actions are not discrete, its observation is not
        a vector, or the library is not installed.

    Examples
    --------
    >>> from nkcme import rl
    >>> env = rl.make("CartPole-v1")
    >>> env.n_actions, env.observation_size
    (2, 4)
    """
    if backend is not None and backend not in BACKENDS:
        raise NkcmeError(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    if backend is None and name in _BUILT_IN:
        return _BUILT_IN[name]()
    if backend == "gymnax":
        _need("gymnax")
    if backend != "gymnasium" and _has("gymnax"):
        if _gymnax_has(name):
            return Compiled(name)
        if backend == "gymnax":
            raise NkcmeError(f"gymnax has no environment {name!r} with discrete actions")
    _need("gymnasium")
    return Hosted(name)


@dataclass(frozen=True)
class Compiled:
    """A gymnax environment, as `nkcme.rl.environment.Environment` describes it.

    Environments are compared by name: equal ones share compiled programs.

    Parameters
    ----------
    name
        The name that gymnax has for it.
    """

    name: str

    @property
    def backend(self) -> str:
        """The library that the environment comes from: "gymnax"."""
        return "gymnax"

    def _made(self) -> tuple[Any, Any]:
        if self.name not in _GYMNAX:
            import gymnax

            # Some environments create arrays. The cached ones must not belong to a program that
            # is being traced.
            with jax.ensure_compile_time_eval():
                _GYMNAX[self.name] = gymnax.make(self.name)
        return _GYMNAX[self.name]

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        env, params = self._made()
        return int(env.action_space(params).n)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of an observation before it is flattened."""
        env, params = self._made()
        return tuple(int(n) for n in env.observation_space(params).shape)

    @property
    def observation_size(self) -> int:
        """The length of a flattened observation."""
        return int(np.prod(self.observation_shape))

    @property
    def max_steps(self) -> int:
        """The length at which an episode is truncated."""
        return int(self._made()[1].max_steps_in_episode)

    def reset(self, key: Array) -> tuple[Any, Array]:
        """Return the state and the first observation of a new episode."""
        env, params = self._made()
        observation, state = env.reset(key, params)
        # Some leaves are Python numbers, which have another type than the arrays of later states.
        return jax.tree.map(jnp.asarray, state), _flat(observation)

    def step(self, key: Array, state: Any, action: Array) -> tuple[Any, Step]:
        """Take an action; return the next state and the step."""
        env, params = self._made()
        observation, after, reward, terminated, truncated, info = env.step(
            key, state, action, params
        )
        after = jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), after, state)
        step = Step(
            _flat(observation),
            _flat(info["final_observation"]),
            jnp.asarray(reward, jnp.float32),
            terminated,
            truncated & ~terminated,
        )
        return after, step


_GYMNAX: dict[str, tuple[Any, Any]] = {}


def _flat(observation: Array) -> Array:
    return jnp.ravel(observation).astype(jnp.float32)


class Hosted:
    """A Gymnasium environment with a discrete action space and a vector observation.

    Parameters
    ----------
    name
        The name that Gymnasium has for it, and that results keep.
    env
        An environment object to use instead of making one by name.
    render_mode
        Gymnasium's ``render_mode``; "rgb_array" for `frame`.

    Raises
    ------
    NkcmeError
        If Gymnasium has no such environment, its actions are not discrete, or its observation is
        not a vector.
    """

    backend = "gymnasium"

    def __init__(self, name: str, env: Any = None, *, render_mode: str | None = None):
        import gymnasium

        self.name = name
        if render_mode == "rgb_array":  # pygame without a screen, a sound card and its greeting
            for driver in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
                os.environ.setdefault(driver, "dummy")
            os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        self._env = (
            env if env is not None else _gymnasium_make(gymnasium, name, render_mode=render_mode)
        )
        spaces = gymnasium.spaces
        if not isinstance(self._env.action_space, spaces.Discrete):
            raise NkcmeError(
                f"{name}: expected a discrete action space, found {self._env.action_space}; these "
                "agents choose among a few actions"
            )
        if not isinstance(self._env.observation_space, spaces.Box):
            raise NkcmeError(
                f"{name}: expected a vector as observation, found {self._env.observation_space}; "
                "wrap the environment (gymnasium.wrappers.FlattenObservation)"
            )
        self.n_actions = int(self._env.action_space.n)
        self.first_action = int(self._env.action_space.start)
        self.observation_size = int(np.prod(self._env.observation_space.shape))

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin an episode; return its first observation, (observation_size,)."""
        return self._vector(self._env.reset(seed=seed)[0])

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Take an action; return the observation it led to, the reward, terminated, truncated."""
        observation, reward, terminated, truncated, _ = self._env.step(self.first_action + action)
        return self._vector(observation), float(reward), terminated, truncated and not terminated

    @property
    def can_render(self) -> bool:
        """Whether `frame` works: the environment supports and was made with "rgb_array"."""
        return self._env.render_mode == "rgb_array"

    def frame(self) -> np.ndarray:
        """Return a picture of the current state, (height, width, 3)."""
        return self._env.render()

    def close(self) -> None:
        """Release what the environment holds."""
        self._env.close()

    @staticmethod
    def _vector(observation: Any) -> np.ndarray:
        return np.ravel(observation).astype(np.float32)


def _gymnasium_make(gymnasium: Any, name: str, **options: Any) -> Any:
    try:
        return gymnasium.make(name, **options)
    except (gymnasium.error.Error, ImportError) as error:
        raise NkcmeError(f"Gymnasium has no environment {name!r}: {error}") from error


def _gymnax_has(name: str) -> bool:
    """Whether gymnax has an environment of that name with discrete actions."""
    import gymnax

    if name not in gymnax.registered_envs:
        return False
    env, params = gymnax.make(name)
    return hasattr(env.action_space(params), "n")


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _need(library: str) -> None:
    if not _has(library):
        raise NkcmeError(f"{library} is not installed, and this environment needs it: {_INSTALL}")
