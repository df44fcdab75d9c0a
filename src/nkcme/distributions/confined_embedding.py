"""Embeddings that are read as a law: calibrated, with tails, on the support of y."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nkcme.distributions.blocks import map_points
from nkcme.distributions.hilbert_space import HilbertSpaceElement
from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.readings import OneOutputReading
from nkcme.distributions.rounded import Rounded
from nkcme.distributions.support import Support
from nkcme.distributions.tails import Tails
from nkcme.distributions.transforms import (
    LOG,
    divided,
    exponential,
    restored,
    stretched,
    transformed,
)
from nkcme.distributions.whole_numbers import WholeNumbers

#: The name of the reading.
LAW = "law"

#: Atoms nearer to a bound than this, in standard units, lie on it.
SAME_PLACE = 1e-5

#: A law is kept between methods up to this size, in numbers of its tables.
_KEPT_NUMBERS = 1 << 18
#: Relative errors of a logarithm and its exponential are below this.
_ROUNDING = 1e-12

#: Points per row whose density or probability is computed together.
_BLOCK_POINTS = 256


class ConfinedEmbedding(HilbertSpaceElement):
    """In the reading "law" every method is a view of one law in units of y.

    Location and scale are units of g(y) for a transform g, and so are the law and everything that
    is done to it but the last step, the support.

    A subclass implements the underscored methods for the other readings.
    """

    reading: str
    calibration: np.ndarray | None
    tails: Tails | None
    support: Support
    added_std: Any  # after checks an array (n_rows,)
    transform: str

    @property
    @abstractmethod
    def _one_output(self) -> OneOutputReading: ...

    @abstractmethod
    def _plain_pdf(self, y: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _plain_logpdf(self, y: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _plain_cdf(self, y: np.ndarray) -> np.ndarray: ...

    @property
    def _has_law(self) -> bool:
        return self.reading == LAW

    def _law(self) -> PiecewiseUniform | Rounded | WholeNumbers:
        """The distribution of each row: calibrated, with its tails, widened, on the support."""
        reader, scale = self._one_output, self.scale
        if len(scale) != self.n_rows:
            scale = np.broadcast_to(scale, (self.n_rows, 1))
        standard, below = reader.edges, reader.table.values
        if self.transform == LOG:
            standard, below = divided(standard, below)
        edges = self.location + scale * standard
        if self.support.reached:
            for bound in self._transformed_bounds:  # atoms are rounded to single precision
                edges = np.where(np.abs(edges - bound) < SAME_PLACE * scale, bound, edges)
        law = PiecewiseUniform(edges, below)
        if self.calibration is not None:
            law = law.calibrated(self.calibration)
        if self.tails is not None:
            lower, upper = (tail.in_units(scale[:, 0]) for tail in self.tails)
            between = 1.0 - self.tails.lower.mass - self.tails.upper.mass
            below = self.tails.lower.mass + between * law.below
            law = PiecewiseUniform(law.edges, below, lower, upper)
        widens = np.count_nonzero(self.added_std) > 0
        if self.transform == LOG:
            of_y = exponential(law)
            law = stretched(of_y, law.stretch(self.added_std)) if widens else of_y
            for bound in self.support.reached:  # the exponential of its logarithm is rounded
                near = np.abs(law.edges - bound) <= _ROUNDING * np.abs(bound)
                law = replace(law, edges=np.where(near, bound, law.edges))
        elif widens:
            law = law.widened(self.added_std)
        return self.support.restrict(law)

    @cached_property
    def _kept_law(self) -> PiecewiseUniform | Rounded | WholeNumbers:
        return self._law()

    @property
    def _transformed_bounds(self) -> np.ndarray:
        """g of the bounds that y reaches."""
        return transformed(np.asarray(self.support.reached, np.float64), self.transform)

    def _to_standard(self, y: np.ndarray) -> np.ndarray:
        return super()._to_standard(transformed(y, self.transform))

    def _from_standard(self, z: np.ndarray) -> np.ndarray:
        return restored(super()._from_standard(z), self.transform)

    def _by_law(self, f: Any, *arrays: np.ndarray) -> np.ndarray:
        """f(law, *arrays), in blocks of rows."""
        if self.n_rows * self._one_output.table_size <= _KEPT_NUMBERS:
            return f(self._kept_law, *arrays)
        own = sum(a[0].size for a in arrays if len(a))
        numbers = 8 * (self._one_output.table_size + 2 * len(self.support.values) + own)
        return self._map_rows(lambda e, *a: f(e._law(), *a), *arrays, numbers_per_row=numbers)

    def _law_at(self, name: str, y: np.ndarray) -> np.ndarray:
        """A method of the law at points y (n_rows or 1, m, 1), in blocks of points and rows."""
        points = np.broadcast_to(y, (self.n_rows, *y.shape[1:]))
        return map_points(
            lambda some: self._by_law(lambda law, own: getattr(law, name)(own), some),
            points,
            block_points=_BLOCK_POINTS,
        )

    # Each of these is a view of the law, or else of another reading.

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return self._law_at("_pdf", y) if self._has_law else self._plain_pdf(y)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._law_at("_logpdf", y) if self._has_law else self._plain_logpdf(y)

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._law_at("_cdf", y) if self._has_law else self._plain_cdf(y)

    def _pmf(self, y: np.ndarray) -> np.ndarray:
        return self._law_at("_pmf", y) if self._has_law else super()._pmf(y)

    def _point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._has_law:
            return super()._point_masses()
        return self._law()._point_masses()

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        return self._by_law(lambda law: law._ppf(q)) if self._has_law else super()._ppf(q)

    def _mean(self) -> np.ndarray:
        return self._by_law(lambda law: law._mean()) if self._has_law else super()._mean()

    def _std(self) -> np.ndarray:
        return self._by_law(lambda law: law._std()) if self._has_law else super()._std()

    def _mode(self) -> np.ndarray:
        return self._by_law(lambda law: law._mode()) if self._has_law else super()._mode()

    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        if not self._has_law:
            return super()._rvs(size, rng)
        uniform = rng.uniform(size=(self.n_rows, size))
        return self._by_law(lambda law, u: law.quantiles(u), uniform).T[..., None]

    def _crps(self, y: np.ndarray) -> np.ndarray:
        return (
            self._by_law(lambda law, own: law._crps(own), y) if self._has_law else super()._crps(y)
        )
