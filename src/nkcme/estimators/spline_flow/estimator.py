"""SplineFlow: a conditional neural spline flow (Durkan et al., 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.flow import FlowDistribution
from nkcme.errors import NkcmeError
from nkcme.estimators.gradient_trained import GradientTrainedEstimator
from nkcme.estimators.spline_flow.flow import Architecture, make_flow, spline_parameters
from nkcme.estimators.spline_flow.transports import JointTransport, SplineTransport
from nkcme.parameter_checks import need_number, need_whole
from nkcme.training.optimizers import Descent
from nkcme.training.padding import pad_rows
from nkcme.training.task import Objective, Task

PyTree = Any


class _Spec(NamedTuple):
    """The values that define a training program. Equal specs share a compiled program."""

    architecture: Architecture
    descent: Descent


@lru_cache(maxsize=64)
def _make_task(spec: _Spec) -> Task:
    """The training task of a spec. Equal specs get the same object, which is compiled once."""
    flow = make_flow(spec.architecture)  # here, outside of any trace

    def negative_log_likelihood(model: PyTree, batch: tuple[Array, Array]) -> Array:
        """-log p(y | x), one value per row."""
        x, y = batch
        u, log_slope = jax.vmap(flow.bijection(model).transform_and_log_det)(y, x)
        return -jnp.sum(jax.scipy.stats.norm.logpdf(u), axis=1) - log_slope

    return Task(
        init=lambda key, _: flow.initial(key),
        objectives=(
            Objective(
                lambda model, batch, _: jnp.mean(negative_log_likelihood(model, batch)),
                lambda model: jax.tree.map(lambda _: True, model),
                spec.descent.optimizer(),
            ),
        ),
        validation=negative_log_likelihood,
    )


class SplineFlow(GradientTrainedEstimator):
    """Conditional neural spline flow: P(y | x) as an invertible map of a normal variable.

    The flow g(., x) maps y to a standard normal variable u. `fit` takes these steps:

    1. Build g as ``n_layers`` layers. Each is a learned linear map, then a monotone
       rational-quadratic spline (Durkan et al., 2019, section 3.1) between -``tail_bound`` and
       ``tail_bound`` with linear tails. A masked autoregressive network gives the knots, values and
       slopes of the splines from x and, with several outputs, from the preceding outputs.
    2. Train all layers by maximum likelihood, with the density of the change of variables:
       log p(y | x) = log N(g(y, x); 0, 1) + log |det dg / dy|.
    3. Keep the parameters with the highest likelihood of the held-out rows.

    With one output, density, CDF and quantiles of a prediction are exact: F(y | x) = Phi(g(y, x)).
    See `FlowDistribution`. SplineFlow needs flowjax: ``pip install 'nkcme[flows]'``.

    Parameters
    ----------
    n_layers : int
        The number of layers, each a linear map and a spline.
    n_bins : int
        The number of pieces of each spline.
    tail_bound : float
        Splines act between -``tail_bound`` and ``tail_bound``, in standardised units. Beyond, they
        are the identity.
    hidden : tuple of int
        Widths of the hidden layers of each spline's network. All are the same.
    activation : {"relu", "silu", "gelu", "tanh"}
        Activation of the networks.
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
        none. Ignored when `fit` gets ``X_val``.
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
    >>> from nkcme import SplineFlow
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SplineFlow(n_layers=2, epochs=20, random_state=0).fit(X, y)
    >>> log_density = model.predict_dist(X[:5]).logpdf(y[:5])  # (5,)
    """

    def __init__(
        self,
        *,
        n_layers: int = 5,
        n_bins: int = 8,
        tail_bound: float = 3.0,
        hidden: Sequence[int] = (50, 50),
        activation: str = "relu",
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
        self.n_layers = n_layers
        self.n_bins = n_bins
        self.tail_bound = tail_bound
        self.hidden = hidden
        self.activation = activation
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
        need_whole("n_layers", self.n_layers)
        need_whole("n_bins", self.n_bins, least=2)
        need_number("tail_bound", self.tail_bound, above=0.0)
        need_number("weight_decay", self.weight_decay, least=0.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if len(set(self.hidden)) != 1:
            raise NkcmeError(
                "hidden must be one width, repeated for each layer, such as (50, 50): the masks of "
                f"an autoregressive network need equal widths; got {self.hidden!r}"
            )

    # --- training -----------------------------------------------------------------------------

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> _Spec:
        return _Spec(self._architecture(n_in, n_out), self._descent(n_steps))

    def _architecture(self, n_in: int, n_out: int) -> Architecture:
        return Architecture(
            n_in,
            n_out,
            int(self.n_layers),
            int(self.n_bins),
            float(self.tail_bound),
            tuple(int(h) for h in self.hidden),
            self.activation,
        )

    _task = staticmethod(_make_task)

    # --- prediction ---------------------------------------------------------------------------

    def _distribution(self, x: np.ndarray) -> FlowDistribution:
        architecture = self._architecture(x.shape[1], self.n_outputs_)
        units = {"location": self.scaler_.location, "scale": self.scaler_.scale}
        if self.n_outputs_ > 1:
            return FlowDistribution((x,), JointTransport(architecture, self.model_), **units)
        with jax.enable_x64(False):
            parameters = spline_parameters(architecture)(self.model_, pad_rows(x))
        rows = tuple(np.asarray(array, np.float64)[: len(x)] for array in parameters)
        return FlowDistribution(rows, SplineTransport(architecture.spline), **units)
