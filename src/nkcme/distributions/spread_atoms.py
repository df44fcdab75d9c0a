"""Weighted atoms of one output, each spread around itself so that its mean stays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

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
        atoms = np.ascontiguousarray(measure.atoms[:, 0], np.float64)
        # Every batch of predictions of a model has the same atoms.
        self._bins = _bins(atoms.tobytes(), measure.bandwidth, overlap, tuple(points))

    @property
    def edges(self) -> np.ndarray:
        return self._bins.edges

    @property
    def masses(self) -> np.ndarray:
        bins, weights = self._bins, np.asarray(self.measure.weights, np.float64)
        if len(bins.first) < weights.shape[1]:
            weights = np.add.reduceat(weights, bins.first, axis=1)
        spread = weights
        if len(bins.of_points):
            spread = weights.copy()
            spread[:, bins.of_points] = 0.0
        near, far = 1.0 - 0.5 * self.overlap, 0.5 * self.overlap
        sides = (spread * bins.left, spread * (1.0 - bins.left))
        # Two halves of each atom's bin, and with overlap one more half gap at either end.
        k, first = len(bins.left), int(self.overlap > 0)
        masses = np.zeros((len(weights), 2 * k + 2 * first))
        for side, mass in enumerate(sides):
            masses[:, first + side : first + side + 2 * k : 2] += near * mass
        if self.overlap:
            masses[:, 0 : 2 * k : 2] += far * sides[0]
            masses[:, 3 : 3 + 2 * k : 2] += far * sides[1]
        at = bins.cells
        return np.insert(masses, at, weights[:, bins.of_points], axis=1) if len(at) else masses

    @property
    def mode_candidates(self) -> np.ndarray:
        return 0.5 * (self.edges[1:] + self.edges[:-1])[:, None]


class _Bins(NamedTuple):
    """What does not depend on the weights.

    Attributes
    ----------
    first : array
        The first atom of each bin; equal and nearly equal atoms share one.
    left : array
        The share of a bin's mass on the left of its atom.
    of_points : array
        The bins of the atoms that are values of their own.
    cells : array
        The position, among the halves of bins, of the right half of each of these.
    edges : array
        Between the masses.
    """

    first: np.ndarray
    left: np.ndarray
    of_points: np.ndarray
    cells: np.ndarray
    edges: np.ndarray


@lru_cache(maxsize=16)
def _bins(atoms: bytes, bandwidth: float, overlap: float, points: tuple[int, ...]) -> _Bins:
    every = np.frombuffer(atoms, np.float64)
    room = max(1e-9 * (every[-1] - every[0]), 1e-15 * np.max(np.abs(every)))
    first = np.flatnonzero(np.diff(every, prepend=-np.inf) > room)
    eta = every[first]
    # Beyond the outermost atoms gaps are as wide as before them.
    gaps = np.diff(eta)
    gaps = np.concatenate([gaps[:1], gaps, gaps[-1:]]) if len(gaps) else np.full(2, bandwidth)
    edges = np.empty(2 * len(eta) + 1)
    edges[1::2] = eta
    edges[2:-1:2] = 0.5 * (eta[1:] + eta[:-1])
    edges[0], edges[-1] = eta[0] - 0.5 * gaps[0], eta[-1] + 0.5 * gaps[-1]
    if overlap:
        edges = np.concatenate([[eta[0] - gaps[0]], edges, [eta[-1] + gaps[-1]]])
    of_points = np.searchsorted(first, np.asarray(points, int), "right") - 1
    cells = 2 * of_points + 1 + int(overlap > 0)
    if len(cells):
        edges = np.insert(edges, cells + 1, edges[cells])
    edges.setflags(write=False)
    return _Bins(first, gaps[1:] / (gaps[1:] + gaps[:-1]), of_points, cells, edges)
