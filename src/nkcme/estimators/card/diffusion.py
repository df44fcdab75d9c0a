"""The diffusion of CARD: noise added in T steps from y to N(f(x), 1), and removed to sample.

Notation of Han et al.: beta_t is the variance of the noise of step t, alpha_t = 1 - beta_t, and
A_t = prod_{s <= t} alpha_s. After t steps

    y_t = sqrt(A_t) y + (1 - sqrt(A_t)) f(x) + sqrt(1 - A_t) e,    e ~ N(0, 1).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.estimators.card.networks import DiffusionModel

#: The first and the last beta of a linear schedule of 1,000 steps, as in Han et al.
BETAS = (1e-4, 2e-2)


def betas(n_steps: int) -> np.ndarray:
    """The noise variances (T,). A_t falls along the same curve for every number of steps."""
    log_alpha_bars = np.concatenate([[0.0], np.cumsum(np.log1p(-np.linspace(*BETAS, 1000)))])
    at_steps = np.interp(np.linspace(0, 1000, n_steps + 1), np.arange(1001), log_alpha_bars)
    return -np.expm1(np.diff(at_steps))


def alpha_bars(n_steps: int) -> Array:
    """A_t (T,): the share of the variance of y that remains after each step."""
    return jnp.asarray(np.cumprod(1.0 - betas(n_steps)), jnp.float32)


def add_noise(y: Array, mean: Array, alpha_bar: Array, noise: Array) -> Array:
    """y_t from y, f(x), A_t and e."""
    root = jnp.sqrt(alpha_bar)
    return root * y + (1.0 - root) * mean + jnp.sqrt(1.0 - alpha_bar) * noise


@partial(jax.jit, static_argnums=(3, 4, 5))
def sample(
    model: DiffusionModel, x: Array, key: Array, n_samples: int, n_steps: int, shared: bool
) -> Array:
    """Samples (n_samples, n, d) at inputs (n, p), in standardised units: Algorithm 2 of Han et al.

    With ``shared``, all rows get the same noise.
    """
    mean = jax.vmap(model.mean)(x)
    center = mean[None]
    condition = jax.vmap(model.noise.condition)(x, mean)
    shape = (n_samples, 1 if shared else len(x), mean.shape[1])

    # q(y_{t-1} | y_t, y, f) has mean g0 y + g1 y_t + g2 f. Coefficients are computed in float64.
    beta = betas(n_steps)
    alpha = 1.0 - beta
    alpha_bar = np.cumprod(alpha)
    previous = np.concatenate([[1.0], alpha_bar[:-1]])
    root_sum = np.sqrt(alpha) + np.sqrt(previous)
    coefficients = {
        "time": (np.arange(n_steps) + 0.5) / n_steps,
        "root": np.sqrt(alpha_bar),
        "noise": np.sqrt(1.0 - alpha_bar),
        "g0": beta * np.sqrt(previous) / (1.0 - alpha_bar),
        "g1": (1.0 - previous) * np.sqrt(alpha) / (1.0 - alpha_bar),
        "g2": 1.0 + (np.sqrt(alpha_bar) - 1.0) * root_sum / (1.0 - alpha_bar),
        "std": np.sqrt((1.0 - previous) / (1.0 - alpha_bar) * beta),
    }
    predict_noise = jax.vmap(jax.vmap(model.noise.noise, (0, 0, None)), (None, 0, None))

    def reverse_step(y: Array, step: tuple[dict[str, Array], Array]) -> tuple[Array, None]:
        c, step_key = step
        noise = predict_noise(condition, y, c["time"])
        clean = (y - (1.0 - c["root"]) * center - c["noise"] * noise) / c["root"]
        bounded = jnp.clip(clean, model.low[None, None], model.high[None, None])
        clean = jnp.where(c["root"] < 0.5, bounded, clean)
        fresh = c["std"] * jax.random.normal(step_key, shape)
        return c["g0"] * clean + c["g1"] * y + c["g2"] * center + fresh, None

    start_key, steps_key = jax.random.split(key)
    start = center + jax.random.normal(start_key, shape)
    backwards = {name: jnp.asarray(v[::-1], jnp.float32) for name, v in coefficients.items()}
    return jax.lax.scan(reverse_step, start, (backwards, jax.random.split(steps_key, n_steps)))[0]
