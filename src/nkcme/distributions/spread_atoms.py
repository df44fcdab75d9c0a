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
        masses = weights.take(bins.nearer, axis=1)
        masses *= bins.nearer_share
        if self.overlap:
            farther = weights.take(bins.farther, axis=1)
            farther *= bins.farther_share
            masses += farther
        return masses

    @property
    def mode_candidates(self) -> np.ndarray:
        return 0.5 * (self.edges[1:] + self.edges[:-1])[:, None]


class _Bins(NamedTuple):
    """What does not depend on the weights.

    Attributes
    ----------
    first : array (k,)
        The first atom of each bin; equal and nearly equal atoms share one.
    edges : array (g,)
        Between the masses: the middles and the ends of bins, twice where an atom is a point.
    nearer, farther : array (g - 1,)
        The bins whose mass lies between edges: that of the nearer atom, and the one that reaches
        over from beyond.
    nearer_share, farther_share : array (g - 1,)
        The share of a bin's mass that lies there.
    """

    first: np.ndarray
    edges: np.ndarray
    nearer: np.ndarray
    farther: np.ndarray
    nearer_share: np.ndarray
    farther_share: np.ndarray


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
    # Two halves of each bin, and with overlap half a gap more at either end. A half holds mass of
    # its own atom and, with overlap, of the neighbour on its other side.
    k, reach = len(eta), int(overlap > 0)
    n_halves = 2 * k + 2 * reach
    nearer, farther = np.zeros((2, n_halves), np.intp)
    nearer_share, farther_share = np.zeros((2, n_halves))
    left = gaps[1:] / (gaps[1:] + gaps[:-1])
    of_points = np.searchsorted(first, np.asarray(points, int), "right") - 1
    spread = np.ones(k)
    spread[of_points] = 0.0
    for side, share in enumerate((left, 1.0 - left)):
        own = slice(reach + side, reach + side + 2 * k, 2)
        nearer[own], nearer_share[own] = np.arange(k), (1.0 - 0.5 * overlap) * spread * share
        if overlap:
            beyond = slice(3 * side, 3 * side + 2 * k, 2)
            farther[beyond], farther_share[beyond] = np.arange(k), 0.5 * overlap * spread * share
    cells = 2 * of_points + 1 + reach
    if len(cells):
        edges = np.insert(edges, cells + 1, edges[cells])
        nearer, farther = (np.insert(bins, cells, of_points) for bins in (nearer, farther))
        nearer_share = np.insert(nearer_share, cells, 1.0)
        farther_share = np.insert(farther_share, cells, 0.0)
    edges.setflags(write=False)
    return _Bins(first, edges, nearer, farther, nearer_share, farther_share)
