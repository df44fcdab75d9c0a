"""The transports of `FlowDistribution`: how predictions map y to normal scores and back.

Programs are built outside of any trace and once per size, so that a second prediction compiles
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import NkcmeError
from nkcme.estimators.spline_flow.flow import Architecture, RowFlow, SplineShape, make_flow
from nkcme.training.padding import pad_to, power_of_two

PyTree = Any
Rows = tuple[np.ndarray, ...]

#: Arrays of rows and points (n, m, d) -> mapped points and the log of the volume change (n, m).
Program = Callable[..., tuple[Array, Array]]


# --- one output ---------------------------------------------------------------------------------


class SplineTransport(NamedTuple):
    """The map of one output, in double precision. ``rows`` are the flow's `spline_parameters`."""

    shape: SplineShape
    n_outputs: int = 1
    numbers_per_point: int = 32

    def to_normal(self, rows: Rows, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            return _run_padded(_spline_programs(self.shape).to_normal, rows, z)

    def from_normal(self, rows: Rows, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            return _run_padded(_spline_programs(self.shape).from_normal, rows, u)

    def n_breaks(self, rows: Rows) -> int:
        knots = rows[0]
        return knots.shape[1] * knots.shape[2]

    def breaks(self, rows: Rows) -> np.ndarray:
        with jax.enable_x64(True):
            found = _spline_programs(self.shape).breaks(tuple(_padded(a) for a in rows))
        return np.asarray(found)[: len(rows[0])]


class _SplinePrograms(NamedTuple):
    to_normal: Program
    from_normal: Program
    breaks: Callable[..., Array]


@lru_cache(maxsize=64)
def _spline_programs(shape: SplineShape) -> _SplinePrograms:
    row_flow = RowFlow.of(shape)

    def transport(method: str, rows: tuple[Array, ...], points: Array) -> tuple[Array, Array]:
        def of_row(row: tuple[Array, ...], points: Array) -> tuple[Array, Array]:
            return jax.vmap(getattr(row_flow.layers(row), method))(points)

        mapped, log_slope = jax.vmap(of_row)(rows, points[..., 0])
        return mapped[..., None], log_slope

    def breaks(rows: tuple[Array, ...]) -> Array:
        """The knots of each layer, mapped through the layers after it."""

        def of_row(row: tuple[Array, ...]) -> Array:
            def step(points: Array, now: tuple[Array, tuple[Array, ...]]) -> tuple[Array, None]:
                i, layer = now
                mapped = jax.vmap(jax.vmap(row_flow.layer(layer).transform))(points)
                return mapped.at[i].set(layer[1]), None

            values = row[1]
            numbered = (jnp.arange(len(values)), row)
            return jax.lax.scan(step, jnp.zeros_like(values), numbered)[0].ravel()

        return jax.vmap(of_row)(rows)

    return _SplinePrograms(
        jax.jit(partial(transport, "transform_and_log_det")),
        jax.jit(partial(transport, "inverse_and_log_det")),
        jax.jit(breaks),
    )


# --- several outputs ----------------------------------------------------------------------------


class JointTransport(NamedTuple):
    """The map of several outputs, in single precision. ``rows`` are the inputs x.

    The networks see every point, and their parameters are in single precision.
    """

    architecture: Architecture
    model: PyTree

    @property
    def n_outputs(self) -> int:
        return self.architecture.n_out

    @property
    def numbers_per_point(self) -> int:
        widest = max(*self.architecture.hidden, 3 * self.architecture.n_bins * self.n_outputs)
        return 4 * widest + self.architecture.n_in

    def to_normal(self, rows: Rows, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(False):
            program = partial(_joint_programs(self.architecture).to_normal, self.model)
            return _run_padded(program, rows, z)

    def from_normal(self, rows: Rows, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with jax.enable_x64(False):
            program = partial(_joint_programs(self.architecture).from_normal, self.model)
            return _run_padded(program, rows, u)

    def n_breaks(self, rows: Rows) -> int:
        return 0

    def breaks(self, rows: Rows) -> np.ndarray:
        raise NkcmeError("only the transport of one output has breaks")


class _JointPrograms(NamedTuple):
    to_normal: Program
    from_normal: Program


@lru_cache(maxsize=64)
def _joint_programs(architecture: Architecture) -> _JointPrograms:
    flow = make_flow(architecture)

    def transport(
        method: str, model: PyTree, rows: tuple[Array], points: Array
    ) -> tuple[Array, Array]:
        along = getattr(flow.bijection(model), method)
        with jax.default_matmul_precision("highest"):
            return jax.vmap(jax.vmap(along, (0, None)))(points.astype(jnp.float32), rows[0])

    return _JointPrograms(
        jax.jit(partial(transport, "transform_and_log_det")),
        jax.jit(partial(transport, "inverse_and_log_det")),
    )


# --- padding ------------------------------------------------------------------------------------


def _run_padded(program: Program, rows: Rows, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Run a program at points (n, m, d), with n and m padded so that few programs are compiled."""
    n, m, _ = points.shape
    mapped, log_slope = program(tuple(_padded(a) for a in rows), _padded(_padded(points), axis=1))
    return (
        np.asarray(mapped, np.float64)[:n, :m],
        np.asarray(log_slope, np.float64)[:n, :m],
    )


def _padded(array: np.ndarray, axis: int = 0) -> np.ndarray:
    """The array padded with its first entry, which is a value that programs can handle."""
    return pad_to(array, power_of_two(array.shape[axis], tiny=8), axis=axis, fill="first")
