"""The learning side of an agent: its networks, acting, and one update.

Both loops are made of these functions: the compiled one (`nkcme.rl.loop`) and the one through
Gymnasium (`nkcme.rl.host_loop`).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from nkcme.networks import MLP
from nkcme.rl import replay as buffer
from nkcme.rl.agents.base import Agent, RewardSupport
from nkcme.rl.networks import ImageNetwork, Network
from nkcme.rl.replay import Replay
from nkcme.rl.settings import Settings
from nkcme.training.optimizers import SCHEDULES

PyTree = Any

#: The advice of the error that a loss which is not finite raises.
DIVERGENCE_ADVICE = "lower the learning rate, or scale the rewards (reward_scale)"

#: The share of the targets' mass outside the support from which on a warning is given.
_MAX_OUTSIDE = 0.01


class Learner(NamedTuple):
    """The state of one agent. ``average`` acts in evaluations, where averaging is on."""

    network: Network
    target: Network
    average: Network | None
    optimizer: PyTree
    replay: Replay


class Program(NamedTuple):
    """The static arguments of the compiled programs: equal ones share programs.

    ``n_envs`` environments fill the replay of one agent in turns. Where observations are images,
    ``image`` is their height, width and channels.
    """

    agent: Agent
    settings: Settings
    n_actions: int
    observation_size: int
    reward_support: RewardSupport | None
    n_envs: int = 1
    image: tuple[int, int, int] | None = None

    @property
    def row_width(self) -> int:
        """The width of a row of the replay."""
        return 2 * self.observation_size + 4


def optimizer(settings: Settings) -> optax.GradientTransformation:
    """Return Adam with the learning rate of the settings."""
    n_updates = settings.n_steps // settings.update_every
    rate = SCHEDULES[settings.schedule](settings.learning_rate, n_updates)
    return optax.adam(rate, eps=settings.adam_eps)


def fresh_network(program: Program, key: Array) -> Network:
    """Return an untrained network."""
    n_out, settings = program.n_actions * program.agent.width, program.settings
    activation, size = settings.activation, program.observation_size
    if program.image is not None:
        return ImageNetwork(program.image, n_out, settings.hidden, activation=activation, key=key)
    return MLP(size, n_out, settings.hidden, activation=activation, head="signed", key=key)


def start(program: Program, key: Array) -> Learner:
    """Return an untrained learner with an empty replay."""
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


def outputs(program: Program, network: Network, observation: Array) -> Array:
    """Return the network's outputs for one observation, (n_actions, width)."""
    return network(observation).reshape(program.n_actions, program.agent.width)


def greedy(program: Program, network: Network, observation: Array) -> Array:
    """Return the action with the highest expected return."""
    return jnp.argmax(program.agent.value(outputs(program, network, observation)))


def act(
    program: Program,
    network: Network,
    observation: Array,
    epsilon: Array | float,
    uniform: Array,
    random_action: Array,
) -> Array:
    """Return the greedy action, or the random one where ``uniform`` in [0, 1) is below epsilon."""
    return jnp.where(uniform < epsilon, random_action, greedy(program, network, observation))


def acting(learner: Learner) -> Network:
    """Return the network that acts in evaluations."""
    return learner.network if learner.average is None else learner.average


def with_target_copied(settings: Settings, learner: Learner, done: Array) -> Learner:
    """Return the learner with the network copied to the target, if that is due after a step."""
    target = optax.periodic_update(learner.network, learner.target, done, settings.target_every)
    return learner._replace(target=target)


def epsilon_at(settings: Settings, step: Array | float) -> Array:
    """Return the share of random actions: linear from 1 to epsilon over ``epsilon_steps``."""
    share = jnp.minimum(step / settings.epsilon_steps, 1.0)
    return 1.0 + share * (settings.epsilon - 1.0)


def learn(
    program: Program, learner: Learner, uniform: Array, size: Array | int, newest: Array | int
) -> tuple[Learner, dict[str, Array]]:
    """Make one update, on the batch that ``uniform`` (batch_size,) in [0, 1) selects.

    The values are the loss and the mean mass of the targets outside the support.
    """
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
        n_envs=program.n_envs,
    )
    rows = jnp.arange(settings.batch_size)
    ahead = jax.vmap(lambda o: outputs(program, learner.target, o))(batch.next_observation)
    choosing = ahead
    if settings.double:
        choosing = jax.vmap(lambda o: outputs(program, learner.network, o))(batch.next_observation)
    target = ahead[rows, jnp.argmax(agent.value(choosing), axis=-1)]
    reward = settings.reward_scale * batch.reward

    def loss(network: Network) -> tuple[Array, Array]:
        every = jax.vmap(lambda o: outputs(program, network, o))(batch.observation)
        losses = agent.losses(
            every[rows, batch.action], target, reward, batch.discount, program.reward_support
        )
        return jnp.mean(batch.weight * losses), losses

    (value, losses), gradient = jax.value_and_grad(loss, has_aux=True)(learner.network)
    change, state = optimizer(settings).update(gradient, learner.optimizer)
    network = optax.apply_updates(learner.network, change)
    average = learner.average
    if average is not None:
        # optax.incremental_update adds in the other order, which changes the last digits.
        keep = settings.averaging
        average = jax.tree.map(lambda a, n: keep * a + (1.0 - keep) * n, average, network)
    outside = jnp.mean(agent.mass_outside(target, reward, batch.discount))
    learner = Learner(
        network,
        learner.target,
        average,
        state,
        buffer.reprioritise(learner.replay, batch.row, losses),
    )
    return learner, {"loss": value, "outside": outside}


def warn_of_support(agent: Agent, share: float, step: int) -> bool:
    """Warn if that share of the targets' mass is outside the support; return whether it did.

    The warning names the caller of `nkcme.rl.train`: six calls above, through the ``record`` of a
    run, `nkcme.training.chunks.run_in_chunks`, the loop and its decorator.
    """
    if share <= _MAX_OUTSIDE:
        return False
    bounds = getattr(agent, "support", None)
    of = "" if bounds is None else f" of [{bounds[0]:g}, {bounds[1]:g}]"
    warnings.warn(
        f"{share:.0%} of the targets' mass lay outside the support{of} by step {step}: give a "
        'wider support, or support="auto"',
        stacklevel=7,
    )
    return True
