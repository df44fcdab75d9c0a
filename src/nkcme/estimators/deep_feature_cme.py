"""DeepFeatureCME: a conditional mean embedding in closed form on features that are learned."""

from __future__ import annotations

from collections.abc import Sequence
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
from nkcme.estimators.closed_form.median_distance import median_distance
from nkcme.estimators.closed_form.ridge import primal_operator, row_counts
from nkcme.estimators.gradient_trained import Descent, GradientTrainedEstimator, Solved, padded
from nkcme.estimators.saving import need_array
from nkcme.estimators.training_data import Encoded, need_no_validation
from nkcme.networks import ACTIVATIONS, MLP
from nkcme.parameter_checks import (
    need_number,
    need_one_of,
    need_whole,
    need_wholes,
    need_word_or_positive,
)
from nkcme.training.loop import Objective, Task


class DeepFeatures(eqx.Module):
    """x -> psi(x), and the bandwidth of the kernel of y for which they are learned."""

    network: MLP  # its last layer is linear; the features are its activations
    bandwidth: Array

    def __call__(self, x: Array) -> Array:
        """Features (n, d) at inputs (n, p)."""
        return ACTIVATIONS[self.network.activation](jax.vmap(self.network)(x))


class DeepFeatureCME(GradientTrainedEstimator):
    """The deep feature approach (the paper's section 2.3; Xu et al., 2021): ridge regression of
    k(y, .) on features of x that a network learns.

    P(y | x) is embedded as sum_i beta_i(x) k(y_i, .), with weights in closed form,
    beta(x) = Psi (Psi'Psi + lambda I)^-1 psi(x). The features are trained on minibatches to leave
    as little of k(y, .) unexplained as they can; at the end all rows enter the solve, once, and
    prediction needs them no more. The Gaussian kernel of y has a fixed bandwidth. It is read as a
    density; training leaves the density's factor out, as the paper does, so that lambda means the
    same at every bandwidth. Weights and herded samples do not depend on the factor.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the network's layers; the last is the number of features.
    activation : {"relu", "silu", "gelu", "tanh"}
        Of every layer, the features included.
    spectral_norm : tuple of int
        Layers to normalise by their largest singular value (0 is the first, -1 the features').
    bandwidth : "median" or float
        The bandwidth of the kernel of y, in units of standardised y. "median": the median distance
        between the targets of two rows (of 1,000 random ones if there are more).
    regularization : float
        lambda, of minibatches and of the solve at the end.
    n_atoms : int
        Targets are condensed to so many atoms where more are distinct (`closed_form.condensing`).
    learning_rate : float
        AdamW's step size.
    weight_decay : float
        AdamW's weight decay.
    beta2 : float
        AdamW's memory of squared gradients.
    schedule : {"cosine", "constant"}
        The course of the learning rate.
    batch_size : int
    epochs : int or None
        Passes over the data: floor(n / batch_size) * epochs steps. None: chosen from n.
    standardize : bool
        Bring X and y to zero mean and unit variance for training; undone on the way out.
    reading : {"smoothed", "atomic"}
        How predicted embeddings are read (see `Embedding`).
    random_state : int, RandomState or None
        The same integer gives the same bits on the same machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" where it is a terminal.
    checkpoint : path or None
        A file that keeps the state of training; a fit that was killed goes on from it and gives
        the bits of an uninterrupted one.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth of the kernel of y, in units of standardised y.
    n_steps_ : int
        Steps trained.
    history_ : dict of arrays
        ``step`` and ``loss``; an entry a chunk.
    n_features_in_, feature_names_in_, n_outputs_
        As everywhere in scikit-learn.
    """

    #: No rows are held out: a row has no score of its own before the final solve.
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

    @staticmethod
    def _task(spec: _Spec) -> Task:
        return make_task(spec)

    def _finish(self, model: DeepFeatures, data: Encoded) -> dict[str, np.ndarray]:
        counts = row_counts(data.weight, data.n_rows)
        condensed = condense(data.y, counts, self.n_atoms, data.seed)
        operator = primal_operator(
            partial(_features, model), data.x, counts, self.regularization, condensed.shares
        )
        return {"operator": operator, "atoms": condensed.atoms}

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        if set(solution) != {"operator", "atoms"}:
            raise ModelFileError("expected the arrays operator and atoms of the final solve")
        n_atoms = solution["atoms"].shape[:1]
        need_array(solution, "atoms", (*n_atoms, self.n_outputs_))
        need_array(solution, "operator", (int(self.hidden[-1]), *n_atoms))
        self.bandwidth_ = float(self.model_.bandwidth)
        if not solution["atoms"].size or not 0 < self.bandwidth_ < np.inf:
            raise ModelFileError("the model has no atoms, or no positive bandwidth")
        self._operator, self._atoms = solution["operator"], solution["atoms"]

    def _solution(self) -> dict[str, np.ndarray]:
        return {"operator": self._operator, "atoms": self._atoms}

    def _check_own_parameters(self) -> None:
        need_wholes("hidden", self.hidden)
        if not len(self.hidden):
            raise NkcmeError(f"hidden must have a layer, for the features; got {self.hidden!r}")
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


