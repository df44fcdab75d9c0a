"""How new a row is, and by how much the distribution of its y is widened for that.

Far from the training rows the members of an ensemble were never tested. Three things show how wrong
their mean can be there, in units of the variance of y:

- how far the members are apart, beyond what is usual among the training rows;
- how much y differs between training rows that are as far apart as the new row is from the nearest
  of them: the variogram of geostatistics, half the mean squared difference at a distance;
- how much the predicted mean changes inside the range of an input, over as long a way as the row is
  beyond it. With several inputs, one that is beyond its range hardly changes the distance.

Where none exceeds what is usual, nothing is widened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.forward_passes import ROWS_OF_PRODUCT, in_whole_products, product
from nkcme.model_files.array_checks import need_array

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.law_recipe import NoveltyRecipe
    from nkcme.estimators.training_data import Encoded

#: Pairs of rows that a variogram is learned from, and points at which it is tabulated.
_N_PAIRS, _N_TABULATED = 20_000, 21

#: The farthest pairs, a twentieth, are too few for the end of a variogram.
_FARTHEST = 0.95


@dataclass(frozen=True, eq=False)
class Novelty:
    """What is usual among the training rows, in standardised units of x and y.

    Attributes
    ----------
    centers : array (k, p)
        Cluster centres of the training inputs; the distance of a row is that to the nearest.
    distances, variogram : array (g,)
        Half the mean squared difference of y at increasing distances; it never falls.
    usual_distance, usual_spread : float
        Distance and variance between members that few rows like the training rows exceed.
    spread_factor, variogram_factor : float
        How much an excess counts.
    bounds : array (2, p) or None
        The least and the largest value of each input; None in models of earlier versions.
    change_factor : float
        How much the square of a change of the mean counts.
    """

    centers: np.ndarray
    distances: np.ndarray
    variogram: np.ndarray
    usual_distance: float
    usual_spread: float
    spread_factor: float
    variogram_factor: float
    bounds: np.ndarray | None = None
    change_factor: float = 0.0

    @classmethod
    def learn(
        cls,
        data: Encoded,
        spread: np.ndarray,
        recipe: NoveltyRecipe,
        *,
        located: bool,
        bounds: np.ndarray,
    ) -> Novelty:
        """From training rows with one output, and the variance between members at rows that are
        new to them; ``located`` says whether there is a location model, and ``bounds`` (2, p) are
        those of the inputs of all training rows."""
        from sklearn.cluster import KMeans  # predictions do not need it
        from sklearn.isotonic import IsotonicRegression

        rng = np.random.default_rng(data.seed)
        x, y = data.x, data.y[:, 0].astype(np.float64)
        # Centres of one half, distances of the other: what is usual for rows that are new.
        order = rng.permutation(len(x))
        half, others = x[order[::2]], x[order[1::2]]
        if data.groups is not None and not data.by_time:  # rows of other groups are new
            codes = np.unique(data.groups.codes, return_inverse=True)[1]
            odd = rng.permutation(codes.max() + 1)[codes] % 2 == 1
            half, others = x[~odd], x[odd]
        n_centers = int(np.clip(len(half) // recipe.rows_per_center, 1, recipe.most_centers))
        n_centers = min(n_centers, len(np.unique(half, axis=0)))
        clusters = KMeans(n_centers, n_init=1, max_iter=20, random_state=data.seed).fit(half)
        centers = clusters.cluster_centers_.astype(np.float32)
        # Outliers of y would hide how y changes with x.
        y = np.clip(y, *np.quantile(y, [0.01, 0.99]))
        i, j = rng.integers(0, len(x), (2, _N_PAIRS))
        apart = np.linalg.norm(x[i] - x[j], axis=1).astype(np.float64)
        rising = IsotonicRegression().fit(apart, 0.5 * np.square(y[i] - y[j]))
        distances = np.quantile(apart, np.linspace(0.0, _FARTHEST, _N_TABULATED))
        return cls(
            centers,
            distances,
            rising.predict(distances),
            float(np.quantile(_Centers.of(centers).distance(others), recipe.usual)),
            float(np.quantile(spread, recipe.usual)),
            recipe.spread_factor,
            recipe.variogram_factor if located else recipe.variogram_factor_fixed,
            bounds,
            recipe.change_factor,
        )

    def knowing(self, x: np.ndarray, recipe: NoveltyRecipe) -> Novelty:
        """The same where distances and values such as those of these rows are usual."""
        usual = float(np.quantile(self._centers.distance(x), recipe.usual))
        known = replace(self, usual_distance=max(usual, self.usual_distance))
        if known.bounds is None:
            return known
        return replace(known, bounds=bounds_of(np.concatenate([known.bounds, x])))

    def distance(self, x: np.ndarray) -> np.ndarray:
        """The distance (n,) of rows from the training rows, in units of the usual one."""
        return self._centers.distance(x) / max(self.usual_distance, 1e-12)

    def variance(self, x: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """What is added to the variance of standardised y at rows (n, p) with a variance (n,)
        between members."""
        beyond = np.maximum(self._at(self._centers.distance(x)) - self._usual_variogram, 0.0)
        excess = np.maximum(spread - self.usual_spread, 0.0)
        return self.spread_factor * excess + self.variogram_factor * beyond

    def extrapolated(
        self, x: np.ndarray, mean: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray | float:
        """What is added, likewise, at rows (n, p) with an input beyond its range; ``mean`` predicts
        the mean (n,) of standardised y at rows.

        A prediction that goes on beyond the nearest point within all ranges may be wrong by as much
        as it changes over the same way back inside.
        """
        if self.bounds is None:
            return 0.0
        nearest = np.clip(x, *self.bounds)
        new = (nearest != x).any(axis=1)
        if not new.any():
            return 0.0
        at = nearest[new]
        back = np.clip(2.0 * at - x[new], *self.bounds)
        added = np.zeros(len(x))
        if not len(x) % ROWS_OF_PRODUCT:  # the bits of a row must not depend on how many are new
            at, back = (in_whole_products(rows) for rows in (at, back))
        change = (mean(at) - mean(back))[: np.count_nonzero(new)]
        added[new] = self.change_factor * np.square(change)
        return added

    def to_config(self) -> dict[str, float]:
        """The single numbers, for a model file."""
        return {name: float(getattr(self, name)) for name in _NUMBERS}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays, for a model file."""
        names = _ARRAYS if self.bounds is None else (*_ARRAYS, _BOUNDS)
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_file(cls, config: Any, arrays: dict[str, np.ndarray], n_in: int) -> Novelty:
        """From an untrusted file, for ``n_in`` encoded inputs."""
        of_change = {"change_factor": 0.0, **config}  # earlier versions have none
        numbers = {name: float(of_change[name]) for name in _NUMBERS}
        if not all(np.isfinite(value) and value >= 0 for value in numbers.values()):
            raise ModelFileError("what is usual in the model file is negative or not finite")
        if set(arrays) - {_BOUNDS} != set(_ARRAYS):
            raise ModelFileError(f"the novelty of the model file must have {', '.join(_ARRAYS)}")
        bounds = arrays.get(_BOUNDS)
        if bounds is not None:
            need_array(arrays, _BOUNDS, (2, n_in))
            if np.any(bounds[0] > bounds[1]):
                raise ModelFileError("the ranges of inputs in the model file are empty")
        need_array(arrays, "centers", (len(arrays["centers"]), n_in))
        n_points = len(np.atleast_1d(arrays["distances"]))
        for name in ("distances", "variogram"):
            need_array(arrays, name, (n_points,))
            if np.any(np.diff(arrays[name]) < 0) or not n_points:
                raise ModelFileError(f"the {name} in the model file do not rise")
        centers, distances, variogram = (arrays[name] for name in _ARRAYS)
        return cls(centers, distances, variogram, bounds=bounds, **numbers)

    @cached_property
    def _centers(self) -> _Centers:
        return _Centers.of(self.centers)

    @cached_property
    def _usual_variogram(self) -> float:
        return float(self._at(np.array([self.usual_distance]))[0])

    def _at(self, distance: np.ndarray) -> np.ndarray:
        """The variogram, which grows in proportion to the distance beyond its last point."""
        farther = np.maximum(distance / max(self.distances[-1], 1e-12), 1.0)
        return farther * np.interp(distance, self.distances, self.variogram)


#: The fields, by how a model file holds them.
_ARRAYS = ("centers", "distances", "variogram")
_BOUNDS = "bounds"
_NUMBERS = ("usual_distance", "usual_spread", "spread_factor", "variogram_factor", "change_factor")


def bounds_of(x: np.ndarray) -> np.ndarray:
    """The least and the largest value (2, p) of each input."""
    return np.stack([x.min(axis=0), x.max(axis=0)])


class _Centers(NamedTuple):
    """Cluster centres c, and what their distances from rows x need of them: |x|^2 - 2 x c + |c|^2.

    Attributes
    ----------
    factors : array (p, k)
        -2 c
    squares : array (k,)
        |c|^2
    """

    factors: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, centers: np.ndarray) -> _Centers:
        centers = centers.astype(np.float64)
        return cls(-2.0 * centers.T, np.square(centers).sum(axis=1))

    def distance(self, x: np.ndarray) -> np.ndarray:
        """The distance (n,) of each row from the nearest centre."""
        x = x.astype(np.float64)
        squares = product(x, self.factors)
        squares += self.squares
        nearest = np.minimum.reduce(squares, axis=1) + np.add.reduce(x * x, axis=1)
        return np.sqrt(np.maximum(nearest, 0.0))
