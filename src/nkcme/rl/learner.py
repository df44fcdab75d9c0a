"""An agent with a network: acting and learning, whoever steps the environment.

Both loops are made of these: the compiled one (`nkcme.rl.loop`) and the one on the host
(`nkcme.rl.host_loop`).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from nkcme.errors import TrainingError
from nkcme.networks import MLP
from nkcme.rl import replay as buffer
from nkcme.rl.agents.base import Agent, Outcomes
from nkcme.rl.replay import Replay
from nkcme.rl.settings import Settings

PyTree = Any

#: Targets beyond the support are worth a warning from this share of their mass on.
_WORTH_A_WARNING = 0.01


class Learner(NamedTuple):
    """One agent's state. ``average`` is what acts when it counts, where that is another network
    than the one that learns."""

    network: MLP
    target: MLP
    average: MLP | None
    optimizer: PyTree
    replay: Replay


class Program(NamedTuple):
    """What is compiled: equal programs are compiled once."""

    agent: Agent
    settings: Settings
    n_actions: int
    observation_size: int
    outcomes: Outcomes | None

    @property
    def row_width(self) -> int:
        return 2 * self.observation_size + 4


def optimizer(settings: Settings) -> optax.GradientTransformation:
    rate: Any = settings.learning_rate
    if settings.schedule == "cosine":
        rate = optax.cosine_decay_schedule(rate, settings.n_steps // settings.update_every)
    return optax.adam(rate, eps=settings.adam_eps)


def fresh_network(program: Program, key: Array) -> MLP:
    return MLP(
        program.observation_size,
        program.n_actions * program.agent.width,
        program.settings.hidden,
        activation=program.settings.activation,
        head="signed",
        key=key,
    )


def start(program: Program, key: Array) -> Learner:
    settings = program.settings
    network = fresh_network(program, key)
    capacity = settings.buffer_size
    return Learner(
        network,
        network,
        network if settings.averaging else None,
        optimizer(settings).init(eqx.filter(network, eqx.is_inexact_array)),
        Replay(
            jnp.zeros((capacity, program.row_width)),
            jnp.ones(capacity) if settings.prioritized else None,
        ),
    )


def outputs(program: Program, network: MLP, observation: Array) -> Array:
    """What the network gives for one observation, (n_actions, width)."""
    return network(observation).reshape(program.n_actions, program.agent.width)


def greedy(program: Program, network: MLP, observation: Array) -> Array:
    """The action of the highest expected return."""
    return jnp.argmax(program.agent.value(outputs(program, network, observation)))


def act(
    program: Program,
    network: MLP,
    observation: Array,
    epsilon: Array | float,
    chance: Array,
    other: Array,
) -> Array:
    """The greedy action, or ``other`` where ``chance`` in [0, 1) is below epsilon."""
    return jnp.where(chance < epsilon, other, greedy(program, network, observation))


def acting(learner: Learner) -> MLP:
    """The network that acts when it counts."""
    return learner.network if learner.average is None else learner.average


def with_target_copied(learner: Learner, due: Array) -> Learner:
    """The target network is the one that learns, where it is time for that."""
    copied = jax.tree.map(
        lambda new, old: jnp.where(due, new, old), learner.network, learner.target
    )
    return learner._replace(target=copied)


def epsilon_at(settings: Settings, step: Array | float) -> Array:
    """Linear from 1 to ``settings.epsilon`` over ``settings.epsilon_steps``."""
    share = jnp.minimum(step / settings.epsilon_steps, 1.0)
    return 1.0 + share * (settings.epsilon - 1.0)


def learn(
    program: Program, learner: Learner, uniform: Array, size: Array | int, newest: Array | int
) -> tuple[Learner, dict[str, Array]]:
    """One update, on a batch by the numbers ``uniform`` (batch_size,) in [0, 1)."""
    agent, settings = program.agent, program.settings
    batch = buffer.sample(
        learner.replay,
        uniform,
        size,
        newest,
        observation_size=program.observation_size,
        gamma=settings.gamma,
        n_step=settings.n_step,
        bootstrap_on_truncation=settings.bootstrap_on_truncation,
    )
    rows = jnp.arange(settings.batch_size)
    ahead = jax.vmap(lambda o: outputs(program, learner.target, o))(batch.next_observation)
    choosing = ahead
    if settings.double:
        choosing = jax.vmap(lambda o: outputs(program, learner.network, o))(batch.next_observation)
    target = ahead[rows, jnp.argmax(agent.value(choosing), axis=-1)]
    reward = settings.reward_scale * batch.reward

    def loss(network: MLP) -> tuple[Array, Array]:
        every = jax.vmap(lambda o: outputs(program, network, o))(batch.observation)
        losses = agent.losses(
            every[rows, batch.action], target, reward, batch.discount, program.outcomes
        )
        return jnp.mean(batch.weight * losses), losses

    (value, losses), gradient = jax.value_and_grad(loss, has_aux=True)(learner.network)
    change, state = optimizer(settings).update(gradient, learner.optimizer)
    network = optax.apply_updates(learner.network, change)
    average = learner.average
    if average is not None:
        keep = settings.averaging
        average = jax.tree.map(lambda a, n: keep * a + (1.0 - keep) * n, average, network)
    told = {"loss": value, "outside": jnp.mean(agent.outside(target, reward, batch.discount))}
    return (
        Learner(
            network,
            learner.target,
            average,
            state,
            buffer.reprioritise(learner.replay, batch.row, losses),
        ),
        told,
    )


def refuse_divergence(losses: np.ndarray, step: int) -> None:
    """Raise where the loss of one of the agents is not a number any more."""
    bad = np.flatnonzero(~np.isfinite(losses))
    if bad.size:
        raise TrainingError(
            f"the loss of agent {bad[0]} is {losses[bad[0]]} after {step} steps: lower the "
            "learning rate, or scale the rewards (reward_scale)"
        )


def warn_of_support(agent: Agent, share: float, step: int) -> bool:
    """Warn where that share of the targets' mass lies outside the support; whether it was so.

    For the functions below `nkcme.rl.train`, whose caller the warning shall name.
    """
    if share <= _WORTH_A_WARNING:
        return False
    low, high = agent.support  # type: ignore[attr-defined]
    warnings.warn(
        f"{share:.0%} of the targets' mass lay outside the support of [{low:g}, {high:g}] by step "
        f'{step}: give a wider support, or support="auto"',
        stacklevel=5,
    )
    return True
