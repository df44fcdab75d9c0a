"""The result of training: curves, networks, and the return distributions they predict."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.base import Distribution
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.model_files import read_model, write_model
from nkcme.number_text import written
from nkcme.parameter_checks import need_whole
from nkcme.rl import learner as learning
from nkcme.rl.agents.base import Agent, agent_from_config
from nkcme.rl.curve import Curve
from nkcme.rl.learner import Program
from nkcme.rl.networks import Network
from nkcme.rl.observations import Observations
from nkcme.rl.progress_file import PROGRESS, write_progress
from nkcme.rl.settings import Settings
from nkcme.training.named_arrays import named_arrays, tree_from_model_file
from nkcme.training.replicas import single_precision

#: What the names of the networks' arrays begin with in a file.
_NETWORK = "network"

#: The number of quantiles that approximate the mean of a tail.
_TAIL_LEVELS = 200


@dataclass(frozen=True, eq=False)
class Result:
    """Trained agents of one kind, one per seed.

    Attributes
    ----------
    env_name : str
        The environment they were trained in.
    agent : Agent
        Their kind and its parameters, with every "auto" resolved.
    settings : Settings
        How they were trained.
    seeds : tuple of int
        Their seeds. Methods name an agent by its position among them.
    n_actions, observation_size : int
        The number of actions and the length of an observation as a vector.
    networks : MLP or ImageNetwork
        Their networks; each array has a leading axis of agents.
    curve : Curve
        The returns of their evaluation episodes.
    n_steps : int
        The steps done.
    interrupted : bool
        Whether Ctrl-C ended training early.
    observations : Observations
        What the observations are; by default vectors.
    env_by_name : bool
        Whether `nkcme.rl.make` makes the environment from its name.

    Examples
    --------
    >>> from nkcme import rl
    >>> settings = rl.Settings(n_steps=200, prefill=100, buffer_size=100)
    >>> result = rl.train("RiskyPath", rl.NKDQN(support=(-6, 3)), settings)
    >>> valley, mountain_pass = result.return_distribution([1.0, 0.0, 0.0])
    >>> valley.ppf([0.05, 0.95]).shape
    (1, 2)
    """

    env_name: str
    agent: Agent
    settings: Settings
    seeds: tuple[int, ...]
    n_actions: int
    observation_size: int
    networks: Network
    curve: Curve
    n_steps: int
    interrupted: bool = False
    observations: Observations = None  # type: ignore[assignment]  # set below
    env_by_name: bool = True

    def __post_init__(self) -> None:
        if self.observations is None:
            object.__setattr__(self, "observations", Observations((self.observation_size,)))

    def __repr__(self) -> str:
        n, late = len(self.seeds), self.curve.last_fifth() if len(self.curve.step) else ()
        kind = self.agent.to_config()
        name = kind.get("kernels", kind["kind"])
        facts = [f"{n} {name} agent{'s' * (n != 1)} in {self.env_name}", f"{self.n_steps:,} steps"]
        if len(late):
            facts.append(f"mean return {written(float(np.mean(late)))} in the last fifth")
        return f"Result({', '.join(facts)})"

    @property
    def _program(self) -> Program:
        return Program(
            self.agent,
            self.settings,
            self.n_actions,
            self.observation_size,
            None,
            image=self.observations.image,
        )

    def network(self, agent: int = 0) -> Network:
        """Return the network of one agent.

        Parameters
        ----------
        agent
            Its position among the seeds.

        Raises
        ------
        NkcmeError
            If there is no such agent.
        """
        if not -len(self.seeds) <= agent < len(self.seeds):
            raise NkcmeError(f"there are {len(self.seeds)} agents, numbered from 0; got {agent}")
        return jax.tree.map(lambda leaf: leaf[agent], self.networks)

    def best(self) -> int:
        """Return the agent with the highest mean return over the last fifth of training."""
        return int(np.argmax(self.curve.last_fifth())) if len(self.curve.step) else 0

    @single_precision()
    def _outputs(self, observation: ArrayLike, agent: int) -> np.ndarray:
        """Return the outputs (n, n_actions, width) for one observation or a table of them."""
        vectors = jnp.atleast_2d(jnp.asarray(self._vectors(observation)[0]))
        return np.asarray(_outputs(self._program, self.network(agent), vectors))

    def _vectors(self, observation: ArrayLike) -> tuple[np.ndarray, bool]:
        """Return observations as vectors (n, observation_size), and whether it is a single one.

        Given are vectors, or observations as the environment gives them.
        """
        array, shape = np.asarray(observation), self.observations.shape
        if array.shape == shape:
            return self.observations.vector(observation)[None], True
        if array.shape[-1:] == (self.observation_size,) and array.ndim in (1, 2):
            return np.atleast_2d(array.astype(np.float32)), array.ndim == 1
        if shape and array.shape[1:] == shape:
            return np.stack([self.observations.vector(one) for one in array]), False
        vector = f" (or its vector of {self.observation_size} numbers)" if len(shape) != 1 else ""
        raise NkcmeError(
            f"expected an observation of {self.observations.description}{vector}, or a table of "
            f"such; got an array of shape {array.shape}"
        )

    def return_distribution(self, observation: ArrayLike, agent: int = 0) -> list[Distribution]:
        """Predict the distribution of each action's return.

        Parameters
        ----------
        observation
            One observation or a table of them, as the environment gives them or as vectors
            (observation_size,).
        agent
            The position of the agent among the seeds.

        Returns
        -------
        list of Distribution
            One distribution per action, with one row per observation. Returns are discounted and
            in the environment's unit.

        Raises
        ------
        NkcmeError
            If an observation has another length, or there is no such agent.
        """
        outputs = self._outputs(observation, agent)
        scale = 1.0 / self.settings.reward_scale
        return [self.agent.distribution(outputs[:, a], scale) for a in range(self.n_actions)]

    def act(
        self, observation: ArrayLike, agent: int = 0, *, risk: float | None = None
    ) -> int | np.ndarray:
        """Return the best action for one observation, or for each of a table.

        Parameters
        ----------
        observation
            One observation or a table of them, as the environment gives them or as vectors
            (observation_size,).
        agent
            The position of the agent among the seeds.
        risk
            None to rank actions by the mean return. A share in (0, 1) to rank them by the mean of
            that worst share of returns, the conditional value at risk, which is averse to risk.

        Returns
        -------
        int or ndarray of shape (n,)
            The action of one observation, or the actions of a table. They count from 0, also where
            the actions of the environment begin with another number.

        Raises
        ------
        NkcmeError
            If ``risk`` is not between 0 and 1, an observation has another shape, or there is no
            such agent.
        """
        vectors, single = self._vectors(observation)
        actions = self.actions(vectors, agent, risk=risk)
        return int(actions[0]) if single else actions

    def actions(
        self, vectors: np.ndarray, agent: int = 0, *, risk: float | None = None
    ) -> np.ndarray:
        """Return the best actions (n,) for observations as vectors (n, observation_size)."""
        returns = self.return_distribution(vectors, agent)
        if risk is None:
            worth = np.stack([r.mean() for r in returns])
        else:
            if not 0.0 < risk < 1.0:
                raise NkcmeError(f"risk must be a share between 0 and 1; got {risk!r}")
            levels = risk * (np.arange(_TAIL_LEVELS) + 0.5) / _TAIL_LEVELS
            worth = np.stack([r.ppf(levels).mean(axis=-1) for r in returns])
        return np.argmax(worth, axis=0)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agents to a directory of JSON and safetensors; `load` reads them.

        The file ``progress.csv`` in it holds the return and loss of every evaluation.

        Parameters
        ----------
        path
            The directory; an existing model there is replaced.
        """
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
            "observations": self.observations.to_config(),
            "env_by_name": self.env_by_name,
        }
        arrays = named_arrays(eqx.filter(self.networks, eqx.is_array), _NETWORK)
        write_model(path, config, arrays | self.curve.as_arrays())
        write_progress(self.curve, self.seeds, Path(path) / PROGRESS)


