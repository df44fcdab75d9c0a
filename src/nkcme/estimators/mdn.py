"""MDN: a mixture density network (Bishop, 1994). A network gives the mixture, trained by maximum
likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.estimators.gradient_trained import Descent, GradientTrainedEstimator, padded
from nkcme.networks import MLP
from nkcme.parameter_checks import need_whole, need_wholes
from nkcme.training.loop import Objective, Task

#: The logarithms of standard deviations, in units of standardised y, stay within. A likelihood has
#: no upper bound where targets repeat: a component would shrink onto them for ever.
LOG_STD = (-9.0, 6.0)


class MixtureNetwork(eqx.Module):
    """x -> the weights, means and standard deviations of a Gaussian mixture.

    The three final layers that the paper speaks of are one, whose outputs are cut in three.
    """

    network: MLP
    n_components: int = eqx.field(static=True)
    n_out: int = eqx.field(static=True)

    def __call__(self, x: Array) -> tuple[Array, Array, Array]:
        """Log weights (K,), means (K, d) and log standard deviations (K, d) at one input (p,)."""
        shape = (self.n_components, self.n_out)
        logits, rest = jnp.split(self.network(x), [self.n_components])
        means, log_stds = jnp.split(rest, 2)
        return (
            jax.nn.log_softmax(logits),
            means.reshape(shape),
            jnp.clip(log_stds.reshape(shape), *LOG_STD),
        )


class MDN(GradientTrainedEstimator):
    """Mixture density network: P(y | x) as a Gaussian mixture whose parameters a network gives.

    Components have diagonal covariances, so that for several outputs dependence is told by the
    mixture alone. Density, CDF and CRPS are in closed form.

    Parameters
    ----------
    n_components : int
    hidden : tuple of int
        Widths of the network's hidden layers.
    activation : {"relu", "silu", "gelu", "tanh"}
    spectral_norm : tuple of int
        Layers to normalise by their largest singular value (0 is the first, -1 the last).
    learning_rate, weight_decay, beta2 : float
        AdamW's.
    schedule : {"cosine", "constant"}
        The course of the learning rate.
    batch_size : int
    epochs : int or None
        Passes over the data: floor(n / batch_size) * epochs steps. None: chosen from n.
    standardize : bool
        Bring X and y to zero mean and unit variance for training; undone on the way out.
    validation_fraction : float
        Share of rows held out to decide, by their likelihood, which state of training is kept; 0
        for none. Maximum likelihood learns small tables by heart, so a tenth unless said otherwise.
    patience : int or None
        Stop after so many chunks (twentieths of the run) without a better validation.
    random_state : int, RandomState or None
    verbose : bool or "auto"
    checkpoint : path or None
        As for `NKCME`.

    Attributes
    ----------
    n_steps_ : int
    history_ : dict of arrays
        ``step``, ``loss`` (the mean negative log likelihood, of standardised y) and, where there
        is one, ``validation``; an entry a chunk.
    n_features_in_, feature_names_in_, n_outputs_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        n_components: int = 10,
        hidden: Sequence[int] = (64, 64),
        activation: str = "relu",
        spectral_norm: Sequence[int] = (),
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        beta2: float = 0.999,
        schedule: str = "cosine",
        batch_size: int = 256,
        epochs: int | None = None,
        standardize: bool = True,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
        checkpoint: str | Path | None = None,
    ):
        self.n_components = n_components
        self.hidden = hidden
        self.activation = activation
        self.spectral_norm = spectral_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self.schedule = schedule
        self.batch_size = batch_size
        self.epochs = epochs
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _check_own_parameters(self) -> None:
        need_whole("n_components", self.n_components)
        need_wholes("spectral_norm", self.spectral_norm, least=None)

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> _Spec:
        return _Spec(
            n_in=n_in,
            n_out=n_out,
            n_components=int(self.n_components),
            hidden=tuple(int(h) for h in self.hidden),
            activation=self.activation,
            spectral_norm=tuple(int(i) for i in self.spectral_norm),
            descent=self._descent(n_steps),
        )

    @staticmethod
    def _task(spec: _Spec) -> Task:
        return make_task(spec)

    def _distribution(self, x: np.ndarray) -> GaussianMixture:
        log_weights, means, log_stds = (
            np.asarray(part, np.float64)[: len(x)] for part in _predict(self.model_, padded(x))
        )
        return GaussianMixture(
            log_weights=log_weights,
            means=means,
            stds=np.exp(log_stds),
            location=self.scaler_.location,
            scale=self.scaler_.scale,
        )


class _Spec(NamedTuple):
    """The numbers that make a training program; equal specs share one."""

    n_in: int
    n_out: int
    n_components: int
    hidden: tuple[int, ...]
    activation: str
    spectral_norm: tuple[int, ...]
    descent: Descent


def _init(spec: _Spec, key: Array, _: tuple[()]) -> MixtureNetwork:
    network = MLP(
        spec.n_in,
        spec.n_components * (1 + 2 * spec.n_out),
        spec.hidden,
        activation=spec.activation,
        head="signed",
        spectral_norm=spec.spectral_norm,
        key=key,
    )
    return MixtureNetwork(network, spec.n_components, spec.n_out)


@lru_cache(maxsize=64)
def make_task(spec: _Spec) -> Task:
    """The training task of a spec; the same object for equal specs, so compiled once."""

    def surprise(model: MixtureNetwork, batch: tuple[Array, Array]) -> Array:
        x, y = batch
        return -jax.vmap(lambda x, y: log_likelihood(*model(x), y))(x, y)

    objective = Objective(
        loss=lambda model, batch, _: jnp.mean(surprise(model, batch)),
        trainable=lambda model: eqx.tree_at(lambda m: m.network, model, model.network.trainable()),
        optimizer=spec.descent.optimizer(),
    )
    return Task(
        init=partial(_init, spec),
        objectives=(objective,),
        advance=lambda m: eqx.tree_at(lambda m: m.network, m, m.network.iterate()),
        validation=surprise,
    )


def log_likelihood(log_weights: Array, means: Array, log_stds: Array, y: Array) -> Array:
    """log sum_k w_k N(y; m_k, s_k^2) at one y (d,), without leaving the logarithm."""
    score = (y[None] - means) * jnp.exp(-log_stds)
    log_normal = -0.5 * jnp.square(score) - log_stds - 0.5 * jnp.log(2.0 * jnp.pi)
    return jax.nn.logsumexp(log_weights + jnp.sum(log_normal, axis=1))


@jax.jit
def _predict(model: MixtureNetwork, x: Array) -> tuple[Array, Array, Array]:
    with jax.default_matmul_precision("highest"):  # a GPU's ten bits are enough to train only
        return jax.vmap(model)(x)
