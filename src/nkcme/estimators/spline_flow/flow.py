"""The flow, built from flowjax's bijections. Only this module imports flowjax.

In the direction of training, from y to a normal variable, each of the n_layers layers is a learned
linear map, then an autoregressive rational-quadratic spline. A network gives the parameters of the
spline from x and, with several outputs, from the preceding outputs. Beyond the tail bound a spline
is the identity.

Bijections are built outside of any trace, because flowjax keeps arrays in closures.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.networks import ACTIVATIONS

PyTree = Any

#: The smallest slope of a spline at a knot.
_MIN_SLOPE = 1e-3

#: The smallest width of a bin, as a share of the whole interval.
_MIN_WIDTH = 1e-3


class SplineShape(NamedTuple):
    """The size of a spline."""

    n_bins: int
    tail_bound: float


class Architecture(NamedTuple):
    """The size of a flow."""

    n_in: int
    n_out: int
    n_layers: int
    n_bins: int
    tail_bound: float
    hidden: tuple[int, ...]
    activation: str

    @property
    def spline(self) -> SplineShape:
        return SplineShape(self.n_bins, self.tail_bound)


class Flow(NamedTuple):
    """A flow without its parameters, which are the model that is trained.

    ``fixed`` is the rest of flowjax's bijection: functions, masks, and arrays that are not trained.
    """

    initial: Callable[[Array], PyTree]  # the parameters at the start of training, from a key
    fixed: PyTree

    def bijection(self, model: PyTree) -> Any:
        """flowjax's bijection from y to normal scores, given x."""
        return eqx.combine(model, self.fixed)


@lru_cache(maxsize=64)
def make_flow(architecture: Architecture) -> Flow:
    """The flow of an architecture."""
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"):
        return _make_flow(architecture)


def _make_flow(architecture: Architecture) -> Flow:
    bijections, utils, paramax = _flowjax()
    is_fixed = lambda node: isinstance(node, paramax.NonTrainable)  # noqa: E731
    linear, spline = _linear(architecture.n_out), _spline(architecture.spline)
    constructor, _ = utils.get_ravelled_pytree_constructor(
        spline, filter_spec=eqx.is_inexact_array, is_leaf=is_fixed
    )

    def make_layer(key: Array) -> Any:
        autoregressive = bijections.MaskedAutoregressive(
            key,
            transformer=spline,
            dim=architecture.n_out,
            cond_dim=architecture.n_in,
            nn_width=architecture.hidden[0],
            nn_depth=len(architecture.hidden),
            nn_activation=ACTIVATIONS[architecture.activation],
        )
        return bijections.Chain([linear, autoregressive])

    def make(key: Array) -> tuple[PyTree, PyTree]:
        with jax.numpy_rank_promotion("allow"):
            layers = eqx.filter_vmap(make_layer)(jax.random.split(key, architecture.n_layers))
        flow = bijections.Scan(layers)  # compiles one layer, not n_layers
        return eqx.partition(flow, eqx.is_inexact_array, is_leaf=is_fixed)

    fixed = eqx.filter_jit(lambda key: make(key)[1])(jax.random.key(0))
    fixed = eqx.tree_at(
        lambda flow: flow.bijection.bijections[1].transformer_constructor, fixed, constructor
    )
    return Flow(lambda key: _with_initial_weights(make(key)[0], key), fixed)


def _linear(dim: int) -> Any:
    """The linear map of a layer, the identity at the start.

    For one output it is a scale and a shift, for several the reversed outputs times U and L. All
    diagonals are positive, so that with one output the flow increases.
    """
    bijections, _, paramax = _flowjax()
    if dim == 1:
        return bijections.Affine(jnp.zeros(1), jnp.ones(1))
    upper = bijections.TriangularAffine(jnp.zeros(dim), jnp.eye(dim), lower=False)
    lower = bijections.TriangularAffine(jnp.zeros(dim), jnp.eye(dim))
    # Two shifts and two diagonals would be redundant: only L has a shift, only U a diagonal.
    upper = eqx.tree_at(lambda m: m.loc, upper, replace_fn=paramax.NonTrainable)

    def unit_lower(raw: Array) -> Array:  # flowjax also unwraps all layers together
        return jnp.tril(raw, -1) + jnp.broadcast_to(jnp.eye(dim, dtype=raw.dtype), raw.shape)

    lower = eqx.tree_at(
        lambda m: m.triangular, lower, paramax.Parameterize(unit_lower, jnp.zeros((dim, dim)))
    )
    return bijections.Chain([bijections.Flip((dim,)), upper, lower])


