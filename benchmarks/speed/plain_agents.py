"""The reference for speed: the paper's fused loss in a jitted step that a Python loop calls.

Agents train side by side under vmap. Of this library it uses the environments alone. It is written
well: the step splits keys, copies targets and writes the replay in place, and nothing is moved to
the host. But the steps are not scanned, and nothing is precomputed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from nkcme.rl.envs import Compiled, make
from nkcme.rl.settings import Settings

N_ATOMS = 51
SUPPORT = (-100.0, 100.0)


def fused_loss(w: Array, v: Array, reward: Array, discount: Array, sigmas: Array) -> Array:
    """The loss of section 5.3 for one transition; weights w (network) and v (target) (N_ATOMS,)."""
    eta = jnp.linspace(*SUPPORT, N_ATOMS)
    tau = reward + discount * eta

    def squared_mmd(sigma: Array) -> Array:
        gram = lambda a, b: jnp.exp(-((a[:, None] - b[None]) ** 2) / (2 * sigma**2))  # noqa: E731
        return v @ gram(tau, tau) @ v - 2 * v @ gram(tau, eta) @ w + w @ gram(eta, eta) @ w

    return jax.nn.logsumexp(jax.vmap(squared_mmd)(sigmas)) - jnp.log(len(sigmas))


class PlainAgents:
    """Fused agents in an environment, by the paper's recipe."""

    def __init__(self, env_name: str, n_agents: int, settings: Settings, sigmas: Array):
        env = make(env_name, "gymnax")
        assert isinstance(env, Compiled)
        n_actions, size, capacity = env.n_actions, env.observation_size, settings.buffer_size
        eta = jnp.linspace(*SUPPORT, N_ATOMS)
        width, depth = settings.hidden[0], len(settings.hidden)
        optimizer = optax.adam(settings.learning_rate, eps=settings.adam_eps)
        build = partial(eqx.nn.MLP, size, n_actions * N_ATOMS, width, depth)
        static = eqx.partition(build(key=jax.random.key(0)), eqx.is_array)[1]

        def weights(network: Any, observation: Array) -> Array:
            out = eqx.combine(network, static)(observation).reshape(n_actions, N_ATOMS)
            return jax.nn.softmax(out, axis=-1)

        def start(key: Array) -> dict[str, Any]:
            network_key, env_key, key = jax.random.split(key, 3)
            network = eqx.filter(build(key=network_key), eqx.is_array)
            env_state, observation = env.reset(env_key)
            return {
                "network": network,
                "target": jax.tree.map(jnp.copy, network),
                "optimizer": optimizer.init(network),
                "env": env_state,
                "observation": observation,
                "key": key,
                "replay": {
                    "observation": jnp.zeros((capacity, size)),
                    "next": jnp.zeros((capacity, size)),
                    "action": jnp.zeros(capacity, jnp.int32),
                    "reward": jnp.zeros(capacity),
                    "ended": jnp.zeros(capacity, bool),
                },
            }

        def loss(network: Any, target: Any, batch: dict[str, Array]) -> Array:
            def one(row: dict[str, Array]) -> Array:
                ahead = weights(target, row["next"])
                v = ahead[jnp.argmax(ahead @ eta)]
                w = weights(network, row["observation"])[row["action"]]
                discount = jnp.where(row["ended"], 0.0, settings.gamma)
                return fused_loss(w, v, row["reward"], discount, sigmas)

            return jnp.mean(jax.vmap(one)(batch))

        def step(state: dict[str, Any], t: Array, *, update: bool) -> dict[str, Any]:
            keys = jax.random.split(state["key"], 5)
            observation = state["observation"]
            share = jnp.minimum(t / settings.epsilon_steps, 1.0)
            epsilon = 1.0 + share * (settings.epsilon - 1.0)
            greedy = jnp.argmax(weights(state["network"], observation) @ eta)
            other = jax.random.randint(keys[1], (), 0, n_actions)
            action = jnp.where(jax.random.uniform(keys[2]) < epsilon, other, greedy)
            env_state, after = env.step(keys[3], state["env"], action)
            row = {
                "observation": observation,
                "next": after.final,
                "action": action,
                "reward": after.reward,
                "ended": after.terminated | after.truncated,
            }
            replay = {k: state["replay"][k].at[t % capacity].set(row[k]) for k in row}
            network, opt_state = state["network"], state["optimizer"]
            if update:
                size = jnp.minimum(t + 1, capacity)
                i = jax.random.randint(keys[4], (settings.batch_size,), 0, size)
                batch = {k: replay[k][i] for k in replay}
                gradient = jax.grad(loss)(network, state["target"], batch)
                change, opt_state = optimizer.update(gradient, opt_state)
                network = optax.apply_updates(network, change)
            copy = (t + 1) % settings.target_every == 0
            target = jax.tree.map(lambda n, o: jnp.where(copy, n, o), network, state["target"])
            return {
                "network": network,
                "target": target,
                "optimizer": opt_state,
                "env": env_state,
                "observation": after.observation,
                "key": keys[0],
                "replay": replay,
            }

        # The state is donated to each step, so that the replay is written in place.
        self._steps = {
            update: jax.jit(
                jax.vmap(partial(step, update=update), in_axes=(0, None)), donate_argnums=0
            )
            for update in (False, True)
        }
        self._update_every = settings.update_every
        self._state = jax.jit(jax.vmap(start))(jax.random.split(jax.random.key(0), n_agents))
        self._t = 0

    def run(self, n_steps: int) -> None:
        """Train every agent for ``n_steps``; finished when this returns."""
        for t in range(self._t, self._t + n_steps):
            update = (t + 1) % self._update_every == 0
            self._state = self._steps[update](self._state, t)
        self._t += n_steps
        jax.block_until_ready(self._state)
