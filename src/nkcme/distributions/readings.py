"""The readings of an embedding as a distribution, in standard units.

A reading of one output has a table of its CDF, of which every method is a view. `spread_atoms`
spreads the mass of each atom over the gaps beside it. The smoothed reading is the mixture of
kernels: of rows that are a mixture, without negative weights, it is exact and its table an
approximation. Signed weights have negative masses in the table, which count as zero: the law of
such a row is the table itself.

A reading of several outputs is a mixture with one component per atom: the atom itself, the kernel,
or the Gaussian of the atom's covariance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nkcme.distributions.atom_covariances import N_QUADRATURE_POINTS, GaussianComponents
from nkcme.distributions.kernel_values import evaluate, unit_variance
from nkcme.distributions.piecewise import CdfTable, choose
from nkcme.distributions.root_finding import bracketed_newton
from nkcme.distributions.special_functions import logsumexp
from nkcme.errors import NkcmeError

#: The readings of any weights; see `Embedding` for the law.
READINGS = ("atomic", "smoothed")

# Tail probabilities at which a smoothed CDF is tabulated beyond the outermost atoms. Even steps in
# their root make the error of interpolation even for every kernel; further out even ratios do.
_TAILS = np.concatenate(
    [np.square(np.linspace(np.sqrt(0.5), np.sqrt(1e-3), 61)[1:]), np.geomspace(1e-3, 1e-12, 61)[1:]]
)


# Edges between the outermost atoms. With 16 the score of a mixture has a relative error below 1e-3.
_EDGES_PER_BANDWIDTH = 16


class Measure(NamedTuple):
    """What a reading reads: weights (n_rows, m) on atoms (m, d), and a kernel."""

    atoms: np.ndarray
    weights: np.ndarray
    kernel: str
    bandwidth: float

    def evaluate_kernel(self, method: str, argument: np.ndarray) -> np.ndarray:
        """A method of the kernel at ``argument``, in double precision."""
        return evaluate(self.kernel, method, self.bandwidth, argument)

    def through_kernel(self, method: str, z: np.ndarray) -> np.ndarray:
        """sum_a w_a f(z - eta_a) at points (n_rows or 1, m, d), for f a method of the kernel."""
        return self.mixed(self.evaluate_kernel(method, z[:, :, None, :] - self.atoms))

    def mixed(self, values: np.ndarray) -> np.ndarray:
        """sum_a w_a v_a for values (n_rows or 1, m, n_atoms)."""
        if len(values) == 1:
            return self.weights @ values[0].T
        return np.einsum("na,nma->nm", self.weights, values)

    def kernel_variance(self) -> float:
        """The variance of the kernel."""
        return unit_variance(self.kernel) * self.bandwidth**2


class Reading(ABC):
    """A batch of distributions of z; points are (n_rows or 1, m, d)."""

    #: Numbers that one point needs for each atom and output while its CDF is computed.
    cdf_numbers = 1

    def __init__(self, measure: Measure):
        self.measure = measure

    @property
    def table_size(self) -> int:
        """Numbers that one row needs besides its points."""
        return len(self.measure.atoms)

    @property
    def mode_candidates(self) -> np.ndarray:
        """The points (m, d) among which the mode is searched."""
        return self.measure.atoms

    def mode_index(self) -> np.ndarray:
        """The candidate of the highest density of each row, (n_rows,)."""
        return self.pdf(self.mode_candidates[None]).argmax(axis=1)

    @abstractmethod
    def pdf(self, z: np.ndarray) -> np.ndarray:
        """The density (n_rows, m) at points."""

    @abstractmethod
    def cdf(self, z: np.ndarray) -> np.ndarray:
        """The CDF (n_rows, m) at points."""


class OneOutputReading(Reading):
    """A reading of one output; its CDF is tabulated at `edges`."""

    @property
    @abstractmethod
    def edges(self) -> np.ndarray:
        """The points (g,) at which the CDF is tabulated."""

    @property
    @abstractmethod
    def masses(self) -> np.ndarray:
        """The masses (n_rows, g - 1) between edges; signed weights make some negative."""

    @property
    def table_size(self) -> int:
        return len(self.edges)

    @cached_property
    def table(self) -> CdfTable:
        """The monotone CDF of each row."""
        return CdfTable.from_masses(self.edges, self.masses)

    def pdf(self, z: np.ndarray) -> np.ndarray:
        return self.table.density(z[..., 0])

    def cdf(self, z: np.ndarray) -> np.ndarray:
        return self.table.at(z[..., 0])

    def ppf(self, q: np.ndarray) -> np.ndarray:
        """Quantiles (n_rows, k) at levels (k,)."""
        return self.table.inverse(q[None])

    def moments(self) -> np.ndarray:
        """Means and standard deviations, (n_rows, 2)."""
        return self.table.moments()

    def rvs(self, uniform: np.ndarray) -> np.ndarray:
        """Samples (n_rows, size) for uniform numbers (n_rows, size, 2)."""
        return self.table.inverse(uniform[..., 0])


class SmoothedReading(OneOutputReading):
    """The mixture of kernels mu(z) = sum_a w_a k(eta_a, z)."""

    @cached_property
    def edges(self) -> np.ndarray:
        eta, bandwidth = self.measure.atoms[:, 0], self.measure.bandwidth
        n = int(np.clip(_EDGES_PER_BANDWIDTH * (eta[-1] - eta[0]) / bandwidth, 2, 4000))
        tail = self.measure.evaluate_kernel("ppf", _TAILS)
        return np.concatenate(
            [eta[0] + tail[::-1], np.linspace(eta[0], eta[-1], n), eta[-1] - tail]
        )

    @property
    def masses(self) -> np.ndarray:
        return np.diff(self.measure.through_kernel("cdf", self.edges[None, :, None]), axis=1)

    @property
    def mode_candidates(self) -> np.ndarray:
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])[:, None]
        return np.concatenate([middle, self.measure.atoms])  # a narrow kernel peaks at its atom

    @property
    def _is_mixture(self) -> np.ndarray:
        """Whether a row (n_rows, 1) is a distribution without clipping."""
        w = self.measure.weights
        return np.all(w >= 0, axis=1)[:, None] & (np.abs(w.sum(axis=1) - 1.0) < 1e-5)[:, None]

    def pdf(self, z: np.ndarray) -> np.ndarray:
        return self._where_mixture(lambda: self.measure.through_kernel("value", z), super().pdf, z)

    def cdf(self, z: np.ndarray) -> np.ndarray:
        return self._where_mixture(
            lambda: np.clip(self.measure.through_kernel("cdf", z), 0.0, 1.0), super().cdf, z
        )

    def moments(self) -> np.ndarray:
        # Around the middle of the atoms: far from zero the two squares would cancel.
        eta, weights = self.measure.atoms[:, 0], self.measure.weights
        middle = eta.mean()
        first = weights @ (eta - middle)
        var = np.maximum(weights @ np.square(eta - middle) - np.square(first), 0.0)
        added = self.measure.kernel_variance()
        exact = np.stack([middle + first, np.sqrt(var + added)], axis=1)
        if np.isinf(added):  # of a kernel without moments the table is only a part
            return exact
        return self._where_mixture(lambda: exact, super().moments)

    def rvs(self, uniform: np.ndarray) -> np.ndarray:
        def around_atoms() -> np.ndarray:
            atoms = self.measure.atoms[choose(self.measure.weights, uniform[..., 0]), 0]
            level = np.maximum(uniform[..., 1], 1e-12)
            return atoms + self.measure.evaluate_kernel("ppf", level)

        return self._where_mixture(around_atoms, super().rvs, uniform)

    def _where_mixture(
        self, exact: Callable[[], np.ndarray], tabulated: Callable[..., np.ndarray], *of: np.ndarray
    ) -> np.ndarray:
        """What is exact in rows that are a mixture; of other rows what belongs to their table."""
        if self._is_mixture.all():
            return exact()
        return np.where(self._is_mixture, exact(), tabulated(*of))

    def ppf(self, q: np.ndarray) -> np.ndarray:
        """From the table; exact where the CDF is that of a mixture."""
        edges, z = self.table.edges, super().ppf(q)
        if not self._is_mixture.any():
            return z

        def evaluate_at(z: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            # All elements, for one compiled program: its shapes must not change from step to step.
            error = self.measure.through_kernel("cdf", z[..., None]) - q
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                return error, z - error / self.measure.through_kernel("value", z[..., None])

        # The table's bin, and one to either side for its rounding, is a bracket.
        j = np.searchsorted(edges, z, "right") - 1
        return bracketed_newton(
            evaluate_at,
            z,
            edges[np.maximum(j - 1, 0)],
            edges[np.minimum(j + 2, len(edges) - 1)],
            tolerance=1e-15 + 1e-9 * np.minimum(q, 1.0 - q),
            active=self._is_mixture,
            bisect_every=10,  # the start is good: Newton's method takes two or three steps
            max_steps=100,
        )


class SeveralOutputsReading(Reading):
    """A mixture with one component per atom, each with the weight of its atom."""

    @property
    def added_variance(self) -> np.ndarray | float:
        """The variance that the reading adds to that of the atoms, () or (n_rows, d)."""
        return 0.0

    def choose(self, uniform: np.ndarray) -> np.ndarray:
        """Atoms (n_rows, size) drawn in proportion to their positive weights."""
        return choose(self.measure.weights, uniform)

    @abstractmethod
    def rvs(self, chosen: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Samples (n_rows, size, d) of the components of the chosen atoms."""


