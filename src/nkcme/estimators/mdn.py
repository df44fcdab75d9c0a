"""MDN: a mixture density network (Bishop, 1994), trained by maximum likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.gaussian_mixture import LOG_STD, GaussianMixture
from nkcme.estimators.gradient_trained import GradientTrainedEstimator
from nkcme.networks import MLP
from nkcme.objectives import mixture_log_likelihood
from nkcme.parameter_checks import need_whole, need_wholes
from nkcme.training.optimizers import Descent
from nkcme.training.padding import pad_rows
from nkcme.training.task import Objective, Task


class MixtureNetwork(eqx.Module):
    """x -> the weights, means and standard deviations of a Gaussian mixture.

    The paper has three final layers. Here they are one layer whose output is split in three.
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


class _Spec(NamedTuple):
    """The values that define a training program. Equal specs share a compiled program."""

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
    """The training task of a spec. Equal specs get the same object, which is compiled once."""

    def negative_log_likelihood(model: MixtureNetwork, batch: tuple[Array, Array]) -> Array:
        """-log p(y | x), one value per row."""
        x, y = batch
        return -jax.vmap(lambda x, y: mixture_log_likelihood(*model(x), y))(x, y)

    objective = Objective(
        loss=lambda model, batch, _: jnp.mean(negative_log_likelihood(model, batch)),
        trainable=lambda model: eqx.tree_at(lambda m: m.network, model, model.network.trainable()),
        optimizer=spec.descent.optimizer(),
    )
    return Task(
        init=partial(_init, spec),
        objectives=(objective,),
        advance=lambda m: eqx.tree_at(lambda m: m.network, m, m.network.iterate()),
        validation=negative_log_likelihood,
    )


class MDN(GradientTrainedEstimator):
    """Mixture density network: P(y | x) as a Gaussian mixture with parameters from a network.

    `fit` takes these steps (Bishop, 1994; equations of section 5.6 of his Pattern Recognition and
    Machine Learning, 2006):

    1. A network maps x to 1 + 2 d outputs for each of the K components: the logit of the weight
       pi_k(x) (a softmax, 5.150), the log standard deviations log s_k(x) (5.151) and the means
       m_k(x) (5.152). The density is p(y | x) = sum_k pi_k(x) N(y; m_k(x), s_k(x)^2) (5.148).
    2. Train it by maximum likelihood: minimise the mean of -log p(y_i | x_i) (5.153).
    3. Keep the parameters with the highest likelihood of the held-out rows.

    Components have diagonal covariances, so dependence between outputs comes from the mixture.
    Density, CDF and CRPS of a prediction are in closed form (see `GaussianMixture`).

    Parameters
    ----------
    n_components : int
        The number of components K.
    hidden : tuple of int
        Widths of the network's hidden layers.
    activation : {"relu", "silu", "gelu", "tanh"}
        Activation of the network.
    spectral_norm : tuple of int
        Layers to normalise by their largest singular value (0 is the first, -1 the last).
    learning_rate, weight_decay, beta2 : float
        AdamW's step size at the start, weight decay, and decay rate of the second moment.
    schedule : {"cosine", "constant"}
        Learning-rate schedule.
    batch_size : int
        Rows per gradient step, drawn with replacement.
    epochs : int or None
        Passes of floor(n / batch_size) steps. None: 2,000 steps, more for tables above 5,000 rows.
    columns : dict or None
        The types of some columns, by name or by position, instead of those that are found:
        "number", "boolean", "category", "text", "date" or "time", or "drop" for a column that is
        not used. ``columns_`` says how each column was read.
    standardize : bool
        Standardise X and y for training; predictions are in the original units.
    validation_fraction : float
        Share of rows held out to decide which state of training is kept, by their likelihood; 0 for
        none. Maximum likelihood overfits small tables, hence the default of a tenth. Ignored when
        `fit` gets ``X_val``.
    patience : int or None
        Stop after this many chunks (twentieths of the run) without a better validation score;
        needs held-out rows.
    random_state : int, RandomState or None
        The same integer gives the same bits on the same machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" where it is a terminal.
    checkpoint : path or None
        A file that keeps the state of training. A killed fit continues from it to the same bits.

    Attributes
    ----------
    n_steps_ : int
        Gradient steps taken.
    history_ : dict of arrays
        ``step``, ``loss`` (the mean negative log likelihood of standardised y) and, with held-out
        rows, ``validation``; one entry per chunk.
    columns_ : TableSummary
        How each column was read, and doubts about it; printed, it is a table.
    n_features_in_, feature_names_in_, n_outputs_
        As in all scikit-learn estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nkcme import MDN
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MDN(n_components=3, epochs=50, random_state=0).fit(X, y)
    >>> modes = model.predict_dist(X[:5]).mode()  # (5,)
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
        columns: Mapping[Any, str] | None = None,
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
        self.columns = columns
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

    _task = staticmethod(make_task)

    def _distribution(self, x: np.ndarray) -> GaussianMixture:
        log_weights, means, log_stds = (
            np.asarray(array, np.float64)[: len(x)] for array in _predict(self.model_, pad_rows(x))
        )
        return GaussianMixture(
            log_weights=log_weights,
            means=means,
            stds=np.exp(log_stds),
            location=self.scaler_.location,
            scale=self.scaler_.scale,
        )


@jax.jit
def _predict(model: MixtureNetwork, x: Array) -> tuple[Array, Array, Array]:
    with jax.default_matmul_precision("highest"):  # a GPU multiplies with ten bits by default
        return jax.vmap(model)(x)
