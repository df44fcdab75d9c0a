"""Rows of several batches of distributions in one batch, as those of the folds of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.base import Distribution
from nkcme.distributions.checks import as_rows
from nkcme.errors import NkcmeError


class JoinedDistribution(Distribution):
    """One batch of the rows of several batches, which may be of different kinds.

    Parameters
    ----------
    parts : sequence of Distribution
        Batches of the same number of outputs.
    places : sequence of array_like of int
        For each batch, the place of each of its rows among all rows, which are counted from zero.
        Each place occurs once.

    Raises
    ------
    NkcmeError
        If the places are not those of all rows, or if the numbers of outputs differ.

    Examples
    --------
    >>> from nkcme import Embedding
    >>> from nkcme.distributions.joined import JoinedDistribution
    >>> a = Embedding(atoms=[0.0, 1.0], weights=[[0.5, 0.5]], reading="atomic")
    >>> b = Embedding(atoms=[4.0, 6.0], weights=[[0.5, 0.5]], reading="atomic")
    >>> JoinedDistribution([a, b], [[1], [0]]).mean()
    array([5. , 0.5])
    """

    def __init__(self, parts: Sequence[Distribution], places: Sequence[ArrayLike]):
        self.parts = tuple(parts)
        self.places = tuple(np.asarray(place, np.int64) for place in places)
        if len({part.n_outputs for part in self.parts}) != 1:
            raise NkcmeError("expected at least one batch of distributions, all of as many outputs")
        if [len(place) for place in self.places] != [part.n_rows for part in self.parts]:
            raise NkcmeError("expected one place for each row of each batch of distributions")
        every = np.sort(np.concatenate(self.places))
        if not np.array_equal(every, np.arange(len(every))):
            raise NkcmeError("the places of rows must be all numbers from zero, each once")

    @property
    def n_rows(self) -> int:
        """The number of distributions."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_outputs(self) -> int:
        """The dimension d of y."""
        return self.parts[0].n_outputs

    def __getitem__(self, rows: Any) -> JoinedDistribution:
        chosen = np.arange(self.n_rows)[as_rows(rows)]
        part_of, row_in = np.empty((2, self.n_rows), np.int64)
        for i, place in enumerate(self.places):
            part_of[place], row_in[place] = i, np.arange(len(place))
        # One part stays where no row is chosen, because outputs are counted in it.
        used = np.unique(part_of[chosen]) if len(chosen) else [0]
        places = [np.flatnonzero(part_of[chosen] == i) for i in used]
        parts = [self.parts[i][row_in[chosen[p]]] for i, p in zip(used, places, strict=True)]
        return JoinedDistribution(parts, places)

    def _details(self) -> str:
        return f"in {len(self.parts)} batches, {super()._details()}"

    def smoothed(self) -> JoinedDistribution:
        """The distributions with a smooth density, for drawing curves and for log-likelihoods."""
        return JoinedDistribution([part.smoothed() for part in self.parts], self.places)

    def without_support(self) -> JoinedDistribution:
        """The distributions before they are confined to a support."""
        return JoinedDistribution([part.without_support() for part in self.parts], self.places)

    def _pdf(self, y: np.ndarray) -> np.ndarray:
        return self._at_points(lambda part, points: part._pdf(points), y)

    def _logpdf(self, y: np.ndarray) -> np.ndarray:
        return self._at_points(lambda part, points: part._logpdf(points), y)

    def _cdf(self, y: np.ndarray) -> np.ndarray:
        return self._at_points(lambda part, points: part._cdf(points), y)

    def _pmf(self, y: np.ndarray) -> np.ndarray:
        return self._at_points(lambda part, points: part._pmf(points), y)

    def _point_masses(self) -> tuple[np.ndarray, np.ndarray]:
        values = np.unique(np.concatenate([part._point_masses()[0] for part in self.parts]))
        return values, self.pmf(values, grid=True)

    def sf(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The probability of a value above ``y``, see `Distribution.sf`."""
        self._need_one_output("the survival function")
        return self._at(
            lambda points: self._at_points(lambda part, own: part.sf(own[..., 0]), points), y, grid
        )

    def isf(self, q: ArrayLike) -> np.ndarray:
        """Quantiles at the levels 1 - ``q``, see `Distribution.isf`."""
        return self._together(part.isf(q) for part in self.parts)

    def _ppf(self, q: np.ndarray) -> np.ndarray:
        return self._together(part._ppf(q) for part in self.parts)

    def _mean(self) -> np.ndarray:
        return self._together(part._mean() for part in self.parts)

    def _std(self) -> np.ndarray:
        return self._together(part._std() for part in self.parts)

    def _mode(self) -> np.ndarray:
        return self._together(part._mode() for part in self.parts)

    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        drawn = (np.moveaxis(part._rvs(size, rng), 1, 0) for part in self.parts)
        return np.moveaxis(self._together(drawn), 0, 1)

    def _crps(self, y: np.ndarray) -> np.ndarray:
        pairs = zip(self.parts, self.places, strict=True)
        return self._together(part._crps(y[place]) for part, place in pairs)

    def entropy(self) -> np.ndarray:
        """The entropy of one output, (n_rows,), see `Distribution.entropy`."""
        return self._together(part.entropy() for part in self.parts)

    def _at_points(
        self, function: Callable[[Distribution, np.ndarray], np.ndarray], y: np.ndarray
    ) -> np.ndarray:
        """A function of distributions and points (n_rows or 1, m, d), for all rows."""
        own = (np.broadcast_to(y, (self.n_rows, *y.shape[1:]))[place] for place in self.places)
        return self._together(map(function, self.parts, own))

    def _together(self, values: Iterator[np.ndarray] | map[np.ndarray]) -> np.ndarray:
        """Arrays with the rows of each part as one array with all rows."""
        found = list(values)
        whole = np.empty((self.n_rows, *found[0].shape[1:]), np.result_type(*found))
        for place, own in zip(self.places, found, strict=True):
            whole[place] = own
        return whole
