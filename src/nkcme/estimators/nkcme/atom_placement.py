"""Where atoms are placed: evenly, at quantiles, where a network moves them, or at clusters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nkcme.atoms import Atoms, closed_range
from nkcme.distributions.atom_covariances import cover
from nkcme.estimators.nkcme.recipe import EmbeddingRecipe
from nkcme.estimators.training_data import Encoded

#: The names that the parameter ``atoms`` takes.
PLACEMENTS = ("auto", "grid", "quantile", "learned")


def place_atoms(
    placement: str, data: Encoded, n_atoms: int, *, of_residuals: bool, recipe: EmbeddingRecipe
) -> Atoms:
    """Atoms for the targets of a data set.

    For several outputs they are cluster centres, whatever the placement. "auto" is an even grid for
    y itself, which is best (docs/findings.md) unless a long tail would make it coarse where most of
    y is; and quantiles for residuals.
    """
    if data.y.shape[1] > 1:
        clusters = cover(data.y, data.weight, n_atoms, data.seed)
        return Atoms.points(*(jnp.asarray(array, jnp.float32) for array in clusters))
    low, high = closed_range(data.y)
    even = placement == "auto" and not of_residuals
    if even and high - low <= recipe.even_up_to * data.y.std():
        # Not marked as a grid: whether atoms are even depends on the data, and models of several
        # data sets train as one program.
        return Atoms.points(_grid(low, high, n_atoms).locations)
    if placement == "grid":
        return _grid(low, high, n_atoms)
    return Atoms.at_quantiles(data.y[:, 0], data.weight, n_atoms)


def between_learned(locations: np.ndarray, y: np.ndarray) -> Atoms:
    """Half of the atoms where training moved them, half evenly over the range of y.

    Atoms that move freely gather, and leave gaps where y is rare.
    """
    learned = np.ravel(locations)
    points = np.append(learned, closed_range(y))
    return Atoms.at_quantiles(points, np.ones(len(points)), len(learned))


def atom_shapes(placement: str, n_atoms: int, n_outputs: int) -> Atoms:
    """The shapes of the arrays that `place_atoms` gives, for reading files."""
    locations = jax.ShapeDtypeStruct((n_atoms, n_outputs), jnp.float32)
    even = n_outputs == 1 and placement == "grid"
    spacing = jax.ShapeDtypeStruct((), jnp.float32) if even else None
    covariances = None
    if n_outputs > 1:
        covariances = jax.ShapeDtypeStruct((n_atoms, n_outputs, n_outputs), jnp.float32)
    return Atoms(locations, spacing, covariances)  # type: ignore[arg-type]


def _grid(low: np.ndarray, high: np.ndarray, n_atoms: int) -> Atoms:
    return Atoms.grid(jnp.float32(low), jnp.float32(high), n_atoms)
