"""Training steps of the paper's toy recipe as Pallas kernels, one program for each replica.

A trial: `benchmarks.speed.steps` measures it on a GPU beside the steps of the library.

Triton computes on arrays whose sizes are powers of two, so 50 rows and 50 hidden units are padded
to 64, and 100 atoms to 128. No mask is needed except for the rows. Weights of padding are zero, and
their gradients too: relu has no slope at zero, and padding atoms lie so far away that the kernel is
zero between them and all else.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

#: Rows of a minibatch, hidden units of both layers and atoms.
BATCH, HIDDEN, ATOMS = 50, 50, 100
PADDED_BATCH = 64
_PADDED_HIDDEN, _PADDED_ATOMS = 64, 128
_FAR_AWAY = 1e4  # the location of padding atoms

LEARNING_RATE, WEIGHT_DECAY = 1e-4, 1e-4
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8

#: Steps that `train_in_kernels` runs in one kernel.
STEPS_A_KERNEL = 64


class Parameters(NamedTuple):
    """The parameters of a replica, padded; weights have the shape (outputs, inputs)."""

    weight_1: Any  # of the only input
    bias_1: Any
    weight_2: Any
    bias_2: Any
    weight_3: Any
    bias_3: Any
    rho: Any  # softplus(rho) is the bandwidth; in the first place, with zeros behind it


SHAPES = Parameters(
    (_PADDED_HIDDEN,),
    (_PADDED_HIDDEN,),
    (_PADDED_HIDDEN, _PADDED_HIDDEN),
    (_PADDED_HIDDEN,),
    (_PADDED_ATOMS, _PADDED_HIDDEN),
    (_PADDED_ATOMS,),
    (_PADDED_HIDDEN,),
)
_LENGTHS = [math.prod(shape) for shape in SHAPES]
_SIZE = sum(_LENGTHS)
_FIRST = [sum(_LENGTHS[:i]) for i in range(len(_LENGTHS))]


class State(NamedTuple):
    """Replicas in training: packed arrays (replicas, size), and the number of steps so far."""

    parameters: Array
    mean: Array  # of gradients, as Adam averages them
    square: Array
    n_steps: Array


def initial_state(parameters: Array) -> State:
    """The state before the first step of replicas with these packed parameters."""
    zeros = jnp.zeros_like(parameters)
    return State(parameters, zeros, zeros, jnp.zeros((), jnp.int32))


def packed(parameters: Parameters) -> Array:
    """The parameters of a replica, padded with zeros, as one array (size,)."""
    padded = [
        jnp.pad(array, [(0, n - m) for n, m in zip(shape, array.shape, strict=True)])
        for array, shape in zip(parameters, SHAPES, strict=True)
    ]
    return jnp.concatenate([array.ravel() for array in padded])


def unpacked(row: Any) -> Parameters:
    """The inverse of `packed`, with the padding; ``row`` is an array or a reference to one."""
    return Parameters(
        *(
            row[first : first + length].reshape(shape)
            for first, length, shape in zip(_FIRST, _LENGTHS, SHAPES, strict=True)
        )
    )


def _write(row: Any, parameters: Parameters) -> None:
    for first, length, array in zip(_FIRST, _LENGTHS, parameters, strict=True):
        row[first : first + length] = array.reshape(length)


def padded_atoms(locations: Array) -> Array:
    """Locations (replicas, atoms) with padding atoms behind them."""
    padding = [(0, 0), (0, _PADDED_ATOMS - locations.shape[1])]
    return jnp.pad(locations, padding, constant_values=_FAR_AWAY)


def train_by_gradients(
    state: State, x: Array, y: Array, atoms: Array, warps: int
) -> tuple[State, Array]:
    """Train on minibatches x and y (steps, replicas, padded rows); the state and the losses
    (steps, replicas).

    A kernel computes the gradients of all replicas; XLA compiles AdamW.
    """

    def step(state: State, batch: tuple[Array, Array]) -> tuple[State, Array]:
        loss, gradient = losses_and_gradients(state.parameters, *batch, atoms, warps)
        n_steps = state.n_steps + 1
        moved = adamw(gradient, state.parameters, state.mean, state.square, unbias_factors(n_steps))
        return State(*moved, n_steps), loss

    return lax.scan(step, state, (x, y))


def train_in_kernels(
    state: State, x: Array, y: Array, atoms: Array, warps: int
) -> tuple[State, Array]:
    """As `train_by_gradients`, with many whole steps in every kernel."""
    n_steps, n_replicas, _ = x.shape
    length = min(n_steps, STEPS_A_KERNEL)
    in_blocks = (-1, length, n_replicas, PADDED_BATCH)

    def block(state: State, batches: tuple[Array, Array]) -> tuple[State, Array]:
        unbias = jax.vmap(unbias_factors)(state.n_steps + 1 + jnp.arange(length))
        return _steps(state, *batches, atoms, jnp.stack(unbias, axis=1), warps)

    state, losses = lax.scan(block, state, (x.reshape(in_blocks), y.reshape(in_blocks)))
    return state, losses.reshape(n_steps, n_replicas)


def losses_and_gradients(
    parameters: Array, x: Array, y: Array, atoms: Array, warps: int
) -> tuple[Array, Array]:
    """The losses (replicas,) and the packed gradients of one minibatch (replicas, padded rows)."""
    n_replicas = len(parameters)
    parameters_row, rows, atoms_row = (_row(n) for n in (_SIZE, PADDED_BATCH, _PADDED_ATOMS))
    return _call(
        _gradient_kernel,
        n_replicas,
        warps,
        [parameters_row, rows, rows, atoms_row],
        [pl.BlockSpec((None,), lambda replica: (replica,)), parameters_row],
        [(n_replicas,), (n_replicas, _SIZE)],
    )(parameters, x, y, atoms)


def _gradient_kernel(
    parameters: Any, x: Any, y: Any, atoms: Any, loss_out: Any, gradient_out: Any
) -> None:
    loss, gradient = _loss_and_gradient(unpacked(parameters), x[...], y[...], atoms[...])
    loss_out[...] = loss
    _write(gradient_out, gradient)


def _steps(
    state: State, x: Array, y: Array, atoms: Array, unbias: Array, warps: int
) -> tuple[State, Array]:
    """The state and the losses after the steps of one kernel."""
    length, n_replicas, _ = x.shape
    state_row, atoms_row = _row(_SIZE), _row(_PADDED_ATOMS)
    rows = pl.BlockSpec((length, None, PADDED_BATCH), lambda replica: (0, replica, 0))
    parameters, mean, square, losses = _call(
        _steps_kernel,
        n_replicas,
        warps,
        [*3 * [state_row], rows, rows, atoms_row, pl.BlockSpec((length, 2), lambda _: (0, 0))],
        [*3 * [state_row], pl.BlockSpec((length, None), lambda replica: (0, replica))],
        [*3 * [(n_replicas, _SIZE)], (length, n_replicas)],
    )(state.parameters, state.mean, state.square, x, y, atoms, unbias)
    return State(parameters, mean, square, state.n_steps + length), losses


def _steps_kernel(
    parameters: Any, mean: Any, square: Any, x: Any, y: Any, atoms: Any, unbias: Any, *out: Any
) -> None:
    *state_out, losses_out = out
    eta = atoms[...]

    def step(i: Array, now: tuple[Parameters, ...]) -> tuple[Parameters, ...]:
        loss, gradient = _loss_and_gradient(now[0], x[i, :], y[i, :], eta)
        losses_out[i] = loss
        update = partial(adamw, unbias=(unbias[i, 0], unbias[i, 1]))
        moved = map(update, gradient, *now)
        return tuple(Parameters(*arrays) for arrays in zip(*moved, strict=True))

    # The state is carried by the loop, not by memory: threads need not wait for what others write.
    first = unpacked(parameters), unpacked(mean), unpacked(square)
    for row, arrays in zip(state_out, lax.fori_loop(0, len(x), step, first), strict=True):
        _write(row, arrays)


def _row(length: int) -> pl.BlockSpec:
    """A replica's row of an array (replicas, length)."""
    return pl.BlockSpec((None, length), lambda replica: (replica, 0))


