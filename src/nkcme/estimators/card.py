"""CARD: a diffusion model guided by a regression (Han, Zheng and Zhou, 2022).

First a network f learns the conditional mean. Then noise is added to y in T small steps that end
not at N(0, 1) but at N(f(x), 1), and a second network learns to tell the noise from what is left:

    y_t = sqrt(A_t) y + (1 - sqrt(A_t)) f(x) + sqrt(1 - A_t) e,   A_t = prod_{s <= t} (1 - beta_s)

Undoing the steps one by one turns a draw of N(f(x), 1) into a draw of P(y | x).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from sklearn.utils import check_random_state

from nkcme.distributions.checks import as_rows, checked_size
from nkcme.distributions.sample import SampleDistribution
from nkcme.errors import NkcmeError
from nkcme.estimators.gradient_trained import (
    Descent,
    GradientTrainedEstimator,
    default_steps,
    padded,
)
from nkcme.estimators.training_data import Encoded
from nkcme.networks import MLP
from nkcme.parameter_checks import need_number, need_whole, need_wholes
from nkcme.training.loop import Objective, Task

#: Over a thousand steps beta rises evenly from the first to the second, as in Han et al.; fewer
#: steps are larger, so that as little of y is left in the end.
BETAS = (1e-4, 2e-2)

#: Frequencies, in turns over the whole diffusion, by which the noise network sees the step.
_FREQUENCIES = 2.0 ** np.arange(-2, 6)

#: Draws that are diffused at once: so few that a layer of them stays in a cache.
_BLOCK_DRAWS = 2**16


class NoiseNetwork(eqx.Module):
    """(x, f(x), y_t, t) -> the noise in y_t.

    Each hidden layer is multiplied by a gate that depends on the step, as in Han et al. Theirs
    looks a gate up for each step; ours is a smooth function of the step, with far fewer numbers.
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
        return self.after(self.before(x, mean), noisy, time)

    def before(self, x: Array, mean: Array) -> Array:
        """The first layer's share of what no step changes."""
        return self.layers[0](jnp.concatenate([jnp.zeros_like(mean), mean, x]))

    def after(self, known: Array, noisy: Array, time: Array) -> Array:
        """The noise in ``noisy`` at ``time``, a step's place from 0 to 1."""
        angles = 2 * jnp.pi * _FREQUENCIES.astype(np.float32) * time
        seen = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)])
        h = known + self.layers[0].weight[:, : noisy.shape[0]] @ noisy
        # Gates are about one: at the start all of the signal passes, whatever the step.
        h = jax.nn.softplus((1.0 + self.gates[0](seen)) * h)
        for layer, gate in zip(self.layers[1:], self.gates[1:], strict=True):
            h = jax.nn.softplus((1.0 + gate(seen)) * layer(h))
        return self.last(h)


class Diffusion(eqx.Module):
    """The two networks, and bounds (d,) for y while most of it is still noise.

    Undoing a step divides by what is left of y, next to nothing at first: without bounds a network
    that is a little wrong there draws far from any y.
    """

    mean: MLP
    noise: NoiseNetwork
    low: Array
    high: Array


