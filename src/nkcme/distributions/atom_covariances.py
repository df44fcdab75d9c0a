"""Cells: of several outputs, the atoms that cover the data, and how y lies about each of them.

A grid over the cube of ten outputs would need more atoms than there are rows, and most of them
would lie where no y is. Atoms are instead the centres of clusters of the training targets, which
are as dense as these. A cell is what is closest to an atom; what y does within it is told by a
normal law of the cell's own covariance, as for one output mass is spread evenly between neighbours.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc
from sklearn.cluster import KMeans

from nkcme.errors import ModelFileError

#: A cell has so many rows at least, on average: fewer would not tell how y lies within it.
ROWS_A_CELL = 5

#: Points of the quadrature behind `NormalCells.cdf`.
N_POINTS = 64

#: The least spread of a cell in any direction, as a share of all cells' root mean square: outputs
#: that are tied to each other have a density too.
LEAST_SPREAD = 1e-3


class Cells(NamedTuple):
    """Atoms (m, d), and the covariance (m, d, d) of y about each; zero where y is nowhere else."""

    atoms: np.ndarray
    covariances: np.ndarray


def cover(y: np.ndarray, weight: np.ndarray, n_atoms: int, seed: int) -> Cells:
    """``n_atoms`` cells for targets (n, d), of which row i counts as ``weight[i]`` rows.

    Where there are too few rows for so many, cells are repeated to make up the number: models that
    train side by side need one shape. Values that repeat as often as cells have rows are the atoms
    themselves, and there is nothing between them.
    """
    y = np.asarray(y, np.float64)
    n_cells = max(min(n_atoms, len(y) // ROWS_A_CELL), 1)
    distinct = np.unique(y, axis=0)
    if len(distinct) <= n_cells:
        cells = Cells(distinct, np.zeros((*distinct.shape, y.shape[1])))
    else:
        cells = _clustered(y, weight, n_cells, seed)
    repeated = np.resize(np.arange(len(cells.atoms)), n_atoms)
    return Cells(cells.atoms[repeated], cells.covariances[repeated])


def _clustered(y: np.ndarray, weight: np.ndarray, n_cells: int, seed: int) -> Cells:
    clusters = KMeans(n_cells, n_init=1, max_iter=50, random_state=seed)
    clusters.fit(y, sample_weight=weight)
    atoms, cell = clusters.cluster_centers_, clusters.labels_
    return Cells(atoms, _covariances(y - atoms[cell], cell, weight, n_cells))


def _covariances(off: np.ndarray, cell: np.ndarray, weight: np.ndarray, n_cells: int) -> np.ndarray:
    """Of the rows of each cell, drawn towards that of all: a cell has few rows, and d + 1 rows'
    worth of the common covariance keep it from being flat. Times `overlap`."""
    n, d = off.shape
    squares = np.zeros((n_cells, d * d))
    products = (off[:, :, None] * off[:, None, :]).reshape(n, -1)
    np.add.at(squares, cell, weight[:, None] * products)
    common = squares.sum(axis=0) / weight.sum()
    counts = np.bincount(cell, weight, n_cells)[:, None]
    prior = d + 1
    covariances = ((squares + prior * common) / (counts + prior)).reshape(n_cells, d, d)
    least = LEAST_SPREAD**2 * np.trace(common.reshape(d, d)) / d
    return overlap(d) * (covariances + least * np.eye(d))


def overlap(n_outputs: int) -> float:
    """By how much the covariance of a cell's law is larger than that of its rows.

    Laws as narrow as their cells leave valleys between neighbours that the density does not have.
    The fewer the outputs, the smaller cells are, and the less their width adds to the whole.
    """
    return 1.0 + 2.0 / n_outputs


def need_covariances(covariances: np.ndarray) -> None:
    """Raises on what a file has instead of covariances (zero throughout stands for none)."""
    try:
        usable = bool(np.all(np.isfinite(np.linalg.cholesky(covariances.astype(np.float64)))))
    except np.linalg.LinAlgError:
        usable = not np.any(covariances)
    if not usable:
        raise ModelFileError("the spread of this model's atoms is not that of distributions")


class NormalCells:
    """The normal law of each cell: mean ``atoms`` (m, d), ``covariances`` (m, d, d)."""

    def __init__(self, atoms: np.ndarray, covariances: np.ndarray):
        self.atoms = atoms
        self.covariances = covariances
        self.roots = np.linalg.cholesky(covariances)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        """The log density of each cell's law at points (..., d): (..., m)."""
        scores = _solved(self.roots, y[..., None, :] - self.atoms)
        d = self.atoms.shape[1]
        log_volume = np.sum(np.log(np.diagonal(self.roots, axis1=1, axis2=2)), axis=1)
        squares = np.sum(np.square(scores), axis=-1)
        return -0.5 * squares - log_volume - 0.5 * d * np.log(2 * np.pi)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """The probability of each cell's law below points (..., d) in every output: (..., m).

        Genz's separation of variables: output after output, given those before at the quantiles of
        a point of the unit cube, of which there are `N_POINTS`. Good to 1e-3 for two outputs and to
        1e-2 for more; a mixture of many cells is better than each of them.
        """
        off = y[..., None, :] - self.atoms
        last = off.shape[-1] - 1
        levels = _well_spread(last)
        probability = np.ones((*off.shape[:-1], N_POINTS))
        scores: list[np.ndarray] = []
        for j in range(last + 1):
            root = self.roots[:, j, :, None]
            room = off[..., j, None] - sum(root[:, k] * score for k, score in enumerate(scores))
            below = ndtr(room / root[:, j])
            probability *= below
            if j < last:
                scores.append(ndtri(np.maximum(levels[:, j] * below, 1e-300)))
        return probability.mean(axis=-1)

    def carry(self, cell: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """Draws (..., d) of chosen cells (...), from standard normal ones (..., d)."""
        return self.atoms[cell] + np.einsum("...ij,...j->...i", self.roots[cell], normal)


def _solved(roots: np.ndarray, off: np.ndarray) -> np.ndarray:
    """root_a^-1 off_a by forward substitution, (..., m, d): in d steps for all cells at once."""
    scores: list[np.ndarray] = []
    for j in range(off.shape[-1]):
        before = sum(roots[:, j, k] * score for k, score in enumerate(scores))
        scores.append((off[..., j] - before) / roots[:, j, j])
    return np.stack(scores, axis=-1)


@cache
def _well_spread(d: int) -> np.ndarray:
    """Points (N_POINTS, d) of the open unit cube; on the interval, midpoints."""
    if d == 1:
        return (np.arange(N_POINTS)[:, None] + 0.5) / N_POINTS
    return qmc.Sobol(d, rng=np.random.default_rng(0)).random(N_POINTS)
