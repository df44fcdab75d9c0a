"""SplineFlow: a conditional neural spline flow (Durkan et al., 2019); alone in knowing flowjax.

Read from y to the normal score, the direction of training: n_layers times a learned linear map,
then an autoregressive rational-quadratic spline whose parameters a network gives from x (and, with
several outputs, from the outputs before). The splines are the identity beyond the tail bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.flow import FlowDistribution
from nkcme.errors import NkcmeError
from nkcme.estimators.gradient_trained import Descent, GradientTrainedEstimator, padded
from nkcme.networks import ACTIVATIONS
from nkcme.parameter_checks import need_number, need_whole
from nkcme.training.loop import Objective, Task

PyTree = Any

#: The least slope of a spline at a knot, and the least width of its bins as a share of the whole.
_LEAST_SLOPE = 1e-3
_LEAST_WIDTH = 1e-3


class SplineFlow(GradientTrainedEstimator):
    """Conditional neural spline flow: P(y | x) as an invertible map of a normal variable.

    Trained by maximum likelihood. With one output, density, CDF and quantiles are exact; see
    `FlowDistribution`. Needs flowjax: ``pip install 'nkcme[flows]'``.

    Parameters
    ----------
    n_layers : int
        How many spline layers, each with a learned linear map.
    n_bins : int
        Pieces of each spline.
    tail_bound : float
        Splines act between minus this and this, in standard units; beyond, they are the identity.
    hidden : tuple of int
        Widths of the hidden layers of each spline's network; all the same.
    activation : {"relu", "silu", "gelu", "tanh"}
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
        Share of rows held out to decide which state of training is kept, by their likelihood; 0 for
        none. Ignored when `fit` is given ``X_val``.
    patience : int or None
        Stop after so many chunks (twentieths of the run) without a better validation; needs rows
        held out.
    random_state : int, RandomState or None
        The same integer gives the same bits on the same machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" where it is a terminal.
    checkpoint : path or None
        A file that keeps the state of training; a fit that was killed goes on from it and gives
        the bits of an uninterrupted one.

    Attributes
    ----------
    n_steps_ : int
        Steps trained.
    history_ : dict of arrays
        ``step``, ``loss`` (the mean negative log likelihood in standard units) and, where there is
        one, ``validation``; an entry a chunk.
    n_features_in_, feature_names_in_, n_outputs_
        As everywhere in scikit-learn.
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
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> _Spec:
        return _Spec(self._architecture(n_in, n_out), self._descent(n_steps))

    def _architecture(self, n_in: int, n_out: int) -> _Architecture:
        return _Architecture(
            n_in,
            n_out,
            int(self.n_layers),
            int(self.n_bins),
            float(self.tail_bound),
            tuple(int(h) for h in self.hidden),
            self.activation,
        )

    @staticmethod
    def _task(spec: _Spec) -> Task:
        return _make_task(spec)

    def _check_own_parameters(self) -> None:
        need_whole("n_layers", self.n_layers)
        need_whole("n_bins", self.n_bins, least=2)
        need_number("tail_bound", self.tail_bound, above=0.0)
        need_number("weight_decay", self.weight_decay, least=0.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if len(set(self.hidden)) != 1:
            raise NkcmeError(
                "hidden must be one width once or more, as (50, 50): the masks of an "
                f"autoregressive network need it; got {self.hidden!r}"
            )

    def _distribution(self, x: np.ndarray) -> FlowDistribution:
        architecture = self._architecture(x.shape[1], self.n_outputs_)
        units = {"location": self.scaler_.location, "scale": self.scaler_.scale}
        if self.n_outputs_ > 1:
            return FlowDistribution((x,), _JointTransport(architecture, self.model_), **units)
        with jax.enable_x64(False):
            rows = _splines_at(architecture)(self.model_, padded(x))
        splines = tuple(np.asarray(leaf, np.float64)[: len(x)] for leaf in rows)
        return FlowDistribution(splines, _SplineTransport(architecture.spline), **units)


class _SplineShape(NamedTuple):
    """A spline's own numbers."""

    n_bins: int
    tail_bound: float


class _Architecture(NamedTuple):
    """The numbers that make a flow."""

    n_in: int
    n_out: int
    n_layers: int
    n_bins: int
    tail_bound: float
    hidden: tuple[int, ...]
    activation: str

    @property
    def spline(self) -> _SplineShape:
        return _SplineShape(self.n_bins, self.tail_bound)


class _Spec(NamedTuple):
    """The numbers that make a training program; equal specs share one."""

    architecture: _Architecture
    descent: Descent


@lru_cache(maxsize=64)
def _make_task(spec: _Spec) -> Task:
    """The training task of a spec; the same object for equal specs, so compiled once."""
    parts = _parts(spec.architecture)  # here, outside of any trace

    def surprise(model: PyTree, batch: tuple[Array, Array]) -> Array:
        """-log p(y | x), a value a row."""
        x, y = batch
        u, log_slope = jax.vmap(parts.flow(model).transform_and_log_det)(y, x)
        return -jnp.sum(jax.scipy.stats.norm.logpdf(u), axis=1) - log_slope

    return Task(
        init=lambda key, _: parts.start(key),
        objectives=(
            Objective(
                lambda model, batch, _: jnp.mean(surprise(model, batch)),
                lambda model: jax.tree.map(lambda _: True, model),
                spec.descent.optimizer(),
            ),
        ),
        validation=surprise,
    )


# --- the flow, from flowjax's pieces ----------------------------------------------------------


def _flowjax() -> tuple[ModuleType, ModuleType, ModuleType]:
    """flowjax's bijections and utilities, and paramax, which wraps its parameters."""
    try:
        import flowjax.bijections
        import flowjax.utils
        import paramax
    except ImportError as error:
        raise NkcmeError(
            f"SplineFlow needs flowjax ({error}): pip install 'nkcme[flows]'"
        ) from error
    return flowjax.bijections, flowjax.utils, paramax


class _Parts(NamedTuple):
    """A flow taken apart: what is learned, and all the rest (functions, masks, what is fixed)."""

    start: Callable[[Array], PyTree]  # what is learned, at the start; for a key
    fixed: PyTree

    def flow(self, model: PyTree) -> Any:
        """flowjax's bijection from y to normal scores, given x."""
        return eqx.combine(model, self.fixed)


@lru_cache(maxsize=64)
def _parts(architecture: _Architecture) -> _Parts:
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"):
        return _take_apart(architecture)


def _take_apart(architecture: _Architecture) -> _Parts:
    bijections, utils, paramax = _flowjax()
    n_in, dim = architecture.n_in, architecture.n_out
    is_fixed = lambda node: isinstance(node, paramax.NonTrainable)  # noqa: E731
    # Both are made out of the trace in which layers are, for flowjax keeps arrays in closures.
    linear, spline = _linear(dim), _spline(architecture.spline)
    constructor, _ = utils.get_ravelled_pytree_constructor(
        spline, filter_spec=eqx.is_inexact_array, is_leaf=is_fixed
    )

    def make_layer(key: Array) -> Any:
        autoregressive = bijections.MaskedAutoregressive(
            key,
            transformer=spline,
            dim=dim,
            cond_dim=n_in,
            nn_width=architecture.hidden[0],
            nn_depth=len(architecture.hidden),
            nn_activation=ACTIVATIONS[architecture.activation],
        )
        return bijections.Chain([linear, autoregressive])

    def make(key: Array) -> tuple[PyTree, PyTree]:
        with jax.numpy_rank_promotion("allow"):
            layers = eqx.filter_vmap(make_layer)(jax.random.split(key, architecture.n_layers))
        flow = bijections.Scan(layers)  # one layer is compiled, not n_layers
        return eqx.partition(flow, eqx.is_inexact_array, is_leaf=is_fixed)

    fixed = eqx.filter_jit(lambda key: make(key)[1])(jax.random.key(0))
    fixed = eqx.tree_at(
        lambda flow: flow.bijection.bijections[1].transformer_constructor, fixed, constructor
    )
    return _Parts(lambda key: _drawn(make(key)[0], key), fixed)


def _linear(dim: int) -> Any:
    """The LU-linear permutation: for one output a scale and a shift, y reversed, U and L for more.

    All start as the identity. The diagonals are positive, so that with one output the flow rises.
    """
    bijections, _, paramax = _flowjax()
    if dim == 1:
        return bijections.Affine(jnp.zeros(1), jnp.ones(1))
    upper = bijections.TriangularAffine(jnp.zeros(dim), jnp.eye(dim), lower=False)
    lower = bijections.TriangularAffine(jnp.zeros(dim), jnp.eye(dim))
    # What one of the two can do, the other need not: the shift is L's and the diagonal U's.
    upper = eqx.tree_at(lambda m: m.loc, upper, replace_fn=paramax.NonTrainable)

    def unit_lower(raw: Array) -> Array:  # also of all layers at once, as flowjax unwraps them
        return jnp.tril(raw, -1) + jnp.broadcast_to(jnp.eye(dim, dtype=raw.dtype), raw.shape)

    lower = eqx.tree_at(
        lambda m: m.triangular, lower, paramax.Parameterize(unit_lower, jnp.zeros((dim, dim)))
    )
    return bijections.Chain([bijections.Flip((dim,)), upper, lower])


def _spline(shape: _SplineShape) -> Any:
    """flowjax's spline, with the slope of one at both ends that a linear tail asks for.

    So the density is continuous, as in Durkan et al.; flowjax by itself learns these slopes too.
    """
    bijections, _, paramax = _flowjax()
    n_bins, bound = shape
    spline = bijections.RationalQuadraticSpline(
        knots=n_bins - 1,  # inner ones
        interval=bound,
        min_width=2 * bound * min(_LEAST_WIDTH, 0.1 / n_bins),
    )

    def slopes(raw: Array) -> Array:
        inner = jax.nn.softplus(raw) + _LEAST_SLOPE
        ends = jnp.ones((*raw.shape[:-1], 1), raw.dtype)
        return jnp.concatenate([ends, inner, ends], axis=-1)

    identity = jnp.full(n_bins - 1, np.log(np.expm1(1.0 - _LEAST_SLOPE)))
    return eqx.tree_at(lambda s: s.derivatives, spline, paramax.Parameterize(slopes, identity))


def _drawn(learned: PyTree, key: Array) -> PyTree:
    """With the networks' weights drawn anew, as equinox does but all at once.

    To compile a generator for each array takes longer than all the rest.
    """
    where = lambda flow: [  # noqa: E731
        array
        for layer in flow.bijection.bijections[1].masked_autoregressive_mlp.layers
        for array in (layer.weight.args[1], layer.bias)
    ]
    arrays = where(learned)
    n_inputs = [array.shape[-1] for array in arrays[::2] for _ in range(2)]
    ends = np.cumsum([array.size for array in arrays])
    drawn = jnp.split(jax.random.uniform(key, (int(ends[-1]),), minval=-1.0), ends[:-1])
    return eqx.tree_at(
        where,
        learned,
        [
            part.reshape(array.shape) / np.sqrt(n)
            for part, array, n in zip(drawn, arrays, n_inputs, strict=True)
        ],
    )


# --- prediction -------------------------------------------------------------------------------
#
# Programs are made out of any trace, and once: a second prediction compiles nothing.


@lru_cache(maxsize=64)
def _splines_at(architecture: _Architecture) -> Callable[[PyTree, np.ndarray], tuple[Array, ...]]:
    """Of the flow of one output, a function of model and inputs (n, p) that gives knots, values and
    slopes of its splines, (n, layers, bins + 1), and shifts and scales of its linear maps,
    (n, layers)."""
    _, _, paramax = _flowjax()
    parts = _parts(architecture)

    @jax.jit
    def splines(model: PyTree, x: Array) -> tuple[Array, ...]:
        layers = paramax.unwrap(parts.flow(model)).bijection
        arrays, static = eqx.partition(layers, eqx.is_array)

        def layer_at(layer: PyTree, row: Array) -> tuple[Array, ...]:
            linear, autoregressive = eqx.combine(layer, static).bijections
            # The network's first input is y, which it must not see.
            raw = autoregressive.masked_autoregressive_mlp(jnp.concatenate([jnp.zeros(1), row]))
            spline = paramax.unwrap(autoregressive.transformer_constructor(raw))
            return spline.x_pos, spline.y_pos, spline.derivatives, linear.loc[0], linear.scale[0]

        with jax.default_matmul_precision("highest"):  # a GPU's ten bits are enough to train only
            return jax.vmap(lambda row: jax.vmap(layer_at, (0, None))(arrays, row))(x)

    return splines


class _SplinePrograms(NamedTuple):
    """What is asked of the splines of rows (see `_splines_at`)."""

    to_normal: Callable[..., tuple[Array, Array]]
    from_normal: Callable[..., tuple[Array, Array]]
    breaks: Callable[..., Array]


@lru_cache(maxsize=64)
def _spline_programs(shape: _SplineShape) -> _SplinePrograms:
    bijections, _, _ = _flowjax()
    linear, spline = bijections.Affine(), _spline(shape)

    def layers(row: tuple[Array, ...]) -> Any:
        """flowjax's bijections of one row, to scan over."""
        knots, values, slopes, shift, scale = row
        return bijections.Chain(
            [
                eqx.tree_at(lambda m: (m.loc, m.scale), linear, (shift, scale)),
                eqx.tree_at(
                    lambda s: (s.x_pos, s.y_pos, s.derivatives), spline, (knots, values, slopes)
                ),
            ]
        )

    def carry(method: str, rows: tuple[Array, ...], points: Array) -> tuple[Array, Array]:
        def at(row: tuple[Array, ...], points: Array) -> tuple[Array, Array]:
            return jax.vmap(getattr(bijections.Scan(layers(row)), method))(points)

        carried, log_slope = jax.vmap(at)(rows, points[..., 0])
        return carried[..., None], log_slope

    def breaks(rows: tuple[Array, ...]) -> Array:
        """Where each layer's knots end up once carried through the layers after it."""

        def of(row: tuple[Array, ...]) -> Array:
            def step(points: Array, now: tuple[Array, tuple[Array, ...]]) -> tuple[Array, None]:
                i, layer = now
                carried = jax.vmap(jax.vmap(layers(layer).transform))(points)
                return carried.at[i].set(layer[1]), None

            values = row[1]
            numbered = (jnp.arange(len(values)), row)
            return jax.lax.scan(step, jnp.zeros_like(values), numbered)[0].ravel()

        return jax.vmap(of)(rows)

    return _SplinePrograms(
        jax.jit(partial(carry, "transform_and_log_det")),
        jax.jit(partial(carry, "inverse_and_log_det")),
        jax.jit(breaks),
    )


class _SplineTransport(NamedTuple):
    """The map of one output; the arrays of rows are those of `_splines_at`. Double precision."""

    shape: _SplineShape
    n_outputs: int = 1
    numbers_per_point: int = 32

    def to_normal(
        self, rows: tuple[np.ndarray, ...], z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            return _at_padded(_spline_programs(self.shape).to_normal, rows, z)

    def from_normal(
        self, rows: tuple[np.ndarray, ...], u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            return _at_padded(_spline_programs(self.shape).from_normal, rows, u)

    def n_breaks(self, rows: tuple[np.ndarray, ...]) -> int:
        knots = rows[0]
        return knots.shape[1] * knots.shape[2]

    def breaks(self, rows: tuple[np.ndarray, ...]) -> np.ndarray:
        size = _padded_size(len(rows[0]))
        with jax.enable_x64(True):
            found = _spline_programs(self.shape).breaks(tuple(_filled(a, 0, size) for a in rows))
        return np.asarray(found)[: len(rows[0])]


class _JointPrograms(NamedTuple):
    to_normal: Callable[..., tuple[Array, Array]]
    from_normal: Callable[..., tuple[Array, Array]]


@lru_cache(maxsize=64)
def _joint_programs(architecture: _Architecture) -> _JointPrograms:
    parts = _parts(architecture)

    def carry(method: str, model: PyTree, rows: tuple[Array], points: Array) -> tuple[Array, Array]:
        along = getattr(parts.flow(model), method)
        with jax.default_matmul_precision("highest"):
            return jax.vmap(jax.vmap(along, (0, None)))(points.astype(jnp.float32), rows[0])

    return _JointPrograms(
        jax.jit(partial(carry, "transform_and_log_det")),
        jax.jit(partial(carry, "inverse_and_log_det")),
    )


class _JointTransport(NamedTuple):
    """The map of several outputs; the array of rows is x. In the single precision of its networks,
    which see every point."""

    architecture: _Architecture
    model: PyTree

    @property
    def n_outputs(self) -> int:
        return self.architecture.n_out

    @property
    def numbers_per_point(self) -> int:
        widest = max(*self.architecture.hidden, 3 * self.architecture.n_bins * self.n_outputs)
        return 4 * widest + self.architecture.n_in

    def to_normal(
        self, rows: tuple[np.ndarray, ...], z: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(False):
            program = partial(_joint_programs(self.architecture).to_normal, self.model)
            return _at_padded(program, rows, z)

    def from_normal(
        self, rows: tuple[np.ndarray, ...], u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(False):
            program = partial(_joint_programs(self.architecture).from_normal, self.model)
            return _at_padded(program, rows, u)

    def n_breaks(self, rows: tuple[np.ndarray, ...]) -> int:
        return 0

    def breaks(self, rows: tuple[np.ndarray, ...]) -> np.ndarray:
        raise NkcmeError("only the map of one output has breaks")


def _at_padded(
    program: Callable[..., tuple[Array, Array]], rows: tuple[np.ndarray, ...], points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A program at points (n, m, d), both n and m filled up so that few programs are compiled."""
    n, m, _ = points.shape
    n_filled, m_filled = _padded_size(n), _padded_size(m)
    carried, log_slope = program(
        tuple(_filled(a, 0, n_filled) for a in rows),
        _filled(_filled(points, 0, n_filled), 1, m_filled),
    )
    return (
        np.asarray(carried, np.float64)[:n, :m],
        np.asarray(log_slope, np.float64)[:n, :m],
    )


def _padded_size(n: int) -> int:
    """The next of 8, 64, 128, 256, 512, ..."""
    return 8 if n <= 8 else max(64, 1 << (n - 1).bit_length())


def _filled(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    """With its first entry repeated at the end, for that is one a program can deal with."""
    missing = size - array.shape[axis]
    if not missing or not array.shape[axis]:
        return array
    first = np.take(array, [0], axis=axis)
    return np.concatenate([array, np.repeat(first, missing, axis=axis)], axis=axis)