class CARD(GradientTrainedEstimator):
    """Classification and regression diffusion: a conditional mean, then a diffusion guided by it.

    What it predicts are draws. `sample` makes fresh ones; the distribution that `predict_dist`
    gives holds ``n_draws`` of them a row, made from noise that is the same for all rows, and its
    density is theirs smoothed by a kernel (see `SampleDistribution`). Drawing passes the noise
    network once for each of ``n_diffusion_steps``: predictions cost far more than those of the
    other estimators.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers of the conditional mean.
    activation : {"relu", "silu", "gelu", "tanh"}
        Of the conditional mean.
    mean_epochs : int or None
        Passes over the data for the conditional mean. None: chosen from n.
    mean_fraction : float
        Share of rows, chosen at random, that the conditional mean learns from. From rows it has
        not seen the diffusion learns how far the mean is off; from rows it has learned by heart,
        that it is right. Han et al. keep 40 % from it, by stopping early on them.
    noise_hidden : tuple of int
        Widths of the hidden layers of the noise network.
    n_diffusion_steps : int
        Steps T from data to noise.
    n_draws : int
        Draws a row in a predicted distribution.
    epochs : int or None
        Passes over the data for the noise network. None: chosen from n.
    learning_rate, weight_decay, beta2 : float
        AdamW's, for both.
    schedule : {"cosine", "constant"}
        The course of each learning rate.
    batch_size : int
    standardize : bool
        Bring X and y to zero mean and unit variance for training; undone on the way out.
    validation_fraction : float
        Share of rows held out to decide, by the error in their noise, which state of training is
        kept; 0 for none.
    random_state : int, RandomState or None
    verbose : bool or "auto"
    checkpoint : path or None
        As for `NKCME`.

    Attributes
    ----------
    n_steps_ : int
        Steps trained, both networks together.
    history_ : dict of arrays
        ``step``, ``loss`` (the squared error, first of the mean, then of the noise) and, where
        there is one, ``validation``; an entry a chunk.
    n_features_in_, feature_names_in_, n_outputs_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: str = "relu",
        mean_epochs: int | None = None,
        mean_fraction: float = 0.6,
        noise_hidden: Sequence[int] = (128, 128, 128),
        n_diffusion_steps: int = 1000,
        n_draws: int = 200,
        epochs: int | None = None,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        beta2: float = 0.999,
        schedule: str = "cosine",
        batch_size: int = 256,
        standardize: bool = True,
        validation_fraction: float = 0.0,
        random_state: Any = None,
        verbose: bool | str = "auto",
        checkpoint: str | Path | None = None,
    ):
        self.hidden = hidden
        self.activation = activation
        self.mean_epochs = mean_epochs
        self.mean_fraction = mean_fraction
        self.noise_hidden = noise_hidden
        self.n_diffusion_steps = n_diffusion_steps
        self.n_draws = n_draws
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self.schedule = schedule
        self.batch_size = batch_size
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _check_own_parameters(self) -> None:
        need_wholes("noise_hidden", self.noise_hidden)
        if not len(self.noise_hidden):
            raise NkcmeError("noise_hidden must name at least one layer, as (128, 128); got ()")
        need_whole("n_diffusion_steps", self.n_diffusion_steps)
        need_whole("n_draws", self.n_draws)
        if self.mean_epochs is not None:
            need_whole("mean_epochs", self.mean_epochs)
        need_number("mean_fraction", self.mean_fraction, above=0.0, most=1.0)

    def _constant(self, data: Encoded) -> tuple[Array, Array]:
        """The range of y, widened by as much on either side."""
        low, high = data.y.min(axis=0), data.y.max(axis=0)
        width = high - low
        return jnp.asarray(low - width), jnp.asarray(high + width)

    def _constant_shape(self, spec: _Spec) -> tuple[Array, Array]:
        bound = jax.ShapeDtypeStruct((spec.n_out,), jnp.float32)
        return bound, bound  # type: ignore[return-value]

    def _more_columns(self, x: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
        """1 where the conditional mean learns from a row, else 0."""
        order = np.random.default_rng(seed).permutation(len(x))
        n_learned = max(int(np.ceil(float(self.mean_fraction) * len(x))), 1)
        return ((order < n_learned).astype(np.float32),)

    def _mean_steps(self, n_rows: int) -> int:
        if self.mean_epochs is not None:
            return self._steps_of(self.mean_epochs, n_rows)
        return default_steps(n_rows)

    def _n_steps(self, n_rows: int) -> int:
        # Noise of a thousand sizes takes longer to learn than a mean.
        noise = 5 * default_steps(n_rows)
        if self.epochs is not None:
            noise = self._steps_of(self.epochs, n_rows)
        return self._mean_steps(n_rows) + noise

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> _Spec:
        mean_steps = self._mean_steps(n_rows)
        return _Spec(
            n_in=n_in,
            n_out=n_out,
            hidden=tuple(int(h) for h in self.hidden),
            activation=self.activation,
            noise_hidden=tuple(int(h) for h in self.noise_hidden),
            n_diffusion_steps=int(self.n_diffusion_steps),
            mean_descent=self._descent(mean_steps),
            noise_descent=self._descent(n_steps - mean_steps),
        )

    @staticmethod
    def _task(spec: _Spec) -> Task:
        return make_task(spec)

    def _distribution(self, x: np.ndarray) -> DiffusedDraws:
        # Noise that all rows share: where a row stands in a table makes no difference.
        common = self._draw(x, int(self.n_draws), jax.random.key(0), shared=True)
        return DiffusedDraws(common, x, self._draw)

    def _rvs(self, x: np.ndarray, size: int, rng: np.random.RandomState) -> np.ndarray:
        return fresh_draws(self._draw, x, size, rng)

    def _draw(self, x: np.ndarray, size: int, key: Array, *, shared: bool = False) -> np.ndarray:
        """Draws (size, n_rows, d), in units of y."""
        filled = padded(x, fine=True)
        at_once = max(_BLOCK_DRAWS // len(filled), 1)
        pieces = [
            np.asarray(
                _diffuse(
                    self.model_,
                    filled,
                    jax.random.fold_in(key, first),
                    min(at_once, size - first),
                    int(self.n_diffusion_steps),
                    shared,
                ),
                np.float64,
            )[:, : len(x)]
            for first in range(0, size, at_once)
        ]
        z = np.concatenate([np.empty((0, len(x), self.n_outputs_)), *pieces])
        return self.scaler_.location + self.scaler_.scale * z


class _Spec(NamedTuple):
    """The numbers that make a training program; equal specs share one."""

    n_in: int
    n_out: int
    hidden: tuple[int, ...]
    activation: str
    noise_hidden: tuple[int, ...]
    n_diffusion_steps: int
    mean_descent: Descent
    noise_descent: Descent


#: x, y, and whether the conditional mean learns from the row.
Batch = tuple[Array, Array, Array]


def _init(spec: _Spec, key: Array, bounds: tuple[Array, Array]) -> Diffusion:
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
    return Diffusion(mean, noise, *bounds)


@lru_cache(maxsize=64)
def make_task(spec: _Spec) -> Task:
    """The training task of a spec; the same object for equal specs, so compiled once."""
    kept = _kept(spec.n_diffusion_steps)

    def mean_loss(model: Diffusion, batch: Batch, _: Array) -> Array:
        x, y, learned = batch
        errors = jnp.mean(jnp.square(jax.vmap(model.mean)(x) - y), axis=1)
        return jnp.sum(learned * errors) / jnp.maximum(jnp.sum(learned), 1.0)

    def noise_error(model: Diffusion, x: Array, y: Array, step: Array, noise: Array) -> Array:
        mean = jax.lax.stop_gradient(model.mean(x))
        root = jnp.sqrt(kept[step])
        noisy = root * y + (1.0 - root) * mean + jnp.sqrt(1.0 - kept[step]) * noise
        told = model.noise(x, mean, noisy, (step + 0.5) / spec.n_diffusion_steps)
        return jnp.mean(jnp.square(told - noise))

    def noise_loss(model: Diffusion, batch: Batch, key: Array) -> Array:
        x, y, _ = batch
        step_key, noise_key = jax.random.split(key)
        # Steps in pairs t and T - 1 - t, as in Han et al.: every minibatch sees early and late.
        half = jax.random.randint(step_key, ((len(y) + 1) // 2,), 0, spec.n_diffusion_steps)
        steps = jnp.concatenate([half, spec.n_diffusion_steps - 1 - half])[: len(y)]
        noise = jax.random.normal(noise_key, y.shape)
        return jnp.mean(jax.vmap(partial(noise_error, model))(x, y, steps, noise))

    def validation(model: Diffusion, batch: Batch) -> Array:
        """The error in the noise, over steps and noise that are always the same."""
        steps = jnp.linspace(0, spec.n_diffusion_steps - 1, 32).astype(jnp.int32)
        noise = jax.random.normal(jax.random.key(0), (len(steps), spec.n_out))

        def one(x: Array, y: Array) -> Array:
            return jnp.mean(jax.vmap(partial(noise_error, model, x, y))(steps, noise))

        return jax.vmap(one)(*batch[:2])

    def only(part: str, model: Diffusion) -> Diffusion:
        """Marks what an objective moves."""
        nothing = jax.tree.map(lambda _: False, model)
        chosen = jax.tree.map(lambda _: True, getattr(model, part))
        return eqx.tree_at(lambda m: getattr(m, part), nothing, chosen)

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


def betas(n_steps: int) -> np.ndarray:
    """The variance of the noise that each step adds: A_t takes the same course in any number."""
    thousand = np.concatenate([[0.0], np.cumsum(np.log1p(-np.linspace(*BETAS, 1000)))])
    log_kept = np.interp(np.linspace(0, 1000, n_steps + 1), np.arange(1001), thousand)
    return -np.expm1(np.diff(log_kept))


def _kept(n_steps: int) -> Array:
    """A_t, the share of y's variance that is left after each step."""
    return jnp.asarray(np.cumprod(1.0 - betas(n_steps)), jnp.float32)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _diffuse(
    model: Diffusion, x: Array, key: Array, n_draws: int, n_steps: int, shared: bool
) -> Array:
    """Draws (n_draws, n, d) at inputs (n, p), in standard units: equation (8) of Han et al.

    With ``shared`` noise all rows see the same.
    """
    mean = jax.vmap(model.mean)(x)
    centre = mean[None]
    known = jax.vmap(model.noise.before)(x, mean)
    shape = (n_draws, 1 if shared else len(x), mean.shape[1])

    # q(y_{t-1} | y_t, y_0, f) has mean g0 y_0 + g1 y_t + g2 f, from numbers taken in float64.
    beta = betas(n_steps)
    alpha = 1.0 - beta
    kept = np.cumprod(alpha)
    before = np.concatenate([[1.0], kept[:-1]])
    course = {
        "time": (np.arange(n_steps) + 0.5) / n_steps,
        "root": np.sqrt(kept),
        "noise": np.sqrt(1.0 - kept),
        "g0": beta * np.sqrt(before) / (1.0 - kept),
        "g1": (1.0 - before) * np.sqrt(alpha) / (1.0 - kept),
        "g2": 1.0 + (np.sqrt(kept) - 1.0) * (np.sqrt(alpha) + np.sqrt(before)) / (1.0 - kept),
        "spread": np.sqrt((1.0 - before) / (1.0 - kept) * beta),
    }
    tell = jax.vmap(jax.vmap(model.noise.after, (0, 0, None)), (None, 0, None))

    def undo(y: Array, now: tuple[dict[str, Array], Array]) -> tuple[Array, None]:
        c, step_key = now
        told = tell(known, y, c["time"])
        clean = (y - (1.0 - c["root"]) * centre - c["noise"] * told) / c["root"]
        within = jnp.clip(clean, model.low[None, None], model.high[None, None])
        clean = jnp.where(c["root"] < 0.5, within, clean)
        fresh = c["spread"] * jax.random.normal(step_key, shape)
        return c["g0"] * clean + c["g1"] * y + c["g2"] * centre + fresh, None

    start_key, run_key = jax.random.split(key)
    start = centre + jax.random.normal(start_key, shape)
    backwards = {name: jnp.asarray(v[::-1], jnp.float32) for name, v in course.items()}
    return jax.lax.scan(undo, start, (backwards, jax.random.split(run_key, n_steps)))[0]


#: Inputs, a number of draws and a key -> draws (size, n_rows, d) in units of y.
Draw = Callable[[np.ndarray, int, Array], np.ndarray]


def fresh_draws(draw: Draw, x: np.ndarray, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Draws (size, n_rows[, d]), each from noise of its own."""
    draws = draw(x, checked_size(size), jax.random.key(int(rng.randint(2**31 - 1))))
    return draws[..., 0] if draws.shape[2] == 1 else draws


@dataclass(frozen=True, eq=False, repr=False)
class DiffusedDraws(SampleDistribution):
    """Draws of a diffusion at inputs ``x`` (n_rows, p), which can make more."""

    x: np.ndarray
    draw: Draw

    def __getitem__(self, rows: Any) -> DiffusedDraws:
        chosen = as_rows(rows)
        return replace(self, draws=self.draws[:, chosen], x=self.x[chosen])

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Fresh draws (size, n_rows[, d]), each from noise of its own."""
        return fresh_draws(self.draw, self.x, size, check_random_state(random_state))