class _Spec(NamedTuple):
    """The numbers that make a training program; equal specs share one."""

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
        head="signed",  # the last layer as it is: its activation makes the features
        spectral_norm=spec.spectral_norm,
        key=key,
    )
    return DeepFeatures(network, bandwidth)


@lru_cache(maxsize=64)
def make_task(spec: _Spec) -> Task:
    """The training task of a spec; the same object for equal specs, so compiled once."""

    def loss(model: DeepFeatures, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        squares = jnp.sum(jnp.square(y[:, None] - y[None]), axis=-1)
        k_y = jnp.exp(-0.5 * squares / jnp.square(model.bandwidth))
        return deep_feature_loss(model(x), k_y, spec.regularization)

    def only_the_network(model: DeepFeatures) -> DeepFeatures:
        return DeepFeatures(model.network.trainable(), False)  # type: ignore[arg-type]

    return Task(
        init=partial(_init, spec),
        objectives=(Objective(loss, only_the_network, spec.descent.optimizer()),),
        advance=lambda m: eqx.tree_at(lambda m: m.network, m, m.network.iterate()),
    )


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def deep_feature_loss(psi: Array, k_y: Array, regularization: float) -> Array:
    """Section 2.3: -tr(K_Y Psi (Psi'Psi + lambda I)^-1 Psi') / B, what the features explain.

    Features (B, d) are in the rows of Psi. One factorisation gives value and gradient, of the
    smaller side: d x d, or for fewer rows than features B x B, by the push-through identity
    Psi (Psi'Psi + lambda I)^-1 Psi' = I - lambda (Psi Psi' + lambda I)^-1.

    Arithmetic is in full single precision, whatever the default: a GPU's ten bits would leave
    Psi'Psi + lambda I indefinite. Features grow in training, and lambda counts as no less than the
    rounding of their squares, below which there would be nothing to factorise. ``k_y`` gets no
    gradient.
    """
    return _loss_forward(psi, k_y, regularization)[0]


@jax.default_matmul_precision("highest")
def _loss_forward(
    psi: Array, k_y: Array, regularization: float
) -> tuple[Array, tuple[Array, Array]]:
    """The loss and, for the way back, its gradient by psi.

    With A = Psi (Psi'Psi + lambda I)^-1, L = -tr(Psi'K A) / B and its gradient is
    -(2 / B) (I - A Psi') K A. With Q = (Psi Psi' + lambda I)^-1, L = -(tr K - lambda tr(K Q)) / B
    and its gradient is -(2 lambda / B) Q K Q Psi. Either way the inverse is multiplied by features
    first: at the end it would blow up the rounding of what is large and cancels.
    """
    n, d = psi.shape
    rounding = jnp.finfo(psi.dtype).eps * jnp.sum(jnp.square(psi))
    ridge = jnp.maximum(regularization, rounding)
    if n < d:
        q = _inverse(psi @ psi.T + ridge * jnp.eye(n, dtype=psi.dtype))
        loss = (ridge * jnp.sum(k_y * q) - jnp.trace(k_y)) / n
        return loss, ((-2.0 / n) * ridge * (q @ (k_y @ (q @ psi))), k_y)
    a = psi @ _inverse(psi.T @ psi + ridge * jnp.eye(d, dtype=psi.dtype))
    k_a = k_y @ a
    explained = psi.T @ k_a
    return -jnp.trace(explained) / n, ((-2.0 / n) * (k_a - a @ explained), k_y)


def _loss_backward(_: float, saved: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
    gradient, k_y = saved
    return ct * gradient, jnp.zeros_like(k_y)


deep_feature_loss.defvjp(_loss_forward, _loss_backward)


def _inverse(gram: Array) -> Array:
    """The inverse of a positive definite matrix: L^-T L^-1, one triangular solve and a product."""
    lower = jax.lax.linalg.cholesky(gram, symmetrize_input=False)
    inverse = jax.lax.linalg.triangular_solve(
        lower, jnp.eye(len(gram), dtype=gram.dtype), left_side=True, lower=True
    )
    return inverse.T @ inverse


def _features(model: DeepFeatures, x: np.ndarray) -> np.ndarray:
    return np.asarray(_compiled_features(model, padded(x)))[: len(x)]


@jax.jit
def _compiled_features(model: DeepFeatures, x: Array) -> Array:
    with jax.default_matmul_precision("highest"):  # a GPU's ten bits are enough to train only
        return model(x)