def _spline(shape: SplineShape) -> Any:
    """flowjax's spline with a slope of one at both ends, the slope of the linear tails.

    The density is then continuous, as in Durkan et al.; flowjax learns these slopes too.
    """
    bijections, _, paramax = _flowjax()
    n_bins, bound = shape
    spline = bijections.RationalQuadraticSpline(
        knots=n_bins - 1,  # inner ones
        interval=bound,
        min_width=2 * bound * min(_MIN_WIDTH, 0.1 / n_bins),
    )

    def slopes(raw: Array) -> Array:
        inner = jax.nn.softplus(raw) + _MIN_SLOPE
        ends = jnp.ones((*raw.shape[:-1], 1), raw.dtype)
        return jnp.concatenate([ends, inner, ends], axis=-1)

    identity = jnp.full(n_bins - 1, np.log(np.expm1(1.0 - _MIN_SLOPE)))
    return eqx.tree_at(lambda s: s.derivatives, spline, paramax.Parameterize(slopes, identity))


def _with_initial_weights(model: PyTree, key: Array) -> PyTree:
    """The model with new random weights of its networks, distributed as equinox's.

    One call draws all of them. A generator for each array takes longer to compile than the rest of
    the model.
    """
    weights = lambda flow: [  # noqa: E731
        array
        for layer in flow.bijection.bijections[1].masked_autoregressive_mlp.layers
        for array in (layer.weight.args[1], layer.bias)
    ]
    arrays = weights(model)
    n_inputs = [array.shape[-1] for array in arrays[::2] for _ in range(2)]
    ends = np.cumsum([array.size for array in arrays])
    uniform = jnp.split(jax.random.uniform(key, (int(ends[-1]),), minval=-1.0), ends[:-1])
    return eqx.tree_at(
        weights,
        model,
        [
            values.reshape(array.shape) / np.sqrt(n)
            for values, array, n in zip(uniform, arrays, n_inputs, strict=True)
        ],
    )


# --- one output: a row is its spline parameters -------------------------------------------------


@lru_cache(maxsize=64)
def spline_parameters(
    architecture: Architecture,
) -> Callable[[PyTree, np.ndarray], tuple[Array, ...]]:
    """The compiled function of model and inputs (n, p) that gives the splines of a one-output flow.

    It returns knots, values and slopes, (n, layers, bins + 1), and shifts and scales of the linear
    maps, (n, layers).
    """
    _, _, paramax = _flowjax()
    flow = make_flow(architecture)

    @jax.jit
    def parameters(model: PyTree, x: Array) -> tuple[Array, ...]:
        layers = paramax.unwrap(flow.bijection(model)).bijection
        arrays, static = eqx.partition(layers, eqx.is_array)

        def layer_at(layer: PyTree, row: Array) -> tuple[Array, ...]:
            linear, autoregressive = eqx.combine(layer, static).bijections
            # The first input of the network is y. Its weights are masked, so zero stands for it.
            raw = autoregressive.masked_autoregressive_mlp(jnp.concatenate([jnp.zeros(1), row]))
            spline = paramax.unwrap(autoregressive.transformer_constructor(raw))
            return spline.x_pos, spline.y_pos, spline.derivatives, linear.loc[0], linear.scale[0]

        with jax.default_matmul_precision("highest"):  # a GPU multiplies with ten bits by default
            return jax.vmap(lambda row: jax.vmap(layer_at, (0, None))(arrays, row))(x)

    return parameters


class RowFlow(NamedTuple):
    """Builds flowjax's bijections of one row of a one-output flow from its `spline_parameters`."""

    linear: Any
    spline: Any

    @classmethod
    def of(cls, shape: SplineShape) -> RowFlow:
        bijections, _, _ = _flowjax()
        return cls(bijections.Affine(), _spline(shape))

    def layer(self, parameters: tuple[Array, ...]) -> Any:
        """One layer, or all layers stacked."""
        bijections, _, _ = _flowjax()
        knots, values, slopes, shift, scale = parameters
        return bijections.Chain(
            [
                eqx.tree_at(lambda m: (m.loc, m.scale), self.linear, (shift, scale)),
                eqx.tree_at(
                    lambda s: (s.x_pos, s.y_pos, s.derivatives),
                    self.spline,
                    (knots, values, slopes),
                ),
            ]
        )

    def layers(self, parameters: tuple[Array, ...]) -> Any:
        """All layers, one after the other."""
        bijections, _, _ = _flowjax()
        return bijections.Scan(self.layer(parameters))


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