def _call(
    kernel: Any, n_replicas: int, warps: int, in_specs: Any, out_specs: Any, shapes: Any
) -> Any:
    return pl.pallas_call(
        kernel,
        grid=(n_replicas,),
        in_specs=in_specs,
        out_specs=out_specs,
        out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
        # The type of the parameters chooses Triton. One stage: there are no loads to prefetch.
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=jax.default_backend() == "cpu",  # which Pallas does not compile for
    )


def _loss_and_gradient(
    parameters: Parameters, x: Array, y: Array, eta: Array
) -> tuple[Array, Parameters]:
    """`nkcme.objectives.rkhs_loss` of a replica on one minibatch, and its gradient.

    L = sum_i r_i (w_i' G w_i - 2 k_i' w_i), where r_i is 1 / 50, or 0 for padding.
    """
    p = parameters
    r = jnp.where(jnp.arange(PADDED_BATCH) < BATCH, 1.0 / BATCH, 0.0)[:, None]
    z_1 = x[:, None] * p.weight_1[None] + p.bias_1[None]
    h_1 = jnp.maximum(z_1, 0.0)
    z_2 = _dot(h_1, p.weight_2, 1, 1) + p.bias_2[None]
    h_2 = jnp.maximum(z_2, 0.0)
    w = _dot(h_2, p.weight_3, 1, 1) + p.bias_3[None]

    exp_rho = jnp.exp(jnp.sum(p.rho))
    sigma = jnp.log(1.0 + exp_rho)  # softplus
    k_y, slope_y = _gaussian(y[:, None] - eta[None], sigma)
    gram, slope = _gaussian(eta[:, None] - eta[None], sigma)
    product, rw = _dot(w, gram, 1, 0), r * w
    loss = jnp.sum(rw * (product - 2.0 * k_y))

    # dL/dsigma = sum_ab (sum_i r_i w_ia w_ib) dG_ab/dsigma - 2 sum_i r_i w_i' dk_i/dsigma
    by_sigma = jnp.sum(_dot(rw, w, 0, 0) * slope) - 2.0 * jnp.sum(rw * slope_y)
    by_rho = by_sigma * exp_rho / (1.0 + exp_rho)
    by_w = 2.0 * r * (product - k_y)
    by_z_2 = jnp.where(z_2 > 0.0, _dot(by_w, p.weight_3, 1, 0), 0.0)
    by_z_1 = jnp.where(z_1 > 0.0, _dot(by_z_2, p.weight_2, 1, 0), 0.0)
    return loss, Parameters(
        jnp.sum(by_z_1 * x[:, None], axis=0),
        jnp.sum(by_z_1, axis=0),
        _dot(by_z_2, h_1, 0, 0),
        jnp.sum(by_z_2, axis=0),
        _dot(by_w, h_2, 0, 0),
        jnp.sum(by_w, axis=0),
        jnp.where(jnp.arange(_PADDED_HIDDEN) == 0, by_rho, 0.0),
    )