@partial(jax.jit, static_argnums=0)
def _outputs(program: Program, network: Network, observations: jax.Array) -> jax.Array:
    return jax.vmap(lambda o: learning.outputs(program, network, o))(observations)


def load(path: str | os.PathLike[str]) -> Result:
    """Read the agents that `Result.save` wrote.

    Parameters
    ----------
    path
        The directory.

    Returns
    -------
    Result
        The saved agents.

    Raises
    ------
    ModelFileError
        If there are no agents at ``path``, the files are damaged, or the module that defines their
        class has not been imported.

    Examples
    --------
    >>> from nkcme import rl
    >>> agents = rl.load("cartpole")  # doctest: +SKIP
    """
    config, arrays = read_model(path)
    if config.get("estimator") != "rl":
        raise ModelFileError(
            f"{str(path)!r}: expected agents, found a model of {config.get('estimator')!r}; load "
            "it with nkcme.load"
        )
    try:
        return _from_file(config, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from error
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
        raise NkcmeError("a support that is not resolved")
    observations = None  # of vectors, in files of earlier versions
    if "observations" in config:
        observations = Observations.from_config(config["observations"])
        if observations.size != size:
            raise NkcmeError(f"observations of {observations.size} numbers in place of {size}")
    image = None if observations is None else observations.image
    program = Program(agent, settings, n_actions, size, None, image=image)
    seeds = tuple(config["seeds"])
    curve = Curve.from_arrays(arrays)
    if curve.step.ndim != 1 or curve.returns.shape != (len(curve.step), len(seeds)):
        raise NkcmeError(f"a curve of shape {curve.returns.shape}")
    if curve.loss.shape != curve.returns.shape:
        raise NkcmeError(f"losses of shape {curve.loss.shape}")
    skeleton = jax.eval_shape(lambda key: learning.fresh_network(program, key), jax.random.key(0))
    parameters = {name: array for name, array in arrays.items() if name.startswith(_NETWORK)}
    return Result(
        env_name=str(config["env"]),
        agent=agent,
        settings=settings,
        seeds=seeds,
        n_actions=n_actions,
        observation_size=size,
        networks=tree_from_model_file(skeleton, parameters, _NETWORK, leading=(len(seeds),)),
        curve=curve,
        n_steps=n_steps,
        interrupted=bool(config["interrupted"]),
        observations=observations,  # type: ignore[arg-type]
        env_by_name=bool(config.get("env_by_name", True)),
    )
