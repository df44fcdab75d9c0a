"""The reference for speed: the paper's loss in a jitted step that a Python loop calls.

Seeds train side by side under vmap. Nothing of this library's training engine is used.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

N_ATOMS, BATCH = 100, 50


class PlainTraining:
    """The paper's toy recipe on the data sets X (seeds, n, 1) and y (seeds, n)."""

    def __init__(self, X: np.ndarray, y: np.ndarray):
        self.X, self.y = jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32)
        n_seeds, n = y.shape
        self.eta = jax.vmap(lambda v: jnp.linspace(v.min(), v.max(), N_ATOMS))(self.y)
        keys = jax.random.split(jax.random.key(0), n_seeds)
        networks = eqx.filter_vmap(lambda k: eqx.nn.MLP(1, N_ATOMS, 50, 2, key=k))(keys)
        arrays, static = eqx.partition(networks, eqx.is_array)
        rho = jnp.full(n_seeds, math.log(math.expm1(1.0)))
        optimizer = optax.adamw(1e-4)
        self.state = ((arrays, rho), jax.vmap(optimizer.init)((arrays, rho)))
        self.key = jax.random.key(1)

        def kernel(difference: Array, sigma: Array) -> Array:
            norm = 1.0 / jnp.sqrt(2 * jnp.pi * sigma**2)
            return norm * jnp.exp(-(difference**2) / (2 * sigma**2))

        def loss(parameters: tuple, x: Array, y: Array, eta: Array) -> Array:
            network, rho = parameters
            sigma = jax.nn.softplus(rho)
            w = jax.vmap(eqx.combine(network, static))(x)
            k_y = kernel(y[:, None] - eta[None], sigma)
            k_eta = kernel(eta[:, None] - eta[None], sigma)
            first = -2 * jnp.sum(k_y * w, axis=1)
            return jnp.mean(first + jnp.einsum("ia,ab,ib->i", w, k_eta, w))

        def step(state: tuple, key: Array, X: Array, y: Array, eta: Array) -> tuple:
            parameters, opt_state = state
            i = jax.random.randint(key, (BATCH,), 0, n)
            value, gradient = jax.value_and_grad(loss)(parameters, X[i], y[i], eta)
            change, opt_state = optimizer.update(gradient, opt_state, parameters)
            return (optax.apply_updates(parameters, change), opt_state), value

        self._step = jax.jit(jax.vmap(step))

    def run(self, n_steps: int) -> np.ndarray:
        """Train for ``n_steps``; the last loss of each seed."""
        for _ in range(n_steps):
            self.key, key = jax.random.split(self.key)
            keys = jax.random.split(key, len(self.y))
            self.state, value = self._step(self.state, keys, self.X, self.y, self.eta)
        return np.asarray(jax.block_until_ready(value))
