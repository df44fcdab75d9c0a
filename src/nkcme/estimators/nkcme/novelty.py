"""How new a row is, and by how much the distribution of its y is widened for that.

Far from the training rows the members of an ensemble were never tested. Two things show how wrong
their mean can be there, in units of the variance of y:

- how far the members are apart, beyond what is usual among the training rows;
- how much y differs between training rows that are as far apart as the new row is from the nearest
  of them: the variogram of geostatistics, half the mean squared difference at a distance.

Where neither exceeds what is usual, nothing is widened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.law_recipe import NoveltyRecipe
from nkcme.model_files.array_checks import need_array

if TYPE_CHECKING:
    from nkcme.estimators.training_data import Encoded

#: Pairs of rows that a variogram is learned from, and points at which it is tabulated.
_N_PAIRS, _N_TABULATED = 20_000, 21

#: The farthest pairs, a twentieth, are too few for the end of a variogram.
_FARTHEST = 0.95


class Novelty(NamedTuple):
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
    """

    centers: np.ndarray
    distances: np.ndarray
    variogram: np.ndarray
    usual_distance: float
    usual_spread: float
    spread_factor: float
    variogram_factor: float

    @classmethod
    def learn(
        cls, data: Encoded, spread: np.ndarray, recipe: NoveltyRecipe, *, located: bool
    ) -> Novelty:
        """From training rows with one output, and the variance between members at rows that are
        new to them; ``located`` says whether there is a location model."""
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
            float(np.quantile(_nearest(others, centers), recipe.usual)),
            float(np.quantile(spread, recipe.usual)),
            recipe.spread_factor,
            recipe.variogram_factor if located else recipe.variogram_factor_fixed,
        )

    def knowing(self, x: np.ndarray, recipe: NoveltyRecipe) -> Novelty:
        """The same where distances such as those of these rows are usual."""
        usual = float(np.quantile(_nearest(x, self.centers), recipe.usual))
        return self._replace(usual_distance=max(usual, self.usual_distance))

    def distance(self, x: np.ndarray) -> np.ndarray:
        """The distance (n,) of rows from the training rows, in units of the usual one."""
        return _nearest(x, self.centers) / max(self.usual_distance, 1e-12)

    def variance(self, x: np.ndarray, spread: np.ndarray) -> np.ndarray:
        """What is added to the variance of standardised y at rows (n, p) with a variance (n,)
        between members."""
        variogram = self._at(np.append(_nearest(x, self.centers), self.usual_distance))
        beyond = np.maximum(variogram[:-1] - variogram[-1], 0.0)
        excess = np.maximum(spread - self.usual_spread, 0.0)
        return self.spread_factor * excess + self.variogram_factor * beyond

    def to_config(self) -> dict[str, float]:
        """The single numbers, for a model file."""
        return {name: float(getattr(self, name)) for name in _NUMBERS}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays, for a model file."""
        return {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def from_file(cls, config: Any, arrays: dict[str, np.ndarray], n_in: int) -> Novelty:
        """From an untrusted file, for ``n_in`` encoded inputs."""
        numbers = {name: float(config[name]) for name in _NUMBERS}
        if not all(np.isfinite(value) and value >= 0 for value in numbers.values()):
            raise ModelFileError("what is usual in the model file is negative or not finite")
        if set(arrays) != set(_ARRAYS):
            raise ModelFileError(f"the novelty of the model file must have {', '.join(_ARRAYS)}")
        need_array(arrays, "centers", (len(arrays["centers"]), n_in))
        n_points = len(np.atleast_1d(arrays["distances"]))
        for name in ("distances", "variogram"):
            need_array(arrays, name, (n_points,))
            if np.any(np.diff(arrays[name]) < 0) or not n_points:
                raise ModelFileError(f"the {name} in the model file do not rise")
        centers, distances, variogram = (arrays[name] for name in _ARRAYS)
        return cls(centers, distances, variogram, **numbers)

    def _at(self, distance: np.ndarray) -> np.ndarray:
        """The variogram, which grows in proportion to the distance beyond its last point."""
        farther = np.maximum(distance / max(self.distances[-1], 1e-12), 1.0)
        return farther * np.interp(distance, self.distances, self.variogram)


#: The fields, by how a model file holds them.
_ARRAYS = ("centers", "distances", "variogram")
_NUMBERS = ("usual_distance", "usual_spread", "spread_factor", "variogram_factor")


def _nearest(x: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The distance (n,) of each row from the nearest centre."""
    x, centers = x.astype(np.float64), centers.astype(np.float64)
    squares = x @ (-2.0 * centers.T)
    squares += np.square(centers).sum(axis=1)
    nearest = squares.min(axis=1) + np.square(x).sum(axis=1)
    return np.sqrt(np.maximum(nearest, 0.0))
