"""CARD: classification and regression diffusion models (Han, Zheng and Zhou, 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.checks import checked_size
from nkcme.distributions.sample import SampleDistribution
from nkcme.errors import NkcmeError
from nkcme.estimators.card import diffusion
from nkcme.estimators.card.training import Spec, make_task
from nkcme.estimators.gradient_trained import GradientTrainedEstimator, default_steps
from nkcme.estimators.training_data import Encoded
from nkcme.parameter_checks import need_number, need_whole, need_wholes
from nkcme.training.padding import pad_rows

#: Samples in one call of the compiled sampler. A layer of activations for them fits into a cache.
_BLOCK_SAMPLES = 2**16


class CARD(GradientTrainedEstimator):
    """Classification and regression diffusion: a conditional mean, and a diffusion guided by it.

    `fit` takes the two steps of Han, Zheng and Zhou (2022), with A_t = prod_{s <= t} (1 - beta_s):

    1. Train a network f(x) on the squared error, on a share ``mean_fraction`` of the rows.
    2. Train a network g(x, f(x), y_t, t) to predict the noise e ~ N(0, 1) in the noised target
       y_t = sqrt(A_t) y + (1 - sqrt(A_t)) f(x) + sqrt(1 - A_t) e, at random steps t, by the squared
       error (their Algorithm 1).

    A prediction (their Algorithm 2):

    3. Start from y_T ~ N(f(x), 1).
    4. For t = T, ..., 1: estimate y from y_t by the predicted noise, and draw y_{t-1} from
       q(y_{t-1} | y_t, y, f(x)).

    `predict_dist` reads ``n_draws`` samples per row as a distribution (see `SampleDistribution`).
    All rows share the noise of these samples, so that a prediction does not depend on the other
    rows. `sample` runs the diffusion again. Each sample evaluates the noise network
    ``n_diffusion_steps`` times, so predictions cost far more than those of the other estimators.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers of the conditional mean.
    activation : {"relu", "silu", "gelu", "tanh"}
        Activation of the conditional mean. The noise network uses softplus.
    mean_epochs : int or None
        Passes of floor(n / batch_size) steps for the conditional mean. None: 2,000 steps, more for
        tables above 5,000 rows.
    mean_fraction : float
        Share of rows, chosen at random, that the conditional mean is trained on. On the other rows
        its residuals are as large as on new ones, so the diffusion learns a spread that is not too
        small. Han et al. hold out 40 % instead, for early stopping.
    noise_hidden : tuple of int
        Widths of the hidden layers of the noise network; at least one.
    n_diffusion_steps : int
        The number of steps T between y and noise.
    n_draws : int
        Samples per row in a predicted distribution.
    epochs : int or None
        Passes of floor(n / batch_size) steps for the noise network. None: five times the default
        of the conditional mean.
    learning_rate, weight_decay, beta2 : float
        AdamW's step size at the start of each of the two trainings, weight decay, and decay rate of
        the second moment.
    schedule : {"cosine", "constant"}
        Learning-rate schedule of each training.
    batch_size : int
        Rows per gradient step, drawn with replacement.
    columns : dict or None
        The types of some columns, by name or by position, instead of those that are found:
        "number", "boolean", "category", "text", "date" or "time", or "drop" for a column that is
        not used. ``columns_`` says how each column was read.
    standardize : bool
        Standardise X and y for training; predictions are in the original units.
    validation_fraction : float
        Share of rows held out to decide which state of training is kept, by the error of the
        predicted noise; 0 for none. Ignored when `fit` gets ``X_val``.
    random_state : int, RandomState or None
        The same integer gives the same bits on the same machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" where it is a terminal.
    checkpoint : path or None
        A file that keeps the state of training. A killed fit continues from it to the same bits.

    Attributes
    ----------
    n_steps_ : int
        Gradient steps taken, for both networks together.
    history_ : dict of arrays
        ``step``, ``loss`` (the squared error, first of the mean, then of the noise) and, with
        held-out rows, ``validation``; one entry per chunk.
    columns_ : TableSummary
        How each column was read, and doubts about it; printed, it is a table.
    n_features_in_, feature_names_in_, n_outputs_
        As in all scikit-learn estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nkcme import CARD
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CARD(epochs=10, n_diffusion_steps=100, random_state=0).fit(X, y)
    >>> samples = model.sample(X[:5], 50, random_state=0)  # (50, 5)
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
        columns: Mapping[Any, str] | None = None,
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
        self.columns = columns
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _check_own_parameters(self) -> None:
        need_wholes("noise_hidden", self.noise_hidden)
        if not len(self.noise_hidden):
            raise NkcmeError(
                "noise_hidden must have at least one layer, such as (128, 128); got ()"
            )
        need_whole("n_diffusion_steps", self.n_diffusion_steps)
        need_whole("n_draws", self.n_draws)
        if self.mean_epochs is not None:
            need_whole("mean_epochs", self.mean_epochs)
        need_number("mean_fraction", self.mean_fraction, above=0.0, most=1.0)

    # --- training -----------------------------------------------------------------------------

    def _constant(self, data: Encoded) -> tuple[Array, Array]:
        """Bounds on samples: the range of y, extended by its width on both sides."""
        low, high = data.y.min(axis=0), data.y.max(axis=0)
        width = high - low
        return jnp.asarray(low - width), jnp.asarray(high + width)

    def _constant_shape(self, spec: Spec) -> tuple[Array, Array]:
        bound = jax.ShapeDtypeStruct((spec.n_out,), jnp.float32)
        return bound, bound  # type: ignore[return-value]

    def _more_columns(self, x: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
        """1 where the conditional mean is trained on a row, else 0."""
        order = np.random.default_rng(seed).permutation(len(x))
        n_learned = max(int(np.ceil(float(self.mean_fraction) * len(x))), 1)
        return ((order < n_learned).astype(np.float32),)

    def _mean_steps(self, n_rows: int) -> int:
        if self.mean_epochs is not None:
            return self._steps_of(self.mean_epochs, n_rows)
        return default_steps(n_rows)

    def _n_steps(self, n_rows: int) -> int:
        # The noise network has to learn all noise levels, which takes longer than one mean.
        noise = 5 * default_steps(n_rows)
        if self.epochs is not None:
            noise = self._steps_of(self.epochs, n_rows)
        return self._mean_steps(n_rows) + noise

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> Spec:
        mean_steps = self._mean_steps(n_rows)
        return Spec(
            n_in=n_in,
            n_out=n_out,
            hidden=tuple(int(h) for h in self.hidden),
            activation=self.activation,
            noise_hidden=tuple(int(h) for h in self.noise_hidden),
            n_diffusion_steps=int(self.n_diffusion_steps),
            mean_descent=self._descent(mean_steps),
            noise_descent=self._descent(n_steps - mean_steps),
        )

    _task = staticmethod(make_task)

    # --- prediction ---------------------------------------------------------------------------

    def _distribution(self, x: np.ndarray) -> SampleDistribution:
        # All rows share the noise, so that a prediction does not depend on the row's position.
        return SampleDistribution(self._draw(x, int(self.n_draws), jax.random.key(0), shared=True))

    def _rvs(self, x: np.ndarray, size: int, rng: np.random.RandomState) -> np.ndarray:
        # New samples of the diffusion, rather than of the distribution made from n_draws of them.
        samples = self._draw(x, checked_size(size), jax.random.key(int(rng.randint(2**31 - 1))))
        return samples[..., 0] if self.n_outputs_ == 1 else samples

    def _draw(self, x: np.ndarray, size: int, key: Array, *, shared: bool = False) -> np.ndarray:
        """Samples (size, n_rows, d), in units of y."""
        rows = pad_rows(x, fine=True)
        block = max(_BLOCK_SAMPLES // len(rows), 1)
        n_diffusion_steps = int(self.n_diffusion_steps)
        blocks = [
            np.asarray(
                diffusion.sample(
                    self.model_,
                    rows,
                    jax.random.fold_in(key, first),
                    min(block, size - first),
                    n_diffusion_steps,
                    shared,
                ),
                np.float64,
            )[:, : len(x)]
            for first in range(0, size, block)
        ]
        z = np.concatenate([np.empty((0, len(x), self.n_outputs_)), *blocks])
        return self.scaler_.location + self.scaler_.scale * z
