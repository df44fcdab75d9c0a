"""Environments: the only place that knows gymnax and Gymnasium.

`Compiled` environments (gymnax) are stepped inside the compiled loop, `Hosted` ones (Gymnasium)
from Python. Both tell an episode that *terminated* (there is nothing after) from one that was
*truncated* (a time limit; there would have been more). Observations are flat vectors.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError

_INSTALL = "pip install 'nkcme[rl]'"

#: What `make` calls the two kinds.
BACKENDS = ("gymnax", "gymnasium")


class Step(NamedTuple):
    """What came of an action. ``observation`` is the one to act on next, of a new episode where
    the old one ended; ``final`` is where the action led."""

    observation: Array
    final: Array
    reward: Array
    terminated: Array
    truncated: Array


@dataclass(frozen=True)
class Compiled:
    """A gymnax environment. Compared by name: equal ones share compiled programs."""

    name: str

    @property
    def backend(self) -> str:
        return "gymnax"

    def _made(self) -> tuple[Any, Any]:
        if self.name not in _GYMNAX:
            import gymnax

            # Some make arrays of their own. What is kept must not be part of a program that is
            # just being traced.
            with jax.ensure_compile_time_eval():
                _GYMNAX[self.name] = gymnax.make(self.name)
        return _GYMNAX[self.name]

    @property
    def n_actions(self) -> int:
        env, params = self._made()
        return int(env.action_space(params).n)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Before it was made flat."""
        env, params = self._made()
        return tuple(int(n) for n in env.observation_space(params).shape)

    @property
    def observation_size(self) -> int:
        return int(np.prod(self.observation_shape))

    @property
    def max_steps(self) -> int:
        return int(self._made()[1].max_steps_in_episode)

    def reset(self, key: Array) -> tuple[Any, Array]:
        env, params = self._made()
        observation, state = env.reset(key, params)
        # Some leaves are Python numbers, which a scan would take for another type later.
        return jax.tree.map(jnp.asarray, state), _flat(observation)

    def step(self, key: Array, state: Any, action: Array) -> tuple[Any, Step]:
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
    """A Gymnasium environment with a discrete action space and a vector observation."""

    backend = "gymnasium"

    def __init__(self, name: str, env: Any = None, *, render_mode: str | None = None):
        import gymnasium

        self.name = name
        if render_mode == "rgb_array":  # pygame needs no screen, no sound card and no greeting
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
        return self._vector(self._env.reset(seed=seed)[0])

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Where the action led, the reward, whether that terminated or truncated the episode."""
        observation, reward, terminated, truncated, _ = self._env.step(self.first_action + action)
        return self._vector(observation), float(reward), terminated, truncated and not terminated

    @property
    def draws(self) -> bool:
        """Whether it was made with the ``render_mode`` that `frame` needs, and knows it."""
        return self._env.render_mode == "rgb_array"

    def frame(self) -> np.ndarray:
        """A picture of the current state, (height, width, 3)."""
        return self._env.render()

    def close(self) -> None:
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
    """Whether gymnax has an environment of that name whose actions are discrete."""
    import gymnax

    if name not in gymnax.registered_envs:
        return False
    env, params = gymnax.make(name)
    return hasattr(env.action_space(params), "n")


def make(name: str, backend: str | None = None) -> Compiled | Hosted:
    """The environment called ``name``: gymnax's where it has one, else Gymnasium's."""
    if backend is not None and backend not in BACKENDS:
        raise NkcmeError(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    if backend == "gymnax":
        _need("gymnax")
    if backend != "gymnasium" and _has("gymnax"):
        if _gymnax_has(name):
            return Compiled(name)
        if backend == "gymnax":
            raise NkcmeError(f"gymnax has no environment {name!r} with discrete actions")
    _need("gymnasium")
    return Hosted(name)


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _need(library: str) -> None:
    if not _has(library):
        raise NkcmeError(f"{library} is not installed, and this needs it: {_INSTALL}")