class PointsReading(SeveralOutputsReading):
    """The atoms themselves, which have no density."""

    def mode_index(self) -> np.ndarray:
        return self.measure.weights.argmax(axis=1)

    def pdf(self, z: np.ndarray) -> np.ndarray:
        raise NkcmeError(
            "atoms of several outputs without covariances have no density; use .read('smoothed')"
        )

    def cdf(self, z: np.ndarray) -> np.ndarray:
        below = np.all(self.measure.atoms <= z[:, :, None, :], axis=-1)
        return self.measure.mixed(below.astype(np.float64))

    def rvs(self, chosen: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        return self.measure.atoms[chosen]


class KernelMixtureReading(SeveralOutputsReading):
    """The product kernel at each atom."""

    @property
    def added_variance(self) -> float:
        return self.measure.kernel_variance()

    def pdf(self, z: np.ndarray) -> np.ndarray:
        return self.measure.through_kernel("value", z)

    def cdf(self, z: np.ndarray) -> np.ndarray:
        return self.measure.through_kernel("cdf", z)

    def rvs(self, chosen: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        z = self.measure.atoms[chosen]
        return z + self.measure.evaluate_kernel("ppf", rng.uniform(1e-12, 1.0, z.shape))


class GaussianMixtureReading(SeveralOutputsReading):
    """The Gaussian of each atom's covariance."""

    cdf_numbers = 2 * N_QUADRATURE_POINTS

    def __init__(self, measure: Measure, covariances: np.ndarray):
        super().__init__(measure)
        self.components = GaussianComponents(measure.atoms, np.asarray(covariances, np.float64))

    @property
    def added_variance(self) -> np.ndarray:
        within = np.diagonal(self.components.covariances, axis1=1, axis2=2)
        return np.maximum(self.measure.weights @ within, 0.0)

    def pdf(self, z: np.ndarray) -> np.ndarray:
        return self.measure.mixed(np.exp(self.components.logpdf(z)))

    def logpdf(self, z: np.ndarray) -> np.ndarray:
        """The log density (n_rows, m) at points (n_rows, m, d), for weights that are not signed."""
        weights = np.asarray(self.measure.weights)[:, None]
        return logsumexp(self.components.logpdf(z), weights)

    def cdf(self, z: np.ndarray) -> np.ndarray:
        return self.measure.mixed(self.components.cdf(z))

    def rvs(self, chosen: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        noise = rng.normal(size=(*chosen.shape, self.measure.atoms.shape[1]))
        return self.components.transform(chosen, noise)
