"""What an environment is to the compiled loop."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.rl.observations import Observations


class Step(NamedTuple):
    """The result of one action.

    Attributes
    ----------
    observation
        The observation to act on next, (observation_size,); where the episode ended, the first of
        a new episode.
    final
        The observation that the action led to, which differs from ``observation`` where the
        episode ended.
    reward
        A float32 scalar.
    terminated
        Whether the episode is over: no reward follows.
    truncated
        Whether a time limit cut the episode off: more rewards would have followed.
    """

    observation: Array
    final: Array
    reward: Array
    terminated: Array
    truncated: Array


class Environment(Protocol):
    """An environment that JAX can compile, with discrete actions and a vector as observation.

    An environment of images or boards also has ``observations``, an
    `nkcme.rl.observations.Observations` with their shape; its vectors are these images, flattened.

    It must be hashable: environments that compare equal share compiled programs. A frozen
    dataclass of numbers and text is. `nkcme.rl.risky_path.RiskyPath` is a short example.
    """

    @property
    def name(self) -> str:
        """The name that results and files keep."""

    @property
    def n_actions(self) -> int:
        """The number of actions, which are 0 to ``n_actions - 1``."""

    @property
    def observation_size(self) -> int:
        """The length of an observation."""

    @property
    def max_steps(self) -> int:
        """The length after which an evaluation episode is cut off."""

    def reset(self, key: Array) -> tuple[Any, Array]:
        """Return the state and the first observation of a new episode."""

    def step(self, key: Array, state: Any, action: Array) -> tuple[Any, Step]:
        """Take an action; return the next state, of a new episode where one ended, and the step."""


def observations_of(env: Environment) -> Observations:
    """Return what the observations of an environment are: its own description, or vectors."""
    return getattr(env, "observations", None) or Observations((env.observation_size,))


def check_compiled(env: Environment) -> None:
    """Refuse an environment with observations or rewards of another shape than described.

    Nothing is computed: JAX infers the shapes.
    """
    key = jax.random.key(0)
    state, first = jax.eval_shape(env.reset, key)
    _, step = jax.eval_shape(env.step, key, state, jnp.int32(0))
    vector = (env.observation_size,)
    for name, value, shape in (
        ("first observation", first, vector),
        ("observation", step.observation, vector),
        ("final observation", step.final, vector),
        ("reward", step.reward, ()),
        ("terminated", step.terminated, ()),
        ("truncated", step.truncated, ()),
    ):
        if value.shape != shape:
            raise NkcmeError(
                f"{env.name}: expected the {name} to have shape {shape}, got {value.shape}: "
                "correct the environment"
            )
