"""The embedding: atoms, weights and a kernel, read as a conditional distribution.

mu = sum_a w_a k(eta_a, .) can be read in two ways (docs/readings.md has the table):

- **atomic**: the measure sum_a w_a delta(eta_a), which is what training brings close to P(Y | x).
  For density, CDF, quantiles and draws each atom's mass is spread evenly over its cell (up to the
  midpoints to its neighbours), so that they are those of one continuous distribution. For several
  outputs it is spread by the normal law of its cell, where the covariances of cells are given.
- **smoothed**: the function mu itself, a density because k is one. It is P(Y | x) blurred by k.

Within a reading `pdf` integrates to one, `cdf` is its integral and `ppf` inverts it. Weights may be
signed. A density may then dip below zero: `pdf` shows it as it is, and `pdf(clip=True)` its
positive part, renormalised. `cdf`, `ppf`, `rvs` and `crps` always belong to the latter, so there is
one monotone CDF and quantiles cannot cross. Only for several outputs is `cdf` that of the weights
as they are, so that with signed ones it need not be monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from nkcme.distributions import herding
from nkcme.distributions.atom_covariances import N_POINTS, NormalCells
from nkcme.distributions.base import (
    MAX_MEMORY,
    Standardised,
    as_rows,
    by_points,
    checked_size,
)
from nkcme.distributions.piecewise import CdfTable, choose
from nkcme.errors import NkcmeError
from nkcme.kernels import kernel_class

READINGS = ("atomic", "smoothed")

# Tail probabilities at which a smoothed CDF is tabulated beyond the outermost atoms. Even steps in
# their root make the error of interpolating even, whichever the kernel; far out even ratios do.
_TAILS = np.concatenate(
    [np.square(np.linspace(np.sqrt(0.5), np.sqrt(1e-3), 61)[1:]), np.geomspace(1e-3, 1e-12, 61)[1:]]
)


@dataclass(frozen=True, eq=False)
class Embedding(Standardised):
    """sum_a w_a(x) k(eta_a, .) for a batch of x.

    Atoms (m, d) and bandwidth are in standard units z, and y = location + scale z, where location
    and scale are numbers, or arrays (d,) or (n_rows, d). Weights (n_rows, m) sum to one in a row.
    ``spread`` (m, d, d), for several outputs, holds the covariance of z about each atom; without
    it, or where it is zero throughout, the atomic reading is the atoms alone.
    """

    atoms: np.ndarray
    weights: np.ndarray
    kernel: str = "gaussian"
    bandwidth: float = 1.0
    location: Any = 0.0
    scale: Any = 1.0
    reading: str = "smoothed"
    spread: np.ndarray | None = None

    def __post_init__(self) -> None:
        atoms = np.asarray(self.atoms, np.float64)
        atoms = atoms[:, None] if atoms.ndim == 1 else atoms
        weights = np.atleast_2d(np.asarray(self.weights))
        if atoms.ndim != 2 or weights.ndim != 2 or weights.shape[1] != len(atoms) or not len(atoms):
            raise NkcmeError(
                f"expected atoms (m, d) and weights (n_rows, m); got {atoms.shape} and "
                f"{weights.shape}"
            )
        if self.reading not in READINGS:
            raise NkcmeError(f"reading must be one of {READINGS}; got {self.reading!r}")
        if not self.bandwidth > 0:
            raise NkcmeError(f"the bandwidth must be positive; got {self.bandwidth}")
        kernel_class(self.kernel)
        if atoms.shape[1] == 1 and np.any(np.diff(atoms[:, 0]) < 0):
            order = np.argsort(atoms[:, 0], kind="stable")
            atoms, weights = atoms[order], weights[:, order]
        if self.spread is not None and np.shape(self.spread) != (*atoms.shape, atoms.shape[1]):
            raise NkcmeError(
                f"expected a covariance for each atom, {(*atoms.shape, atoms.shape[1])}; got "
                f"{np.shape(self.spread)}"
            )
        object.__setattr__(self, "atoms", atoms)
        object.__setattr__(self, "weights", weights)
        self._settle_units()

    @property
    def n_rows(self) -> int:
        return self.weights.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.atoms.shape[1]

    @property
    def n_atoms(self) -> int:
        return self.atoms.shape[0]

    def __getitem__(self, rows: Any) -> Embedding:
        rows = as_rows(rows)
        return replace(self, weights=self.weights[rows], **self._units_of(rows))

    def __repr__(self) -> str:
        return (
            f"Embedding({self.n_rows} rows, {self.n_atoms} atoms, {self.n_outputs} outputs, "
            f"{self.kernel} kernel of bandwidth {self.bandwidth:.4g}, {self.reading} reading)"
        )

    def read(self, reading: str) -> Embedding:
        """The same embedding in the reading ``"atomic"`` or ``"smoothed"``."""
        return replace(self, reading=reading)

    def smoothed(self) -> Embedding:
        """The smoothed reading: the atomic one's density is a histogram."""
        return self.read("smoothed")

    # --- the distribution -------------------------------------------------------------------

    def pdf(self, y: ArrayLike, *, grid: bool = False, clip: bool = False) -> np.ndarray:
        """The density at ``y``: mu(y), or in the atomic reading the mass over the width of a cell
        (for several outputs, that of the cells' normal laws).

        Where weights are signed it may be negative; ``clip=True`` gives its positive part,
        renormalised, which is the density that belongs to `cdf` and `ppf`. ``y`` holds one value a
        row, (n_rows,), or several, (n_rows, m), or is one number for all; with ``grid=True`` it is
        a grid (m,) shared by all rows, giving (n_rows, m). For d > 1 outputs points have a last
        axis d (and the clipped density is not renormalised).
        """
        values = super().pdf(y, grid=grid)
        if not clip:
            return values
        mass = self._by_rows(lambda e: e._table[1][:, None])[:, 0] if self.n_outputs == 1 else 1.0
        return (np.maximum(values, 0.0).T / mass).T

    def logpdf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The logarithm of ``pdf(y, clip=True)``, -inf where that is zero; of several outputs that
        are spread by cells also where the density is too small for a number."""
        if self.reading == "atomic" and self._cells is not None and np.all(self.weights >= 0):
            return self._at(self._logpdf_of_cells, y, grid)
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(y, grid=grid, clip=True))

    def mean(self) -> np.ndarray:
        """sum_a w_a eta_a, the same in both readings."""
        return self._from_standard(self.weights @ self.atoms)

    def var(self) -> np.ndarray:
        """The variance of the atoms; the smoothed reading adds the kernel's (infinite for Cauchy),
        and the atomic one of several outputs the cells' own.

        Signed weights can make the variance of the atoms negative; it then counts as zero.
        """
        with np.errstate(over="ignore"):  # units of 1e200, say, have an infinite square
            return np.square(self.std())

    def std(self) -> np.ndarray:
        """The root of `var`, output by output."""
        # About the middle of the atoms: far from zero the two squares would cancel.
        eta = self.atoms - self.atoms.mean(axis=0)
        var = np.maximum(self.weights @ np.square(eta) - np.square(self.weights @ eta), 0.0)
        if self.reading == "smoothed":
            var = var + kernel_class(self.kernel).unit_variance * self.bandwidth**2
        elif self._cells is not None:
            within = np.diagonal(self._cells.covariances, axis1=1, axis2=2)
            var = var + np.maximum(self.weights @ within, 0.0)
        return self._squeeze(np.sqrt(var) * self.scale)

    def mode(self) -> np.ndarray:
        """The y of the highest density: on a fine grid for one output, among the atoms for more
        (read atomically without cells, the heaviest)."""
        points = self.atoms
        if self.n_outputs > 1 and self.reading == "atomic" and self._cells is None:
            return self._from_standard(points[self.weights.argmax(axis=1)])
        if self.n_outputs == 1:
            points = 0.5 * (self._edges[1:] + self._edges[:-1])[:, None]
            if self.reading == "smoothed":
                points = np.concatenate([points, self.atoms])  # a narrow kernel peaks at its atom
        best = self._by_rows(lambda e: e._standard_pdf(points[None]).argmax(axis=1)[:, None])
        return self._from_standard(points[best[:, 0]])

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Independent draws (size, n_rows[, d]) from the distribution of this reading.

        For d > 1 the atomic reading draws atoms and, where these have a spread, goes off them by
        it: draws of the joint distribution, the dependence between outputs included.
        """
        rng = check_random_state(random_state)
        uniform = rng.uniform(size=(self.n_rows, checked_size(size)))
        if self.n_outputs == 1:
            z = self._by_rows(lambda e, u: e._table[0].inverse(u), uniform)[..., None]
        else:
            chosen = self._by_rows(lambda e, u: choose(e.weights, u), uniform)
            z = self.atoms[chosen]
            if self.reading == "smoothed":
                z = z + self._kernel("ppf", rng.uniform(1e-12, 1.0, z.shape))
            elif self._cells is not None:
                z = self._cells.carry(chosen, rng.normal(size=z.shape))
        return np.moveaxis(self._from_standard(z), 1, 0)

    def crps(self, y: ArrayLike) -> np.ndarray:
        """The integral of (F(t) - 1{t >= y})^2 dt, with F this reading's `cdf`; one ``y`` a row."""
        z = (self._one_y_a_row(y)[:, None] - self.location) / self.scale
        scores = self._by_rows(lambda e, v: e._table[0].crps(v[:, 0])[:, None], z)
        return (scores * self.scale)[:, 0]

    # --- the Hilbert space ------------------------------------------------------------------

    def expect(self, f: Callable[[np.ndarray], ArrayLike]) -> np.ndarray:
        """<f, mu> = sum_a w_a f(eta_a): the expectation of f under the atomic measure.

        ``f`` is called with all atoms of a row, (m,) or (m, d), and gives a number for each.
        """
        if len(self.location) == len(self.scale) == 1:
            return self.weights @ np.asarray(f(self._from_standard(self.atoms)), np.float64)
        return np.concatenate([np.empty(0), *(self[i].expect(f) for i in range(self.n_rows))])

    def inner(self, other: Embedding) -> np.ndarray:
        """<mu, nu>, row by row; a batch of one row goes with every row. The kernels must agree."""
        if len(self) == 1 != len(other):
            return other.inner(self)
        if len(other) not in (1, len(self)):
            raise NkcmeError(f"cannot pair {len(self)} rows with {len(other)}")
        self._need_same_kernel(other)
        shift, stretch = (other.location - self.location) / self.scale, other.scale / self.scale
        volume = np.broadcast_to(np.prod(self.scale, axis=1), self.n_rows)
        if len(shift) == len(stretch) == 1:
            gram = self._kernel(
                "value", self.atoms[:, None] - (shift + stretch * other.atoms)[None]
            )
            return np.sum((self.weights @ gram) * other.weights, axis=1) / volume
        pairs = ((self[i], other[i if len(other) > 1 else 0]) for i in range(self.n_rows))
        return np.concatenate([np.empty(0), *(a.inner(b) for a, b in pairs)])

    def mmd(self, other: Embedding) -> np.ndarray:
        """||mu - nu||, the maximum mean discrepancy, row by row."""
        cross = self.inner(other)  # first, for it sees whether the two can be compared
        square = self.inner(self) + other.inner(other) - 2.0 * cross
        return np.sqrt(np.maximum(square, 0.0))

    def witness(self, other: Embedding, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """mu(y) - nu(y), positive where the first has more mass; ``y`` as in `pdf`. A batch of one
        row goes with every row."""
        self._need_same_kernel(other)
        if len(other) == 1:
            other = other[np.zeros(len(self), int)]
        ours = self.read("smoothed").pdf(y, grid=grid)
        return ours - other.read("smoothed").pdf(y, grid=grid)

    def herd(
        self, size: int, *, candidates: ArrayLike | int = 1000, max_memory: int = MAX_MEMORY
    ) -> np.ndarray:
        """``size`` super-samples a row by kernel herding, draws first: (size, n_rows[, d]).

        Deterministic, and samples of the atomic measure (the paper's way to sample). Candidates are
        so many even points between the outermost atoms, or the points given, (m,) or (m, d), in
        standard units; for d > 1 the atoms themselves unless points are given. Beyond the result,
        memory stays below ``max_memory`` bytes.
        """
        if size < 0:
            raise NkcmeError(f"the number of super-samples must not be negative; got {size}")
        if not isinstance(candidates, int | np.integer):
            points = np.asarray(candidates, np.float64).reshape(-1, self.n_outputs)
        elif self.n_outputs == 1:
            points = np.linspace(self.atoms[0], self.atoms[-1], max(int(candidates), 1))
        else:
            points = self.atoms
        cross = self._kernel("value", self.atoms[:, None] - points[None])
        gram = self._kernel("value", points[:, None] - points[None])
        picks = herding.herd(self.weights, cross, gram, size, max_memory)
        return self._squeeze(self.location + self.scale * points[picks])

    # --- the mathematics, in standard units: points (n_rows or 1, m, d) -> (n_rows, m) -----------

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        volume = np.prod(self.scale, axis=1)[:, None]
        return self._by_points(lambda e, z: e._standard_pdf(z), y) / volume

    def _logpdf_of_cells(self, y: np.ndarray) -> np.ndarray:
        def at(e: Embedding, z: np.ndarray) -> np.ndarray:
            assert e._cells is not None
            return logsumexp(e._cells.logpdf(z), axis=2, b=np.asarray(e.weights)[:, None])

        # Weights differ by row, so that points shared by all rows are laid out for each.
        points = np.broadcast_to(y, (self.n_rows, *y.shape[1:]))
        return self._by_points(at, points) - np.sum(np.log(self.scale), axis=1)[:, None]

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        through_cells = self.reading == "atomic" and self._cells is not None
        more = 2 * N_POINTS if through_cells else 1
        return self._by_points(lambda e, z: e._standard_cdf(z), y, more=more)

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        width = len(q) * (4 * self.n_atoms if self.reading == "smoothed" else 4)
        z = self._by_rows(lambda e: e._standard_ppf(q), width=width)
        return self._from_standard(z[..., None])

    def _standard_pdf(self, z: np.ndarray) -> np.ndarray:
        if self.reading == "smoothed":
            return self._through_kernel("value", z)
        if self._cells is not None:
            return self._mixed(np.exp(self._cells.logpdf(z)))
        if self.n_outputs > 1:
            raise NkcmeError(
                "atoms of several outputs without a spread have no density either; "
                "use .read('smoothed')"
            )
        edges, points = self._edges, z[..., 0]
        cell = np.clip(np.searchsorted(edges, points, "right") - 1, 0, len(edges) - 2)
        cell = np.broadcast_to(cell, (self.n_rows, points.shape[1]))
        density = np.take_along_axis(self._cell_masses / np.diff(edges), cell, axis=1)
        return np.where((points >= edges[0]) & (points <= edges[-1]), density, 0.0)

    def _standard_cdf(self, z: np.ndarray) -> np.ndarray:
        if self.n_outputs > 1:
            if self.reading == "smoothed":
                return self._through_kernel("cdf", z)
            if self._cells is not None:
                return self._mixed(self._cells.cdf(z))
            below = np.all(self.atoms <= z[:, :, None, :], axis=-1)
            return self._mixed(below.astype(np.float64))
        tabulated = self._table[0].at(z[..., 0])
        if self.reading == "atomic":
            return tabulated
        exact = np.clip(self._through_kernel("cdf", z), 0.0, 1.0)
        return np.where(self._is_mixture, exact, tabulated)

    def _standard_ppf(self, q: np.ndarray) -> np.ndarray:
        table = self._table[0]
        z = table.inverse(q[None])
        if self.reading == "atomic" or not self._is_mixture.any():
            return z
        # Exact where the CDF is a mixture's: Newton's steps within the table's bracket (a cell to
        # either side, for rounding), which shrinks, and is halved where a step would leave it.
        last = len(table.edges) - 1
        j = np.searchsorted(table.edges, z, "right") - 1
        low, high = table.edges[np.maximum(j - 1, 0)], table.edges[np.minimum(j + 2, last)]
        tolerance = 1e-15 + 1e-9 * np.minimum(q, 1.0 - q)
        for _ in range(100):
            error = self._through_kernel("cdf", z[..., None]) - q
            active = self._is_mixture & (np.abs(error) > tolerance) & (low < high)
            if not active.any():
                break
            low, high = np.where(error < 0, z, low), np.where(error > 0, z, high)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = z - error / self._through_kernel("value", z[..., None])
            inside = (newton > low) & (newton < high)
            new = np.where(inside, newton, 0.5 * (low + high))
            z, before = np.where(active, new, z), z
            if np.array_equal(z, before):
                break
        order = np.argsort(q)
        z[:, order] = np.maximum.accumulate(z[:, order], axis=1)  # whatever rounding did
        return z

    @property
    def _is_mixture(self) -> np.ndarray:
        """Whether a row (n_rows, 1) is a distribution as it stands, with nothing to clip."""
        w = self.weights
        return np.all(w >= 0, axis=1)[:, None] & (np.abs(w.sum(axis=1) - 1.0) < 1e-5)[:, None]

    @cached_property
    def _cells(self) -> NormalCells | None:
        """The laws by which the atomic reading of several outputs spreads its atoms."""
        if self.n_outputs == 1 or self.spread is None or not np.any(self.spread):
            return None
        return NormalCells(self.atoms, np.asarray(self.spread, np.float64))

    @cached_property
    def _edges(self) -> np.ndarray:
        """Where the CDF of this reading is tabulated."""
        eta = self.atoms[:, 0]
        if self.reading == "atomic":
            eta = eta[self._cell_starts]
            if len(eta) == 1:
                return eta + 0.5 * self.bandwidth * np.array([-1.0, 1.0])
            middle = 0.5 * (eta[1:] + eta[:-1])
            return np.concatenate([[2 * eta[0] - middle[0]], middle, [2 * eta[-1] - middle[-1]]])
        spread = eta[-1] - eta[0]
        n = int(np.clip(8 * spread / self.bandwidth, 2, 4000))
        tail = self._kernel("ppf", _TAILS)
        return np.concatenate(
            [eta[0] + tail[::-1], np.linspace(eta[0], eta[-1], n), eta[-1] - tail]
        )

    @cached_property
    def _cell_starts(self) -> np.ndarray:
        """The first atom of each cell of the atomic reading: (all but) equal atoms share one."""
        eta = self.atoms[:, 0]
        room = max(1e-9 * (eta[-1] - eta[0]), 1e-15 * np.max(np.abs(eta)))
        return np.flatnonzero(np.diff(eta, prepend=-np.inf) > room)

    @property
    def _cell_masses(self) -> np.ndarray:
        weights = np.asarray(self.weights, np.float64)
        if len(self._cell_starts) == self.n_atoms:
            return weights
        return np.add.reduceat(weights, self._cell_starts, axis=1)

    @cached_property
    def _table(self) -> tuple[CdfTable, np.ndarray]:
        """The monotone CDF, and the positive mass it was normalised by."""
        edges = self._edges
        if self.reading == "atomic":
            return CdfTable.from_masses(edges, self._cell_masses)
        raw = self._through_kernel("cdf", edges[None, :, None])
        return CdfTable.from_masses(edges, np.diff(raw, axis=1))

    def _through_kernel(self, what: str, z: np.ndarray) -> np.ndarray:
        """sum_a w_a f(z - eta_a) for f a method of the kernel."""
        return self._mixed(self._kernel(what, z[:, :, None, :] - self.atoms))

    def _mixed(self, values: np.ndarray) -> np.ndarray:
        """sum_a w_a v_a for values (n_rows or 1, m, n_atoms)."""
        if len(values) == 1:
            return self.weights @ values[0].T
        return np.einsum("na,nma->nm", self.weights, values)

    def _kernel(self, method: str, argument: np.ndarray) -> np.ndarray:
        """A method of the kernel in double precision."""
        with jax.enable_x64(True):
            return np.asarray(_evaluate(self.kernel, method, float(self.bandwidth), argument))

    def _need_same_kernel(self, other: Embedding) -> None:
        ours, theirs = self.bandwidth * self.scale, other.bandwidth * other.scale
        same = self.kernel == other.kernel and self.n_outputs == other.n_outputs
        if not (same and np.allclose(ours, theirs, rtol=1e-6, atol=0)):
            raise NkcmeError(
                f"only embeddings in one Hilbert space can be compared: {self.kernel} of bandwidth "
                f"{ours.ravel()[0]:.6g} against {other.kernel} of {theirs.ravel()[0]:.6g}"
            )

    # --- memory ------------------------------------------------------------------------------

    def _by_points(
        self, f: Callable[[Embedding, np.ndarray], np.ndarray], y: np.ndarray, more: int = 1
    ) -> np.ndarray:
        """f at points (n_rows or 1, m, d) of y, of which each needs ``more`` numbers an atom and
        output."""
        wide = more * self.n_atoms * self.n_outputs

        def at(points: np.ndarray) -> np.ndarray:
            z = self._to_standard(points)
            if len(z) == 1:
                return self._by_rows(lambda e: f(e, z), width=z.shape[1])
            return self._by_rows(f, z, width=z.shape[1] * wide)

        return by_points(at, y, at_once=MAX_MEMORY // (32 * wide))

    def _by_rows(
        self, f: Callable[..., np.ndarray], *arrays: np.ndarray, width: int = 0
    ) -> np.ndarray:
        """f(embedding, *arrays) block of rows by block, each block within `MAX_MEMORY`.

        ``width`` is how many numbers a row needs at once besides its table and its arrays.
        """
        table = len(self._edges) if self.n_outputs == 1 else self.n_atoms
        wide = width + 4 * table + 4 * sum(a[0].size for a in arrays if len(a))
        return self._in_blocks(f, *arrays, at_once=MAX_MEMORY // (8 * wide))


@partial(jax.jit, static_argnums=(0, 1))
def _evaluate(kernel: str, method: str, bandwidth: jax.Array, argument: jax.Array) -> jax.Array:
    """A method of the kernel as one program: a few times faster, and without temporary arrays."""
    return getattr(kernel_class(kernel)(bandwidth), method)(argument)


def summing_to_one(weights: np.ndarray) -> np.ndarray:
    """Each row divided by its sum, as the paper evaluates.

    Should a signed row sum to next to nothing, dividing would blow it up; its positive part is
    taken instead.
    """
    total = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    unusable = ~(total > 0.05)
    if unusable.any():
        positive = np.maximum(weights, 0.0) + 1e-12
        weights = np.where(unusable, positive, weights)
        total = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    return weights / total
