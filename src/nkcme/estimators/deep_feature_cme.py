"""DeepFeatureCME: a conditional mean embedding in closed form, on learned features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.embedding import READINGS, Embedding, summing_to_one
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.closed_form.condensing import condense
from nkcme.estimators.closed_form.feature_loss import feature_loss
from nkcme.estimators.closed_form.median_distance import median_distance
from nkcme.estimators.closed_form.ridge import primal_operator, row_counts
from nkcme.estimators.gradient_trained import GradientTrainedEstimator, Solved
from nkcme.estimators.training_data import Encoded, need_no_validation
from nkcme.model_files.array_checks import need_array
from nkcme.networks import ACTIVATIONS, MLP
from nkcme.parameter_checks import (
    need_number,
    need_one_of,
    need_whole,
    need_wholes,
    need_word_or_positive,
)
from nkcme.training.optimizers import Descent
from nkcme.training.padding import pad_rows
from nkcme.training.task import Objective, Task


class DeepFeatures(eqx.Module):
    """x -> features psi(x), and the bandwidth of the kernel of y."""

    network: MLP  # its last layer is linear; the activation of its output gives the features
    bandwidth: Array

    def __call__(self, x: Array) -> Array:
        """Features (n, d) at inputs (n, p)."""
        return ACTIVATIONS[self.network.activation](jax.vmap(self.network)(x))


class _Spec(NamedTuple):
    """The values that define a training program. Equal specs share a compiled program."""

    n_in: int
    hidden: tuple[int, ...]
    activation: str
    spectral_norm: tuple[int, ...]
    regularization: float
    descent: Descent


def _init(spec: _Spec, key: Array, bandwidth: Array) -> DeepFeatures:
    network = MLP(
        spec.n_in,
        spec.hidden[-1],
        spec.hidden[:-1],
        activation=spec.activation,
        head="signed",  # a linear last layer, whose activation gives the features
        spectral_norm=spec.spectral_norm,
        key=key,
    )
    return DeepFeatures(network, bandwidth)


@lru_cache(maxsize=64)
def make_task(spec: _Spec) -> Task:
    """The training task of a spec. Equal specs get the same object, which is compiled once."""

    def loss(model: DeepFeatures, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        squares = jnp.sum(jnp.square(y[:, None] - y[None]), axis=-1)
        k_y = jnp.exp(-0.5 * squares / jnp.square(model.bandwidth))
        return feature_loss(model(x), k_y, spec.regularization)

    def only_the_network(model: DeepFeatures) -> DeepFeatures:
        return DeepFeatures(model.network.trainable(), False)  # type: ignore[arg-type]

    return Task(
        init=partial(_init, spec),
        objectives=(Objective(loss, only_the_network, spec.descent.optimizer()),),
        advance=lambda m: eqx.tree_at(lambda m: m.network, m, m.network.iterate()),
    )


class DeepFeatureCME(GradientTrainedEstimator):
    """Deep feature approach: ridge regression of k(y, .) on features of x that a network learns.

    P(y | x) is embedded as sum_i beta_i(x) k(y_i, .) (the paper's section 2.3; Xu et al., 2021).
    With features in the rows of Psi, `fit` takes these steps:

    1. Fix the bandwidth of the Gaussian kernel of y.
    2. Train a network psi(x) on minibatches of B rows, to minimise
       -tr(K_Y Psi (Psi'Psi + lambda I)^-1 Psi') / B. Up to a constant this is the error of a ridge
       regression of k(y, .) on the features.
    3. Condense the targets to at most ``n_atoms`` atoms.
    4. Solve once with all rows: beta(x) = Psi (Psi'Psi + lambda I)^-1 psi(x). The model keeps the
       solution, and predictions need no training rows.

    Weights are divided by their sum. As in the paper, K_Y has no density factor, so that lambda has
    the same meaning at every bandwidth. Weights and herded samples do not depend on the factor.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the network's layers. The last width is the number of features.
    activation : {"relu", "silu", "gelu", "tanh"}
        Activation of every layer, including the features.
    spectral_norm : tuple of int
        Layers to normalise by their largest singular value (0 is the first, -1 the features).
    bandwidth : "median" or float
        The bandwidth of the kernel of y, in units of standardised y. "median": the median distance
        between the targets of two rows (of 1,000 random rows if there are more).
    regularization : float
        lambda, in training and in the final solve.
    n_atoms : int
        The largest number of atoms. More distinct targets are condensed: each is split between its
        two neighbouring atoms, or with several outputs assigned to the nearest.
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
    reading : {"smoothed", "atomic"}
        How predicted embeddings are read (see `Embedding`).
    random_state : int, RandomState or None
        The same integer gives the same bits on the same machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" where it is a terminal.
    checkpoint : path or None
        A file that keeps the state of training. A killed fit continues from it to the same bits.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel of y, in units of standardised y.
    n_steps_ : int
        Gradient steps taken.
    history_ : dict of arrays
        ``step`` and ``loss``; one entry per chunk.
    columns_ : TableSummary
        How each column was read, and doubts about it; printed, it is a table.
    n_features_in_, feature_names_in_, n_outputs_
        As in all scikit-learn estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nkcme import DeepFeatureCME
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DeepFeatureCME(bandwidth=0.3, epochs=50, random_state=0).fit(X, y)
    >>> quantiles = model.predict_quantiles(X[:5], [0.1, 0.5, 0.9])  # (5, 3)
    """

    #: No rows are held out: before the final solve there are no predictions to score.
    validation_fraction: ClassVar[float] = 0.0  # type: ignore[misc]

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: str = "relu",
        spectral_norm: Sequence[int] = (),
        bandwidth: float | str = "median",
        regularization: float = 0.1,
        n_atoms: int = 1000,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        beta2: float = 0.999,
        schedule: str = "cosine",
        batch_size: int = 256,
        epochs: int | None = None,
        columns: Mapping[Any, str] | None = None,
        standardize: bool = True,
        reading: str = "smoothed",
        random_state: Any = None,
        verbose: bool | str = "auto",
        checkpoint: str | Path | None = None,
    ):
        self.hidden = hidden
        self.activation = activation
        self.spectral_norm = spectral_norm
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_atoms = n_atoms
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self.schedule = schedule
        self.batch_size = batch_size
        self.epochs = epochs
        self.columns = columns
        self.standardize = standardize
        self.reading = reading
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    # --- training -----------------------------------------------------------------------------

    def _train(self, datasets: Sequence[Encoded]) -> list[Solved]:
        need_no_validation(datasets)
        return super()._train(datasets)

    def _constant(self, data: Encoded) -> Array:
        if isinstance(self.bandwidth, str):
            counts = row_counts(data.weight, data.n_rows)
            return jnp.asarray(median_distance(data.y, counts, data.seed), jnp.float32)
        return jnp.asarray(self.bandwidth, jnp.float32)

    def _constant_shape(self, spec: _Spec) -> Array:
        return jax.ShapeDtypeStruct((), jnp.float32)  # type: ignore[return-value]

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> _Spec:
        return _Spec(
            n_in=n_in,
            hidden=tuple(int(h) for h in self.hidden),
            activation=self.activation,
            spectral_norm=tuple(int(i) for i in self.spectral_norm),
            regularization=float(self.regularization),
            descent=self._descent(n_steps),
        )

    _task = staticmethod(make_task)

    def _finish(self, model: DeepFeatures, data: Encoded) -> dict[str, np.ndarray]:
        counts = row_counts(data.weight, data.n_rows)
        condensed = condense(data.y, counts, self.n_atoms, data.seed)
        operator = primal_operator(
            partial(_features, model), data.x, counts, self.regularization, condensed.shares
        )
        return {"operator": operator, "atoms": condensed.atoms}

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        if set(solution) != {"operator", "atoms"}:
            raise ModelFileError(
                "the model file must hold the arrays operator and atoms of the final solve; it has "
                f"{', '.join(sorted(solution)) or 'none'}"
            )
        n_atoms = solution["atoms"].shape[:1]
        need_array(solution, "atoms", (*n_atoms, self.n_outputs_))
        need_array(solution, "operator", (int(self.hidden[-1]), *n_atoms))
        self.bandwidth_ = float(self.model_.bandwidth)
        if not solution["atoms"].size or not 0 < self.bandwidth_ < np.inf:
            raise ModelFileError("the model file has no atoms, or no positive bandwidth")
        self._operator, self._atoms = solution["operator"], solution["atoms"]

    def _solution(self) -> dict[str, np.ndarray]:
        return {"operator": self._operator, "atoms": self._atoms}

    def _check_own_parameters(self) -> None:
        need_wholes("hidden", self.hidden)
        if not len(self.hidden):
            raise NkcmeError(
                f"hidden must have a layer for the features, such as (64,); got {self.hidden!r}"
            )
        need_wholes("spectral_norm", self.spectral_norm, least=None)
        need_word_or_positive("bandwidth", self.bandwidth, "median")
        need_number("regularization", self.regularization, above=0.0)
        need_whole("n_atoms", self.n_atoms, least=2)
        need_one_of("reading", self.reading, READINGS)

    # --- prediction ---------------------------------------------------------------------------

    def _distribution(self, x: np.ndarray) -> Embedding:
        return Embedding(
            atoms=self._atoms,
            weights=summing_to_one(_features(self.model_, x).astype(np.float64) @ self._operator),
            bandwidth=self.bandwidth_,
            location=self.scaler_.location,
            scale=self.scaler_.scale,
            reading=self.reading,
        )

    def _herd(self, dist: Embedding, n_samples: int) -> np.ndarray:  # type: ignore[override]
        return dist.herd(n_samples)


def _features(model: DeepFeatures, x: np.ndarray) -> np.ndarray:
    """Features (n, d) at inputs (n, p)."""
    return np.asarray(_compiled_features(model, pad_rows(x)))[: len(x)]


@jax.jit
def _compiled_features(model: DeepFeatures, x: Array) -> Array:
    with jax.default_matmul_precision("highest"):  # a GPU multiplies with ten bits by default
        return model(x)
