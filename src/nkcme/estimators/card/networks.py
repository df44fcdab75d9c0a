"""The two networks of CARD: the conditional mean f(x), and the noise in a noised target."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.networks import MLP

#: Frequencies of the time embedding, in periods over the whole diffusion.
_FREQUENCIES = 2.0 ** np.arange(-2, 6)


class NoiseNetwork(eqx.Module):
    """(x, f(x), y_t, t) -> the noise in y_t.

    Each hidden layer is multiplied by a gate that depends on the diffusion step. Han et al. learn
    one gate per step. Here a gate is a smooth function of the step, with far fewer parameters.
    """

    layers: tuple[eqx.nn.Linear, ...]
    gates: tuple[eqx.nn.Linear, ...]
    last: eqx.nn.Linear

    def __init__(self, n_in: int, n_out: int, hidden: Sequence[int], *, key: Array):
        keys = iter(jax.random.split(key, 2 * len(hidden) + 1))
        sizes = [n_in + 2 * n_out, *hidden]
        self.layers = tuple(
            eqx.nn.Linear(a, b, key=next(keys)) for a, b in zip(sizes[:-1], hidden, strict=True)
        )
        self.gates = tuple(eqx.nn.Linear(2 * len(_FREQUENCIES), b, key=next(keys)) for b in hidden)
        self.last = eqx.nn.Linear(sizes[-1], n_out, key=next(keys))

    def __call__(self, x: Array, mean: Array, noisy: Array, time: Array) -> Array:
        return self.noise(self.condition(x, mean), noisy, time)

    def condition(self, x: Array, mean: Array) -> Array:
        """The terms of the first layer that are the same in all diffusion steps."""
        return self.layers[0](jnp.concatenate([jnp.zeros_like(mean), mean, x]))

    def noise(self, condition: Array, noisy: Array, time: Array) -> Array:
        """The noise in ``noisy`` (d,); ``time`` is the diffusion step, scaled to (0, 1)."""
        angles = 2 * jnp.pi * _FREQUENCIES.astype(np.float32) * time
        embedded = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)])
        h = condition + self.layers[0].weight[:, : noisy.shape[0]] @ noisy
        # Gates start near one, so that the untrained network passes the signal at every step.
        h = jax.nn.softplus((1.0 + self.gates[0](embedded)) * h)
        for layer, gate in zip(self.layers[1:], self.gates[1:], strict=True):
            h = jax.nn.softplus((1.0 + gate(embedded)) * layer(h))
        return self.last(h)


class DiffusionModel(eqx.Module):
    """Both networks, and bounds (d,) on the estimate of y in the early reverse steps.

    That estimate is divided by sqrt(A_t), which is close to zero there. Without bounds, a small
    error of the noise network gives samples far outside the range of y.
    """

    mean: MLP
    noise: NoiseNetwork
    low: Array
    high: Array
