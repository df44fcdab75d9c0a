"""Weighted atoms of one output, each spread around itself so that its mean stays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from nkcme.distributions.readings import Measure, OneOutputReading


class SpreadAtoms(OneOutputReading):
    """Each atom's mass spread over the gaps to its neighbours, so that its mean is the atom.

    With the gaps l and r to the left and right, the share r / (l + r) of the mass lies on the left.
    On either side the share ``overlap`` is spread evenly over the whole gap and the rest over its
    nearer half, the atom's bin. The variance of an atom's mass is then (1/12 + overlap/4) l r.

    Parameters
    ----------
    measure : Measure
    overlap : float
        From 0, where atoms stay in their bins, to 1.
    points : sequence of int
        Atoms that are values of their own: their mass is not spread.
    """

    def __init__(self, measure: Measure, overlap: float = 0.0, points: Sequence[int] = ()):
        super().__init__(measure)
        self.overlap = overlap
        self.points = points

    @cached_property
    def edges(self) -> np.ndarray:
        eta, gaps = self._eta, self._gaps
        edges = np.empty(2 * len(eta) + 1)
        edges[1::2] = eta
        edges[2:-1:2] = 0.5 * (eta[1:] + eta[:-1])
        edges[0], edges[-1] = eta[0] - 0.5 * gaps[0], eta[-1] + 0.5 * gaps[-1]
        if self.overlap:
            edges = np.concatenate([[eta[0] - gaps[0]], edges, [eta[-1] + gaps[-1]]])
        at = self._cells_of_points
        return np.insert(edges, at + 1, edges[at]) if len(at) else edges

    @property
    def masses(self) -> np.ndarray:
        weights = np.asarray(self.measure.weights, np.float64)
        if len(self._first_of_bin) < weights.shape[1]:
            weights = np.add.reduceat(weights, self._first_of_bin, axis=1)
        spread = weights.copy() if len(self.points) else weights
        of_points = [int(np.searchsorted(self._first_of_bin, p, "right")) - 1 for p in self.points]
        spread[:, of_points] = 0.0
        left = self._gaps[1:] / (self._gaps[1:] + self._gaps[:-1])
        near, far = 1.0 - 0.5 * self.overlap, 0.5 * self.overlap
        sides = (spread * left, spread * (1.0 - left))
        # Two halves of each atom's bin, and with overlap one more half gap at either end.
        k, first = len(left), int(self.overlap > 0)
        masses = np.zeros((len(weights), 2 * k + 2 * first))
        for side, mass in enumerate(sides):
            masses[:, first + side : first + side + 2 * k : 2] += near * mass
        if self.overlap:
            masses[:, 0 : 2 * k : 2] += far * sides[0]
            masses[:, 3 : 3 + 2 * k : 2] += far * sides[1]
        at = self._cells_of_points
        return np.insert(masses, at, weights[:, of_points], axis=1) if len(at) else masses

    @property
    def mode_candidates(self) -> np.ndarray:
        return 0.5 * (self.edges[1:] + self.edges[:-1])[:, None]

    @cached_property
    def _first_of_bin(self) -> np.ndarray:
        """The first atom of each bin; equal and nearly equal atoms share one."""
        eta = self.measure.atoms[:, 0]
        room = max(1e-9 * (eta[-1] - eta[0]), 1e-15 * np.max(np.abs(eta)))
        return np.flatnonzero(np.diff(eta, prepend=-np.inf) > room)

    @cached_property
    def _cells_of_points(self) -> np.ndarray:
        """The position, among the halves of bins, of the right half of each atom in `points`."""
        bins = np.searchsorted(self._first_of_bin, np.asarray(self.points, int), "right") - 1
        return 2 * bins + 1 + int(self.overlap > 0)

    @property
    def _eta(self) -> np.ndarray:
        return self.measure.atoms[self._first_of_bin, 0]

    @cached_property
    def _gaps(self) -> np.ndarray:
        """The gaps between neighbouring atoms; beyond the outermost as wide as before them."""
        gaps = np.diff(self._eta)
        if not len(gaps):
            return np.full(2, self.measure.bandwidth)
        return np.concatenate([gaps[:1], gaps, gaps[-1:]])
