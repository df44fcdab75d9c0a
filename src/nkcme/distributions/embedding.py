"""The embedding: atoms, weights and a kernel, read as a conditional distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nkcme.distributions.checks import as_rows
from nkcme.distributions.confined_embedding import LAW, SAME_PLACE, ConfinedEmbedding
from nkcme.distributions.elementwise import some
from nkcme.distributions.kernel_values import need_kernel
from nkcme.distributions.readings import (
    READINGS,
    GaussianMixtureReading,
    KernelMixtureReading,
    Measure,
    OneOutputReading,
    PointsReading,
    Reading,
    SeveralOutputsReading,
    SmoothedReading,
)
from nkcme.distributions.spread_atoms import SpreadAtoms
from nkcme.distributions.support import EVERYTHING, Support
from nkcme.distributions.tails import Tails
from nkcme.distributions.transforms import NONE, TRANSFORMS
from nkcme.errors import NkcmeError


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(ConfinedEmbedding):
    """A conditional mean embedding mu = sum_a w_a(x) k(eta_a, .) for a batch of x.

    It has three readings as a distribution:

    - ``"atomic"``: the measure sum_a w_a delta(eta_a), which training brings close to P(y | x). The
      mass of each atom of one output is spread over its bin, from midpoint to midpoint between
      neighbouring atoms, so that its mean is the atom. For several outputs it is spread by the
      Gaussian of the atom's covariance, where covariances are given.
    - ``"smoothed"``: the function mu itself. It is a density because k is one, and it is P(y | x)
      convolved with k.
    - ``"law"``, of one output: the atoms spread over the gaps to their neighbours, around each atom
      as its mean; calibrated; with tails beyond the outermost atoms; on the values that y can take.

    Parameters
    ----------
    atoms : array_like of shape (m,) or (m, d)
        The locations eta_a, in standard units z.
    weights : array_like of shape (n_rows, m)
        The weights of each row, which sum to one. They may be negative.
    kernel : str
        The name of the kernel k, a key of `nkcme.kernels.KERNELS`.
    bandwidth : float
        The bandwidth of k, in standard units.
    location, scale : float or array_like of shape (d,) or (n_rows, d)
        The units: y = location + scale z.
    reading : {"smoothed", "atomic", "law"}
        How the embedding is read as a distribution.
    covariances : array_like of shape (m, d, d) or None
        For several outputs, the covariance of z around each atom. None, or zeros, for the atoms
        alone.
    overlap : float
        For the law, the share of an atom's mass that reaches over the whole gap to its neighbours,
        from 0 to 1; the rest stays in its bin.
    calibration : array_like of shape (k,) or None
        For the law, a calibration map: calibrated probabilities at even levels from 0 to 1.
    tails : Tails or None
        For the law, the tails beyond the outermost bins.
    support : Support
        For the law, the values that y can take.
    added_std : float or array_like of shape (n_rows,)
        For the law, the root of what is added to the variance of each row, around its mean, before
        the law is confined to the support.
    transform : {"none", "log"}
        For the law, what the units are those of: y, or log y. With "log", g(y) = location + scale z
        is the logarithm. Atoms, calibration map, tails and ``added_std`` are in its units (the law
        of y is widened around its median, by the factor that the deviation of log y grows by). The
        law, its quantiles, moments and scores, and the support are in units of y. The Hilbert space
        is that of log y: `inner` and `mmd` compare distributions of log y, `embedding_function` is
        mu at log y, and `embedding_mean` the exponential of the mean of log y.

    Notes
    -----
    Of one output, every method is a view of one law in every reading: `pdf` integrates to one,
    `cdf` is its integral, `ppf` inverts it, and `mean`, `var`, `rvs` and `crps` belong to it too.
    Negative weights take mass away: where that leaves less than none, the law has none, and the
    rest is divided by its sum. A row with negative weights is read smoothed in bins of a sixteenth
    of the bandwidth. `embedding_function` and `embedding_mean` use the weights as they are.

    Of several outputs, `pdf`, `cdf`, `mean` and `var` use signed weights as they are, and `rvs`
    draws in proportion to positive weights. A negative variance counts as zero. The variance of the
    Cauchy kernel is infinite.

    `mode` is searched on a fine grid for one output and among the atoms for several.
    docs/distributions.md has a table of all methods.

    Examples
    --------
    >>> from nkcme import Embedding
    >>> dist = Embedding(atoms=[0.0, 1.0, 2.0], weights=[[0.2, 0.5, 0.3]], reading="atomic")
    >>> dist.mean()
    array([1.1])
    >>> dist.ppf([0.1, 0.5, 0.9]).round(3)
    array([[0.   , 1.1  , 2.167]])
    """

    atoms: np.ndarray
    weights: np.ndarray
    kernel: str = "gaussian"
    bandwidth: float = 1.0
    location: Any = 0.0
    scale: Any = 1.0
    reading: str = "smoothed"
    covariances: np.ndarray | None = None
    overlap: float = 0.0
    calibration: np.ndarray | None = None
    tails: Tails | None = None
    support: Support = EVERYTHING
    added_std: Any = 0.0
    transform: str = NONE

    def __post_init__(self) -> None:
        atoms = np.asarray(self.atoms, np.float64)
        atoms = atoms[:, None] if atoms.ndim == 1 else atoms
        weights = np.asarray(self.weights)
        weights = weights if weights.ndim > 1 else np.atleast_2d(weights)
        if atoms.ndim != 2 or weights.ndim != 2 or weights.shape[1] != len(atoms) or not len(atoms):
            raise NkcmeError(
                f"expected atoms (m, d) and weights (n_rows, m); got {atoms.shape} and "
                f"{weights.shape}"
            )
        if self.reading not in (*READINGS, LAW):
            raise NkcmeError(f"reading must be one of {(*READINGS, LAW)}; got {self.reading!r}")
        if self.reading == LAW and (atoms.shape[1] > 1 or some(weights < 0)):
            raise NkcmeError("a law is read from weights of one output that are not negative")
        if self.transform not in TRANSFORMS:
            raise NkcmeError(f"transform must be one of {TRANSFORMS}; got {self.transform!r}")
        if self.transform != NONE and self.reading != LAW:
            raise NkcmeError(
                f"an embedding of {self.transform} y is read as a law of y; got the reading "
                f'{self.reading!r}: use reading="law"'
            )
        if not self.bandwidth > 0:
            raise NkcmeError(f"the bandwidth must be positive; got {self.bandwidth}")
        need_kernel(self.kernel)
        if atoms.shape[1] == 1 and some(atoms[1:, 0] < atoms[:-1, 0]):
            order = np.argsort(atoms[:, 0], kind="stable")
            atoms, weights = atoms[order], weights[:, order]
        expected = (*atoms.shape, atoms.shape[1])
        if self.covariances is not None and np.shape(self.covariances) != expected:
            raise NkcmeError(
                f"expected one covariance per atom, of shape {expected}; got "
                f"{np.shape(self.covariances)}"
            )
        object.__setattr__(self, "atoms", atoms)
        object.__setattr__(self, "weights", weights)
        added = np.asarray(self.added_std, np.float64)
        if added.shape != (len(weights),):
            added = np.broadcast_to(added, (len(weights),))
        object.__setattr__(self, "added_std", added)
        self._check_units()

    @property
    def n_rows(self) -> int:
        """The number of distributions."""
        return self.weights.shape[0]

    @property
    def n_outputs(self) -> int:
        """The dimension d of y."""
        return self.atoms.shape[1]

    @property
    def n_atoms(self) -> int:
        """The number m of atoms."""
        return self.atoms.shape[0]

    def __getitem__(self, rows: Any) -> Embedding:
        rows = as_rows(rows)
        chosen = {"weights": self.weights[rows], "added_std": self.added_std[rows]}
        return replace(self, **chosen, **self._units_of(rows))

    def _details(self) -> str:
        return (
            f"{self.n_atoms} atoms, {super()._details()}, "
            f"{self.kernel} kernel of bandwidth {self.bandwidth:.4g}, {self.reading} reading"
            + (f" of {self.transform} y" if self.transform != NONE else "")
            + (f" on {self.support}" if self._has_law and not self.support.is_everything else "")
        )

    def read(self, reading: str) -> Embedding:
        """The same embedding in another reading.

        Parameters
        ----------
        reading : {"atomic", "smoothed", "law"}

        Returns
        -------
        Embedding
        """
        return replace(self, reading=reading)

    def smoothed(self) -> Embedding:
        """The embedding in the smoothed reading; the atomic density of one output is a histogram.

        A law is returned as it is: it is smooth, and what intervals and scores belong to.

        Returns
        -------
        Embedding
        """
        return self if self._has_law else self.read("smoothed")

    def without_support(self) -> Embedding:
        """The law before it is confined to a support: continuous, over all numbers.

        Returns
        -------
        Embedding
        """
        return replace(self, support=EVERYTHING)

    # --- in blocks of rows and points -------------------------------------------------------------

    @property
    def _measure(self) -> Measure:
        return Measure(self.atoms, self.weights, self.kernel, self.bandwidth)

    @cached_property
    def _reader(self) -> Reading:
        """The reading in standard units."""
        measure = self._measure
        atomic = self.reading == "atomic"
        if self.n_outputs == 1:
            if self.reading == LAW:
                return SpreadAtoms(measure, self.overlap, self._atoms_on_bounds)
            return SpreadAtoms(measure) if atomic else SmoothedReading(measure)
        if not atomic:
            return KernelMixtureReading(measure)
        if self.covariances is None or not np.any(self.covariances):
            return PointsReading(measure)
        return GaussianMixtureReading(measure, self.covariances)

    @property
    def _one_output(self) -> OneOutputReading:
        assert isinstance(self._reader, OneOutputReading)
        return self._reader

    @property
    def _several_outputs(self) -> SeveralOutputsReading:
        assert isinstance(self._reader, SeveralOutputsReading)
        return self._reader

    @property
    def _atoms_on_bounds(self) -> list[int]:
        """The atoms at bounds that y reaches with positive probability, where atoms do not move."""
        if not self.support.reached or len(self.location) > 1 or len(self.scale) > 1:
            return []
        nearest = (
            (int(np.abs(distance).argmin()), np.abs(distance).min())
            for bound in self._transformed_bounds
            for distance in [(bound - self.location) / self.scale - self.atoms.T]
        )
        return sorted({atom for atom, distance in nearest if distance < SAME_PLACE})

    def _function(self, y: np.ndarray) -> np.ndarray:
        at_points = self._through(lambda e, z: e._measure.through_kernel("value", z), y)
        return at_points / self._volume()

    def _plain_pdf(self, y: np.ndarray) -> np.ndarray:
        return self._through(lambda e, z: e._reader.pdf(z), y) / self._volume()

    def _volume(self) -> np.ndarray:
        return np.prod(self.scale, axis=1)[:, None]

    def _plain_logpdf(self, y: np.ndarray) -> np.ndarray:
        """The log of the density, for Gaussian components without underflow."""
        if isinstance(self._reader, GaussianMixtureReading) and np.all(self.weights >= 0):
            # Weights differ by row, so that shared points are repeated for each.
            points = np.broadcast_to(y, (self.n_rows, *y.shape[1:]))
            return self._through(lambda e, z: e._reader.logpdf(z), points) - self._log_volume()
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(self._plain_pdf(y), 0.0))

    def _plain_cdf(self, y: np.ndarray) -> np.ndarray:
        return self._through(lambda e, z: e._reader.cdf(z), y, self._reader.cdf_numbers)

    def _standard_ppf(self, q: np.ndarray) -> np.ndarray:
        numbers = len(q) * (4 * self.n_atoms if self.reading == "smoothed" else 4)
        return self._by_rows(lambda e: e._one_output.ppf(q), numbers=numbers)

    def _standard_mean(self) -> np.ndarray:
        if self.n_outputs == 1:
            return self._by_rows(lambda e: e._one_output.moments())[:, :1]
        return self.weights @ self.atoms

    def _standard_std(self) -> np.ndarray:
        if self.n_outputs == 1:
            return self._by_rows(lambda e: e._one_output.moments())[:, 1:]
        # Around the middle of the atoms: far from zero the two squares would cancel.
        eta = self.atoms - self.atoms.mean(axis=0)
        var = np.maximum(self.weights @ np.square(eta) - np.square(self.weights @ eta), 0.0)
        return np.sqrt(var + self._several_outputs.added_variance)

    def _standard_mode(self) -> np.ndarray:
        best = self._by_rows(lambda e: e._reader.mode_index())
        return self._reader.mode_candidates[best]

    def _standard_rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        if self.n_outputs == 1:
            uniform = rng.uniform(size=(self.n_rows, size, 2))
            return self._by_rows(lambda e, u: e._one_output.rvs(u), uniform)[..., None]
        uniform = rng.uniform(size=(self.n_rows, size))
        chosen = self._by_rows(lambda e, u: e._several_outputs.choose(u), uniform)
        return self._several_outputs.rvs(chosen, rng)

    def _standard_crps(self, z: np.ndarray) -> np.ndarray:
        return self._by_rows(lambda e, v: e._one_output.table.crps(v), z)

    def _through(self, f: Any, y: np.ndarray, numbers: int = 1) -> np.ndarray:
        """f(embedding, z) at points y; each needs ``numbers`` numbers per atom and output."""
        return self._map_points(
            f,
            y,
            numbers_per_point=4 * numbers * self.n_atoms * self.n_outputs,
            numbers_per_shared_point=1,
            numbers_per_row=4 * self._reader.table_size,
        )

    def _by_rows(self, f: Any, *arrays: np.ndarray, numbers: int = 0) -> np.ndarray:
        """f(embedding, *arrays); a row needs ``numbers`` numbers besides its table and arrays."""
        own = sum(a[0].size for a in arrays if len(a))
        total = numbers + 4 * self._reader.table_size + 4 * own
        return self._map_rows(f, *arrays, numbers_per_row=total)


def summing_to_one(weights: np.ndarray) -> np.ndarray:
    """Weights (n_rows, m) divided by their sums, as the paper evaluates them.

    A signed row with a sum close to zero would blow up; its positive part is used instead.
    """
    total = np.add.reduce(weights, axis=1, keepdims=True, dtype=np.float64)
    unusable = ~(total > 0.05)
    if some(unusable):
        positive = np.maximum(weights, 0.0) + 1e-12
        weights = np.where(unusable, positive, weights)
        total = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    return weights / total
