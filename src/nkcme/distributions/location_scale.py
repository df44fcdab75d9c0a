"""Distributions computed in standard units z, with y = location + scale z."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.distributions.blocks import count_that_fits, map_points, map_rows
from nkcme.distributions.elementwise import every
from nkcme.errors import NkcmeError


class LocationScale(Distribution):
    """A batch of distributions of z, moved and scaled to y row by row."""

    location: Any  # a number, or an array (d,) or (n_rows, d); after checks (1 or n_rows, d)
    scale: Any

    def _check_units(self) -> None:
        """Check ``location`` and ``scale`` and bring them to the shape (1 or n_rows, d)."""
        n, d = self.n_rows, self.n_outputs
        for name in ("location", "scale"):
            units = np.asarray(getattr(self, name), np.float64)
            units = units if units.ndim > 1 else np.atleast_2d(units)
            if units.ndim != 2 or len(units) not in (1, n) or units.shape[1] not in (1, d):
                raise NkcmeError(
                    f"{name} must be a number or an array ({d},) or ({n}, {d}); got shape "
                    f"{np.shape(getattr(self, name))}"
                )
            if units.shape[1] != d:
                units = np.broadcast_to(units, (len(units), d))
            object.__setattr__(self, name, units)
        if not every(self.scale > 0):
            raise NkcmeError(f"the scale must be positive; got {np.min(self.scale)}")

    def _units_of(self, rows: Any) -> dict[str, Any]:
        """Location and scale of the selected rows."""
        units = {"location": self.location, "scale": self.scale}
        return {name: u[rows] if len(u) > 1 else u for name, u in units.items()}

    def _to_standard(self, y: np.ndarray) -> np.ndarray:
        """z at points y of shape (n_rows or 1, m, d)."""
        with np.errstate(over="ignore"):  # y may be infinitely far away in units of z
            return (y - self.location[:, None]) / self.scale[:, None]

    def _from_standard(self, z: np.ndarray) -> np.ndarray:
        """y at z of shape (n_rows or 1, d) or (n_rows, m, d)."""
        units = (slice(None), None) if z.ndim == 3 else (slice(None),)
        return self.location[units] + self.scale[units] * z

    # In units of y.

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        return self._from_standard(self._standard_ppf(q)[..., None])[..., 0]

    def _mean(self) -> np.ndarray:
        return self._from_standard(self._standard_mean())

    def _std(self) -> np.ndarray:
        return self._standard_std() * self.scale

    def _mode(self) -> np.ndarray:
        return self._from_standard(self._standard_mode())

    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        return np.moveaxis(self._from_standard(self._standard_rvs(size, rng)), 1, 0)

    def _crps(self, y: np.ndarray) -> np.ndarray:
        z = self._to_standard(y[:, None, None])[:, 0, 0]
        return self._standard_crps(z) * self.scale[:, 0]

    # In units of z, for a subclass to implement.

    @abstractmethod
    def _standard_ppf(self, q: np.ndarray) -> np.ndarray:
        """Quantiles of one output at levels (k,): (n_rows, k)."""

    @abstractmethod
    def _standard_mean(self) -> np.ndarray:
        """(n_rows, d)."""

    @abstractmethod
    def _standard_std(self) -> np.ndarray:
        """(n_rows, d)."""

    @abstractmethod
    def _standard_mode(self) -> np.ndarray:
        """(n_rows, d)."""

    @abstractmethod
    def _standard_rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        """Samples (n_rows, size, d)."""

    @abstractmethod
    def _standard_crps(self, z: np.ndarray) -> np.ndarray:
        """The score of one output at z (n_rows,): (n_rows,)."""

    # Blocks of rows and points.

    def _log_volume(self) -> np.ndarray:
        """The logarithm of a unit volume of z in units of y, (1 or n_rows, 1)."""
        return np.sum(np.log(self.scale), axis=1)[:, None]

    def _map_rows(
        self, f: Callable[..., np.ndarray], *arrays: np.ndarray, numbers_per_row: int
    ) -> np.ndarray:
        """f(distribution, *arrays), in blocks of as many rows as fit into memory."""
        block_rows = count_that_fits(numbers_per_row)
        return map_rows(f, self, *arrays, block_rows=block_rows)

    def _map_points(
        self,
        f: Callable[[Any, np.ndarray], np.ndarray],
        y: np.ndarray,
        *,
        numbers_per_point: int,
        numbers_per_shared_point: int | None = None,
        numbers_per_row: int = 0,
    ) -> np.ndarray:
        """f(distribution, z) at points y (n_rows or 1, m, d), in blocks of points and rows.

        A point needs ``numbers_per_point`` numbers for each row, or ``numbers_per_shared_point``
        where all rows share the points; a row needs ``numbers_per_row`` in addition.
        """
        shared = numbers_per_shared_point or numbers_per_point

        def at(points: np.ndarray) -> np.ndarray:
            z = self._to_standard(points)
            if len(z) == 1:
                numbers = shared * z.shape[1] + numbers_per_row
                return self._map_rows(lambda dist: f(dist, z), numbers_per_row=numbers)
            numbers = numbers_per_point * z.shape[1] + numbers_per_row
            return self._map_rows(f, z, numbers_per_row=numbers)

        return map_points(at, y, block_points=count_that_fits(numbers_per_point))
