"""What training agents gives: their curves, their networks, and the returns they foresee."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.base import Distribution
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.model_files import read_model, write_model
from nkcme.networks import MLP
from nkcme.parameter_checks import need_whole
from nkcme.rl import learner as learning
from nkcme.rl.agents import C51, DQN, MMDQN, NKDQN, Agent
from nkcme.rl.learner import Program
from nkcme.rl.settings import Settings
from nkcme.training.replicas import single_precision

_KINDS: dict[str, type[Agent]] = {a.kind: a for a in (NKDQN, C51, MMDQN, DQN)}


#: A curve that is drawn or kept in a row has at most so many points.
N_POINTS = 500


@dataclass
class Curve:
    """Returns of single evaluation episodes: ``step`` (n,) and ``returns`` (n, agents)."""

    step: np.ndarray
    returns: np.ndarray

    @classmethod
    def empty(cls, n_agents: int) -> Curve:
        return cls(np.zeros(0, np.int64), np.zeros((0, n_agents), np.float32))

    def extend(self, step: np.ndarray, returns: np.ndarray) -> None:
        self.step = np.concatenate([self.step, np.asarray(step, np.int64)])
        self.returns = np.concatenate([self.returns, np.asarray(returns, np.float32)])

    def last_fifth(self) -> np.ndarray:
        """Each agent's mean return over the last fifth of its steps, (agents,); NaN of none."""
        if not len(self.step):
            return np.full(self.returns.shape[1], np.nan)
        late = self.step > 0.8 * self.step[-1]
        return self.returns[late].mean(axis=0, dtype=np.float64)

    def area(self) -> np.ndarray:
        """Each agent's mean return over all its steps, (agents,): the area under its curve."""
        return self.returns.mean(axis=0, dtype=np.float64)

    def as_arrays(self) -> dict[str, np.ndarray]:
        return {"curve/step": self.step, "curve/returns": self.returns}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Curve:
        return cls(arrays["curve/step"], arrays["curve/returns"])


