"""The training task of CARD: first the conditional mean, then the noise network."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from nkcme.estimators.card.diffusion import add_noise, alpha_bars
from nkcme.estimators.card.networks import DiffusionModel, NoiseNetwork
from nkcme.networks import MLP
from nkcme.training.optimizers import Descent
from nkcme.training.task import Objective, Task

#: x, y, and whether the conditional mean learns from the row (1 or 0).
Batch = tuple[Array, Array, Array]

#: Diffusion steps at which the validation score is computed.
_VALIDATION_STEPS = 32


class Spec(NamedTuple):
    """The values that define a training program. Equal specs share a compiled program."""

    n_in: int
    n_out: int
    hidden: tuple[int, ...]
    activation: str
    noise_hidden: tuple[int, ...]
    n_diffusion_steps: int
    mean_descent: Descent
    noise_descent: Descent


def _init(spec: Spec, key: Array, bounds: tuple[Array, Array]) -> DiffusionModel:
    mean_key, noise_key = jax.random.split(key)
    mean = MLP(
        spec.n_in,
        spec.n_out,
        spec.hidden,
        activation=spec.activation,
        head="signed",
        key=mean_key,
    )
    noise = NoiseNetwork(spec.n_in, spec.n_out, spec.noise_hidden, key=noise_key)
    return DiffusionModel(mean, noise, *bounds)


@lru_cache(maxsize=64)
def make_task(spec: Spec) -> Task:
    """The training task of a spec. Equal specs get the same object, which is compiled once."""
    n_steps, alpha_bar = spec.n_diffusion_steps, alpha_bars(spec.n_diffusion_steps)

    def mean_loss(model: DiffusionModel, batch: Batch, _: Array) -> Array:
        x, y, learned = batch
        errors = jnp.mean(jnp.square(jax.vmap(model.mean)(x) - y), axis=1)
        return jnp.sum(learned * errors) / jnp.maximum(jnp.sum(learned), 1.0)

    def noise_error(model: DiffusionModel, x: Array, y: Array, step: Array, noise: Array) -> Array:
        mean = jax.lax.stop_gradient(model.mean(x))
        noisy = add_noise(y, mean, alpha_bar[step], noise)
        predicted = model.noise(x, mean, noisy, (step + 0.5) / n_steps)
        return jnp.mean(jnp.square(predicted - noise))

    def noise_loss(model: DiffusionModel, batch: Batch, key: Array) -> Array:
        x, y, _ = batch
        step_key, noise_key = jax.random.split(key)
        # Steps come in pairs t and T - 1 - t, as in Han et al., so that every minibatch has early
        # and late ones.
        half = jax.random.randint(step_key, ((len(y) + 1) // 2,), 0, n_steps)
        steps = jnp.concatenate([half, n_steps - 1 - half])[: len(y)]
        noise = jax.random.normal(noise_key, y.shape)
        return jnp.mean(jax.vmap(partial(noise_error, model))(x, y, steps, noise))

    def validation(model: DiffusionModel, batch: Batch) -> Array:
        """The error of the noise, over fixed steps and fixed noise."""
        steps = jnp.linspace(0, n_steps - 1, _VALIDATION_STEPS).astype(jnp.int32)
        noise = jax.random.normal(jax.random.key(0), (len(steps), spec.n_out))

        def one_row(x: Array, y: Array) -> Array:
            return jnp.mean(jax.vmap(partial(noise_error, model, x, y))(steps, noise))

        return jax.vmap(one_row)(*batch[:2])

    def only(network: str, model: DiffusionModel) -> DiffusionModel:
        """Marks the leaves of one network."""
        nothing = jax.tree.map(lambda _: False, model)
        marks = jax.tree.map(lambda _: True, getattr(model, network))
        return eqx.tree_at(lambda m: getattr(m, network), nothing, marks)

    mean_steps = spec.mean_descent.n_steps
    return Task(
        init=partial(_init, spec),
        objectives=(
            Objective(
                mean_loss,
                partial(only, "mean"),
                spec.mean_descent.optimizer(),
                window=(0, mean_steps),
            ),
            Objective(
                noise_loss,
                partial(only, "noise"),
                spec.noise_descent.optimizer(),
                window=(mean_steps, mean_steps + spec.noise_descent.n_steps),
            ),
        ),
        validation=validation,
    )