def _dot(a: Array, b: Array, a_axis: int, b_axis: int) -> Array:
    """The product that sums over these axes; on a GPU in TF32, as XLA's default is."""
    return lax.dot_general(a, b, (((a_axis,), (b_axis,)), ((), ())))


def _gaussian(difference: Array, sigma: Array) -> tuple[Array, Array]:
    """The kernel k = exp(-u^2 / 2) / (sqrt(2 pi) sigma), and its derivative by sigma."""
    inverse = 1.0 / sigma
    square = jnp.square(difference * inverse)
    value = jnp.exp(-0.5 * square) * (inverse / math.sqrt(2.0 * math.pi))
    return value, value * (square - 1.0) * inverse


def unbias_factors(step: Array) -> tuple[Array, Array]:
    """The factors of Adam's averages at a step, counted from one, that start at zero."""
    return 1.0 / (1.0 - _BETA1**step), 1.0 / (1.0 - _BETA2**step)


def adamw(
    gradient: Array, parameter: Array, mean: Array, square: Array, unbias: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """The parameter and the averages after a step of `optax.adamw`."""
    mean = _BETA1 * mean + (1.0 - _BETA1) * gradient
    square = _BETA2 * square + (1.0 - _BETA2) * jnp.square(gradient)
    change = mean * unbias[0] / (jnp.sqrt(square * unbias[1]) + _EPSILON)
    return parameter - LEARNING_RATE * (change + WEIGHT_DECAY * parameter), mean, square