def thin(values: np.ndarray, n_points: int = N_POINTS) -> tuple[np.ndarray, int]:
    """Means over spans of so many values that at most ``n_points`` are left, and the span. All
    spans are equal, but the last is shorter where the values do not fill it."""
    span = -(-len(values) // n_points)
    first = np.arange(0, len(values), span)
    sums = np.add.reduceat(np.asarray(values, np.float64), first)
    return sums / np.diff(np.append(first, len(values))), span


@dataclass(frozen=True, eq=False)
class Result:
    """Trained agents, one a seed; ``networks`` has a leading axis of agents."""

    env_name: str
    agent: Agent
    settings: Settings
    seeds: tuple[int, ...]
    n_actions: int
    observation_size: int
    networks: MLP
    curve: Curve
    n_steps: int
    interrupted: bool = False

    @property
    def program(self) -> Program:
        return Program(self.agent, self.settings, self.n_actions, self.observation_size, None)

    def network(self, agent: int = 0) -> MLP:
        """The network of one agent, by its place among the seeds."""
        if not -len(self.seeds) <= agent < len(self.seeds):
            raise NkcmeError(f"there are {len(self.seeds)} agents, numbered from 0; got {agent}")
        return jax.tree.map(lambda leaf: leaf[agent], self.networks)

    def best(self) -> int:
        """The agent with the highest mean return over the last fifth of training."""
        return int(np.argmax(self.curve.last_fifth())) if len(self.curve.step) else 0

    @single_precision()
    def _outputs(self, observation: ArrayLike, agent: int) -> np.ndarray:
        """(..., n_actions, width) from observations (..., observation_size)."""
        vector = jnp.asarray(observation, jnp.float32)
        if vector.ndim not in (1, 2) or vector.shape[-1] != self.observation_size:
            raise NkcmeError(
                f"expected an observation of {self.observation_size} numbers, or a table of such; "
                f"got an array of shape {vector.shape}"
            )
        return np.asarray(_outputs(self.program, self.network(agent), jnp.atleast_2d(vector)))

    def return_distribution(self, observation: ArrayLike, agent: int = 0) -> list[Distribution]:
        """The return that each action would bring: a distribution for each action, with one row
        for each of the observations (observation_size,) or (n, observation_size)."""
        outputs = self._outputs(observation, agent)
        scale = 1.0 / self.settings.reward_scale
        return [self.agent.distribution(outputs[:, a], scale) for a in range(self.n_actions)]

    def act(
        self, observation: ArrayLike, agent: int = 0, *, risk: float | None = None
    ) -> np.ndarray:
        """The best action for each observation, by the mean return; with ``risk`` in (0, 1), by
        the mean of that worst share of returns (the conditional value at risk): averse to risk."""
        returns = self.return_distribution(observation, agent)
        if risk is None:
            worth = np.stack([r.mean() for r in returns])
        else:
            if not 0.0 < risk < 1.0:
                raise NkcmeError(f"risk must be a share between 0 and 1; got {risk!r}")
            levels = risk * (np.arange(_TAIL_LEVELS) + 0.5) / _TAIL_LEVELS
            worth = np.stack([r.ppf(levels).mean(axis=-1) for r in returns])
        return np.argmax(worth, axis=0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agents to a directory of JSON and safetensors, as models are."""
        config = {
            "estimator": "rl",
            "env": self.env_name,
            "agent": self.agent.to_config(),
            "settings": self.settings.to_config(),
            "seeds": list(self.seeds),
            "n_actions": self.n_actions,
            "observation_size": self.observation_size,
            "n_steps": self.n_steps,
            "interrupted": self.interrupted,
        }
        leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(self.networks, eqx.is_array))
        arrays = {f"network{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}
        write_model(path, config, arrays | self.curve.as_arrays())


_TAIL_LEVELS = 200


@partial(jax.jit, static_argnums=0)
def _outputs(program: Program, network: MLP, observations: jax.Array) -> jax.Array:
    return jax.vmap(lambda o: learning.outputs(program, network, o))(observations)


def load(path: str | os.PathLike[str]) -> Result:
    """The agents that `Result.save` wrote at ``path``."""
    config, arrays = read_model(path)
    if config.get("estimator") != "rl":
        raise ModelFileError(
            f"{str(path)!r}: expected agents, found a model of {config.get('estimator')!r}; load "
            "it with nkcme.load"
        )
    try:
        return _from_file(config, arrays)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ModelFileError(
            f"{str(path)!r}: expected agents as nkcme saves them, found {error!r}; the file is "
            "damaged: restore a copy, or train again"
        ) from error


def _from_file(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Result:
    agent = agent_from_config(config["agent"])
    settings = Settings(**config["settings"])
    n_actions, size, n_steps = (config[k] for k in ("n_actions", "observation_size", "n_steps"))
    for number in (n_actions, size, n_steps, *config["seeds"]):
        need_whole("each number of agents and steps", number, least=0)
    if getattr(agent, "support", None) == "auto":
        raise NkcmeError("a support that was never settled")
    program = Program(agent, settings, n_actions, size, None)
    seeds = tuple(config["seeds"])
    curve = Curve.from_arrays(arrays)
    if curve.step.ndim != 1 or curve.returns.shape != (len(curve.step), len(seeds)):
        raise NkcmeError(f"a curve of shape {curve.returns.shape}")
    like = jax.eval_shape(lambda key: learning.fresh_network(program, key), jax.random.key(0))

    def leaf(path: Any, shape: Any) -> jax.Array:
        found = arrays[f"network{jax.tree_util.keystr(path)}"]
        if found.shape != (len(seeds), *shape.shape):
            raise NkcmeError(f"an array of shape {found.shape}")
        if not np.all(np.isfinite(found)):
            raise NkcmeError("parameters that are not finite")
        return jnp.asarray(found, shape.dtype)

    return Result(
        env_name=str(config["env"]),
        agent=agent,
        settings=settings,
        seeds=seeds,
        n_actions=n_actions,
        observation_size=size,
        networks=jax.tree_util.tree_map_with_path(leaf, like),
        curve=curve,
        n_steps=n_steps,
        interrupted=bool(config["interrupted"]),
    )


def agent_from_config(config: dict[str, Any]) -> Agent:
    """The agent of an `Agent.to_config`."""
    kind = _KINDS[config["kind"]]
    known = {f.name for f in fields(kind)}
    return kind(**{k: _tupled(v) for k, v in config.items() if k in known})


def _tupled(value: Any) -> Any:
    return tuple(_tupled(v) for v in value) if isinstance(value, list) else value
