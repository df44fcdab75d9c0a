"""Where atoms are placed: evenly, at quantiles, where a network moves them, or at clusters.

A grid over ten outputs would need more atoms than there are rows, and most of them would lie where
no y is. For several outputs atoms are therefore the centres of clusters of the training targets,
and each carries the covariance of y around it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.cluster import KMeans

from nkcme.atoms import Atoms
from nkcme.estimators.nkcme.recipe import EmbeddingRecipe
from nkcme.estimators.training_data import Encoded
from nkcme.training.compilation import jit_quickly

#: The names that the parameter ``atoms`` takes.
PLACEMENTS = ("auto", "grid", "quantile", "learned")

#: The smallest standard deviation of a cluster in any direction, as a share of the root mean square
#: over all clusters: outputs that are functions of each other have a density too.
MIN_RELATIVE_STD = 1e-3


def place_atoms(
    placement: str, data: Encoded, n_atoms: int, *, of_residuals: bool, recipe: EmbeddingRecipe
) -> Atoms:
    """Atoms for the targets of a data set.

    For several outputs they are cluster centres for every placement. "auto" is an even grid for
    y itself, which is best (docs/findings.md) unless a long tail would make it coarse where most of
    y is; and quantiles for residuals.
    """
    if data.y.shape[1] > 1:
        clusters = cluster_atoms(data.y, data.weight, n_atoms, data.seed, recipe)
        return Atoms.points(*(jax.device_put(array.astype(np.float32)) for array in clusters))
    low, high = closed_range(data.y)
    even = placement == "auto" and not of_residuals
    if even and high - low <= recipe.even_up_to * data.y.std():
        # Not marked as a grid: whether atoms are even depends on the data, and models of several
        # data sets train as one program.
        return Atoms.points(_grid(np.float32(low), np.float32(high), n_atoms).locations)
    if placement == "grid":
        return _grid(np.float32(low), np.float32(high), n_atoms)
    return atoms_at_quantiles(data.y[:, 0], data.weight, n_atoms, recipe)


def between_learned(locations: np.ndarray, y: np.ndarray, recipe: EmbeddingRecipe) -> Atoms:
    """Half of the atoms where training moved them, half evenly over the range of y.

    Atoms that move freely gather, and leave gaps where y is rare.
    """
    learned = np.ravel(locations)
    points = np.append(learned, closed_range(y))
    return atoms_at_quantiles(points, np.ones(len(points)), len(learned), recipe)


def atom_shapes(placement: str, n_atoms: int, n_outputs: int) -> Atoms:
    """The shapes of the arrays that `place_atoms` gives, for reading files."""
    locations = jax.ShapeDtypeStruct((n_atoms, n_outputs), jnp.float32)
    even = n_outputs == 1 and placement == "grid"
    spacing = jax.ShapeDtypeStruct((), jnp.float32) if even else None
    covariances = None
    if n_outputs > 1:
        covariances = jax.ShapeDtypeStruct((n_atoms, n_outputs, n_outputs), jnp.float32)
    return Atoms(locations, spacing, covariances)  # type: ignore[arg-type]


# One small program: JAX would compile each operation alone.
_grid = jit_quickly(Atoms.grid, static_argnums=2)


def closed_range(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest y; a single value gets one unit of width, which a grid needs."""
    low, high = y.min(), y.max()
    if low == high:
        return low - 0.5, high + 0.5
    return low, high


def atoms_at_quantiles(y: np.ndarray, weight: np.ndarray, n: int, recipe: EmbeddingRecipe) -> Atoms:
    """``n`` atoms in increasing order for targets (n_rows,), at quantiles of a mixture.

    One part of the mixture is the distribution of y, the other is uniform over the range of y,
    extended at either end so that the distribution does not stop at the outermost y.
    """
    low, high = closed_range(y)
    room = recipe.quantile_margin * (high - low)
    order = np.argsort(y, kind="stable")
    y, weight = y[order].astype(np.float64), weight[order]
    below = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    points = np.union1d(np.linspace(low - room, high + room, 4 * n), y)
    even = (points - points[0]) / (points[-1] - points[0])
    of_y = recipe.quantile_share
    share = (1.0 - of_y) * even + of_y * np.interp(points, y, below, left=0.0, right=1.0)
    locations = np.interp(np.linspace(0.0, 1.0, n), share, points)
    return Atoms.points(jax.device_put(locations[:, None].astype(np.float32)))


class Clusters(NamedTuple):
    """Centres (m, d) and the covariance (m, d, d) of y around each; zero if y has few values."""

    atoms: np.ndarray
    covariances: np.ndarray


def cluster_atoms(
    y: np.ndarray, weight: np.ndarray, n_atoms: int, seed: int, recipe: EmbeddingRecipe
) -> Clusters:
    """``n_atoms`` clusters of targets (n, d), in which row i counts as ``weight[i]`` rows.

    If there are too few rows for that many, clusters are repeated, because models that train
    together need arrays of one shape. If y has no more distinct values than there are clusters,
    the values are the atoms and the covariances are zero.
    """
    y = np.asarray(y, np.float64)
    n_clusters = max(min(n_atoms, len(y) // recipe.rows_per_cluster), 1)
    distinct = np.unique(y, axis=0)
    if len(distinct) <= n_clusters:
        clusters = Clusters(distinct, np.zeros((*distinct.shape, y.shape[1])))
    else:
        clusters = _k_means(y, weight, n_clusters, seed, recipe.widening)
    repeated = np.resize(np.arange(len(clusters.atoms)), n_atoms)
    return Clusters(clusters.atoms[repeated], clusters.covariances[repeated])


def _k_means(
    y: np.ndarray, weight: np.ndarray, n_clusters: int, seed: int, widening: float
) -> Clusters:
    clusters = KMeans(n_clusters, n_init=1, max_iter=50, random_state=seed)
    clusters.fit(y, sample_weight=weight)
    atoms, label = clusters.cluster_centers_, clusters.labels_
    covariances = _covariances(y - atoms[label], label, weight, n_clusters)
    # Gaussians as narrow as their clusters leave gaps between neighbours. The fewer the outputs,
    # the smaller the clusters, and the less their width adds in total.
    return Clusters(atoms, (1.0 + widening / y.shape[1]) * covariances)


def _covariances(
    off: np.ndarray, label: np.ndarray, weight: np.ndarray, n_clusters: int
) -> np.ndarray:
    """The covariance of each cluster, shrunk towards that of all clusters.

    A cluster has few rows: d + 1 rows of the common covariance keep it from being singular.
    """
    n, d = off.shape
    squares = np.zeros((n_clusters, d * d))
    products = (off[:, :, None] * off[:, None, :]).reshape(n, -1)
    np.add.at(squares, label, weight[:, None] * products)
    common = squares.sum(axis=0) / weight.sum()
    counts = np.bincount(label, weight, n_clusters)[:, None]
    prior = d + 1
    covariances = ((squares + prior * common) / (counts + prior)).reshape(n_clusters, d, d)
    least = MIN_RELATIVE_STD**2 * np.trace(common.reshape(d, d)) / d
    return covariances + least * np.eye(d)
