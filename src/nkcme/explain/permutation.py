"""Permutation importance of the inputs, for the whole distribution and for its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nkcme.distributions.checks import checked_size
from nkcme.errors import NkcmeError
from nkcme.evaluation import as_table, matching_target, native, need_distributions
from nkcme.explain.mixed_rows import MixedRows
from nkcme.explain.quantile_parts import QuantileParts, pinball
from nkcme.explain.statistics import checked_levels, quantile_name


@dataclass(frozen=True, repr=False, eq=False)
class Importance:
    """By how much scores get worse when an input is shuffled, in units of y.

    Attributes
    ----------
    features : tuple of str
        The inputs.
    score : dict of float
        For each measure, the mean score of the predictions as they are.
    increase : dict of arrays (n_repeats, n_features)
        For each measure, by how much the score is higher with an input shuffled. Around zero for
        an input that does not matter; negative by chance.
    n_rows : int
        The rows that were scored.
    """

    features: tuple[str, ...]
    score: dict[str, float]
    increase: dict[str, np.ndarray]
    n_rows: int

    def __repr__(self) -> str:
        measures = ", ".join(self.score)
        return f"Importance({len(self.features)} inputs, {self.n_rows} rows; {measures})"

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(self.score)

    def mean(self, measure: str) -> np.ndarray:
        """The mean increase (n_features,) over the repeats."""
        return self.increase[self._known(measure)].mean(axis=0)

    def std(self, measure: str) -> np.ndarray:
        """The standard deviation (n_features,) of the increase between repeats."""
        return self.increase[self._known(measure)].std(axis=0)

    def relative(self, measure: str) -> np.ndarray:
        """The mean increase as a share of the score (n_features,); 0.2 is 20 % worse."""
        return self.mean(measure) / max(self.score[measure], 1e-300)

    def order(self, measure: str = "crps") -> np.ndarray:
        """The positions of the inputs, the most important first."""
        return np.argsort(-self.mean(measure), kind="stable")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as JSON has them."""
        return {
            "rows": self.n_rows,
            "scores": dict(self.score),
            "features": [
                {
                    "name": self.features[j],
                    **{
                        measure: {
                            "increase": float(self.mean(measure)[j]),
                            "std": float(self.std(measure)[j]),
                            "relative": float(self.relative(measure)[j]),
                        }
                        for measure in self.measures
                    },
                }
                for j in self.order()
            ],
        }

    def _known(self, measure: str) -> str:
        if measure not in self.score:
            raise NkcmeError(
                f"the importance has no measure {measure!r}; it has {', '.join(self.score)}"
            )
        return measure


def permutation_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    quantiles: Sequence[float] = (),
    n_repeats: int = 5,
    max_rows: int = 1000,
    random_state: int | None = 0,
) -> Importance:
    """Which inputs matter for the distribution, its centre, its spread, its tails and quantiles.

    An input is shuffled between the rows of a table and all rows are predicted again. How much
    worse the predictions are is measured by

    - ``"crps"``: the CRPS of the distribution;
    - ``"centre"``: the CRPS if only the median changes and distances from the median stay;
    - ``"spread"``: the CRPS if only distances from the median change and the median stays;
    - ``"tails"``: the pinball loss of quantiles beyond the central 90 % interval, if only their
      distances from its ends change;
    - ``"q0.95"`` and the like: the pinball loss of a quantile.

    An input that moves only the spread is thus important for the spread and not for the centre.
    Inputs that are nearly copies of each other share their importance.

    Parameters
    ----------
    model : estimator
        A fitted estimator of one output with ``predict_dist``.
    X : table
        An array, or a pandas or polars frame; best rows that the model was not fitted to.
    y : array_like of shape (n_rows,)
        The observed values.
    quantiles : sequence of float
        Levels between 0 and 1.
    n_repeats : int
        How often each input is shuffled.
    max_rows : int
        Of more rows, so many are chosen at random.
    random_state : int or None
        The seed.

    Returns
    -------
    Importance

    Raises
    ------
    NkcmeError
        If a level is not between 0 and 1, or if the model predicts no distributions.
    TableError
        If ``X`` is no table, or if ``y`` does not fit to it.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nkcme import KernelCME
    >>> from nkcme.explain import permutation_importance
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = KernelCME(random_state=0).fit(X[100:], y[100:])
    >>> importance = permutation_importance(model, X[:100], y[:100], quantiles=[0.9])
    >>> [importance.features[j] for j in importance.order("centre")[:2]]
    ['s5', 'bmi']
    """
    need_distributions(model)
    levels = checked_levels(quantiles)
    n_repeats, max_rows = checked_size(n_repeats), checked_size(max_rows)
    if not n_repeats or not max_rows:
        raise NkcmeError("permutation_importance needs at least one repeat and one row")
    table = as_table(X)
    target = matching_target(y, len(table))
    rng = np.random.default_rng(random_state)
    if len(table) > max_rows:
        chosen = np.sort(rng.choice(len(table), max_rows, replace=False))
        table, target = table[chosen], target[chosen]
    rows, n_features = MixedRows(table), table.shape[1]
    original = _Predicted.of(model, native(table), target, levels)
    score = original.scores(original)
    increase = {name: np.empty((n_repeats, n_features)) for name in score}
    for repeat in range(n_repeats):
        for j in range(n_features):
            shuffled = rows.with_column_of(j, rng.permutation(len(target)))
            changed = _Predicted.of(model, shuffled, target, levels)
            for name, value in original.scores(changed).items():
                increase[name][repeat, j] = value - score[name]
    return Importance(tuple(map(str, rows.names)), score, increase, len(target))


class _Predicted(NamedTuple):
    """Predictions for a table, as far as scores need them."""

    y: np.ndarray
    parts: QuantileParts
    crps: float
    losses: dict[str, float]  # of single quantiles

    @classmethod
    def of(cls, model: Any, X: Any, y: np.ndarray, levels: np.ndarray) -> _Predicted:
        dist = model.predict_dist(X)
        losses = pinball(y, dist.ppf(levels), levels).mean(axis=0)
        by_name = {quantile_name(q): float(one) for q, one in zip(levels, losses, strict=True)}
        return cls(y, QuantileParts.of(dist), float(dist.crps(y).mean()), by_name)

    def scores(self, changed: _Predicted) -> dict[str, float]:
        """The scores of changed predictions, and of these with a part of the changed ones."""
        return {
            "crps": changed.crps,
            "centre": self.parts.with_centre_of(changed.parts).crps(self.y),
            "spread": self.parts.with_spread_of(changed.parts).crps(self.y),
            "tails": self.parts.with_tails_of(changed.parts).tail_loss(self.y),
            **changed.losses,
        }
