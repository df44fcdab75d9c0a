"""Learning the law of an ensemble from rows that its members were not trained on.

Where there are rows held out from all training, they are predicted by the whole ensemble, as new
rows are. Otherwise the training rows are predicted out-of-fold, by one member per repeat, and the
change from few members to all is extrapolated.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import logit, ndtri
from sklearn.linear_model import LogisticRegression

from nkcme.calibration.calibration_map import (
    N_STEPS,
    CalibrationMap,
    extrapolated_counts,
    pit_counts,
)
from nkcme.calibration.effective_rows import effective_rows
from nkcme.calibration.tail_fitting import fit_tails
from nkcme.distributions.embedding import Embedding, summing_to_one
from nkcme.distributions.readings import Measure
from nkcme.distributions.spread_atoms import SpreadAtoms
from nkcme.distributions.support import EVERYTHING, Support
from nkcme.distributions.tails import Tails
from nkcme.distributions.transforms import transformed
from nkcme.estimators.nkcme.background_fits import BackgroundFits
from nkcme.estimators.nkcme.ensemble import Ensemble, EnsembleFit
from nkcme.estimators.nkcme.fitted_model import member_spread
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.law_recipe import LawRecipe
from nkcme.estimators.nkcme.novelty import Novelty, bounds_of
from nkcme.estimators.training_data import Encoded
from nkcme.tables.row_groups import RowGroups

#: Rows by which the shape of a law is chosen; more hardly change the choice.
_CHOICE_ROWS = 1000

#: Normal scores are those of probabilities from here on: no outlier alone decides what rows are
#: worth.
_LEAST_PIT = 0.005


class Predicted(NamedTuple):
    """Predictions of rows by members that were not trained on them."""

    ensemble: Ensemble
    weights: np.ndarray  # (n_repeats, n, m); one repeat where the whole ensemble predicts
    location: np.ndarray  # (1 or n, 1), in units of y, or of its transform
    scale: np.ndarray  # (1 or n, 1)
    y: np.ndarray  # (n,), in its own units
    transform: str
    weight: np.ndarray  # (n,)
    n_members: int  # that will predict new rows; those here are one per repeat
    groups: RowGroups | None = None  # of rows that depend on each other

    def rows(self, chosen: np.ndarray) -> Predicted:
        """Some of the rows."""
        location, scale = (u if len(u) == 1 else u[chosen] for u in (self.location, self.scale))
        return self._replace(
            weights=self.weights[:, chosen],
            location=location,
            scale=scale,
            y=self.y[chosen],
            weight=self.weight[chosen],
            groups=None if self.groups is None else self.groups.rows(chosen),
        )

    def halves(self) -> list[Predicted]:
        """Two halves of the rows, of other groups each, or before and after a moment."""
        half: np.ndarray = np.arange(len(self.y)) % 2
        if self.groups is not None:
            half = np.unique(self.groups.codes, return_inverse=True)[1]
            half = half > np.median(half) if self.groups.by_time else half % 2
        return [self.rows(np.flatnonzero(half == number)) for number in (0, 1)]

    def effective_rows(self, law: Law) -> float:
        """How many independent rows these are worth for the calibration of a law."""
        if self.groups is None:
            return float(len(self.y))
        dist = self.distribution(law, self.weights.mean(axis=0))
        pit = np.clip(dist.cdf(self.y) - 0.5 * dist.pmf(self.y), _LEAST_PIT, 1.0 - _LEAST_PIT)
        return effective_rows(ndtri(pit), self.groups, self.weight)

    @property
    def z(self) -> np.ndarray:
        """y, or its transform, in standard units."""
        return (transformed(self.y, self.transform) - self.location[:, 0]) / self.scale[:, 0]

    def log_density(self, law: Law) -> np.ndarray:
        """The log density of each y under a law, for the mean over repeats."""
        return self.distribution(law, self.weights.mean(axis=0)).logpdf(self.y)

    def scores(self, law: Law) -> tuple[float, float]:
        """The mean CRPS, and the mean log density, of a law before it is confined to a support."""
        weights = self.weights.mean(axis=0)
        dist = self.distribution(replace(law, support=EVERYTHING), weights)
        values = (dist.crps(self.y), dist.logpdf(self.y))
        crps, density = (float(np.average(value, weights=self.weight)) for value in values)
        return crps, density

    def counts(self, law: Law, weights: np.ndarray) -> np.ndarray:
        """The counts of F(y | x); where F jumps at y they are spread over the jump."""
        dist = self.distribution(law, weights)
        upper = dist.cdf(self.y)
        return pit_counts(upper, self.weight, lower=upper - dist.pmf(self.y))

    def distribution(self, law: Law, weights: np.ndarray) -> Embedding:
        """The distributions of y by a law, for weights (n, m) of the ensemble."""
        weights = law.weights(weights, self.ensemble.atoms, "law")
        return law.embedding(self.ensemble, weights, self.location, self.scale, "law")


def fit_law(
    fit: EnsembleFit, held_out: Encoded | None, recipe: LawRecipe, *, always_map: bool = False
) -> Law:
    """The law of an ensemble.

    1. The smoothing, the reach of the atoms and the share of the average prediction are the
       likeliest of those with a low CRPS.
    2. The tails are fitted to the outermost residuals.
    3. The calibration map is fitted to F(y | x). With held-out rows it is kept if maps fitted to
       either half of them raise the likelihood of the other half. Without, it also says what
       averaging all members changes, which no score of the training rows shows. ``always_map``
       keeps it in any case.
    4. The log odds of point masses on bounds are calibrated by logistic regression.
    5. What is usual among the training rows says later which rows are new.
    """
    novelty = BackgroundFits(lambda rows: _novelty(fit, rows, recipe), [held_out], n_threads=1)
    try:
        law = _law(fit, held_out, recipe, always_map)
        return replace(law, novelty=novelty.results()[0])
    finally:
        novelty.abandon()


def _law(fit: EnsembleFit, held_out: Encoded | None, recipe: LawRecipe, always_map: bool) -> Law:
    """The first four steps of `fit_law`."""
    predicted = _held_out(fit, held_out) if held_out is not None else _out_of_fold(fit)
    law = _best(predicted, Law(*fit.candidate.data.target), recipe)
    if always_map or held_out is None or _map_helps(predicted, law, recipe):
        law = replace(law, calibration=_fit_map(predicted, law, recipe))
    if predicted.groups is not None:
        law = replace(law, calibration=_for_dependent(predicted, law))
    if law.support.reached:
        law = replace(law, support=_with_odds(predicted, law))
    return law


def _held_out(fit: EnsembleFit, held_out: Encoded) -> Predicted:
    inputs, units = held_out.x, (held_out.scaler.location[None], held_out.scaler.scale[None])
    if fit.candidate.location is not None:
        at = fit.candidate.location.model.at(held_out.x)
        inputs = at.inputs
        units = (held_out.scaler.inverse(at.mean), held_out.scaler.scale * at.scale)
    weights = fit.ensemble.weights(inputs)[None]
    y, transform = held_out.exact_y, held_out.target.transform
    return Predicted(
        fit.ensemble,
        weights,
        *units,
        y,
        transform,
        held_out.weight,
        1,
        held_out.groups,
    )


def _out_of_fold(fit: EnsembleFit) -> Predicted:
    data, location = fit.candidate.data, fit.candidate.location
    units = (data.scaler.location[None], data.scaler.scale[None])
    if location is not None:
        scale = data.scaler.scale * location.unit() * location.relative_scale
        units = (data.scaler.inverse(location.predicted), scale)
    weight = data.weight * (data.n_rows / data.weight.sum())
    assert fit.candidate.folds is not None
    n_members = fit.candidate.folds.n_members
    each = fit.out_of_fold_weights
    y, transform = data.exact_y, data.target.transform
    return Predicted(
        fit.ensemble,
        each,
        *units,
        y,
        transform,
        weight,
        n_members,
        data.groups,
    )


def _best(predicted: Predicted, law: Law, recipe: LawRecipe) -> Law:
    """The law with the smoothing, the overlap and the average prediction that score best."""
    weights = summing_to_one(predicted.weights.mean(axis=0))
    prior = np.average(weights, axis=0, weights=predicted.weight)
    chosen = np.linspace(0, len(predicted.y) - 1, min(len(predicted.y), _CHOICE_ROWS)).astype(int)
    some = predicted.rows(chosen)
    bandwidth = predicted.ensemble.bandwidth
    tails = {overlap: _tails(predicted, overlap, recipe) for overlap in recipe.overlaps}

    def best(laws: list[Law]) -> Law:
        """The likeliest law of those whose CRPS is next to the lowest."""
        scores = [some.scores(one) for one in laws]
        least = min(crps for crps, _ in scores)
        allowed = [
            (density, i)
            for i, (crps, density) in enumerate(scores)
            if crps <= (1.0 + recipe.crps_room) * least
        ]
        return laws[max(allowed)[1]]

    share = recipe.prior_shares[len(recipe.prior_shares) // 2]
    law = replace(law, prior=prior, prior_share=share)
    shapes = product(recipe.overlaps, recipe.smoothings)
    law = best(
        [
            replace(law, overlap=overlap, smoothing=smoothing * bandwidth, tails=tails[overlap])
            for overlap, smoothing in shapes
        ]
    )
    return best([replace(law, prior_share=share) for share in recipe.prior_shares])


def _tails(predicted: Predicted, overlap: float, recipe: LawRecipe) -> Tails:
    atoms = predicted.ensemble.atoms.astype(np.float64)
    measure = Measure(np.sort(atoms, axis=0), predicted.weights[0], "gaussian", 1.0)
    edges = SpreadAtoms(measure, overlap).edges
    return fit_tails(
        predicted.z,
        predicted.weight,
        float(edges[0]),
        float(edges[-1]),
        share=recipe.tail_share,
        least_rows=recipe.least_tail_rows,
    )


def _fit_map(predicted: Predicted, law: Law, recipe: LawRecipe) -> CalibrationMap:
    """The map for the mean of all members.

    With one repeat, that of rows predicted as new rows are, the counts under the mapped law give a
    correction of the map, and so on: where F jumps, one map does not make them even.
    """
    each = predicted.weights
    if len(each) > 1:
        of_one = np.mean([predicted.counts(law, weights) for weights in each], axis=0)
        of_all = predicted.counts(law, each.mean(axis=0))
        expected = extrapolated_counts(of_one, of_all, len(each), predicted.n_members)
        return _map_of(of_all, recipe, expected)
    fitted = _map_of(predicted.counts(law, each[0]), recipe)
    for _ in range(recipe.n_corrections):
        counts = predicted.counts(replace(law, calibration=fitted), each[0])
        fitted = CalibrationMap(_map_of(counts, recipe)(fitted.values))
    return fitted


def _map_of(
    counts: np.ndarray, recipe: LawRecipe, expected: np.ndarray | None = None
) -> CalibrationMap:
    return CalibrationMap.from_counts(
        counts,
        expected=expected,
        uniform_rows=recipe.calibration_uniform_rows,
        beta_rows=recipe.calibration_beta_rows,
    )


def _for_dependent(predicted: Predicted, law: Law) -> CalibrationMap:
    """The map, or none at all, as it must be for rows that are worth fewer independent ones."""
    fitted = law.calibration or CalibrationMap(np.linspace(0.0, 1.0, N_STEPS + 1))
    return fitted.widened(predicted.effective_rows(law))


def _map_helps(predicted: Predicted, law: Law, recipe: LawRecipe) -> bool:
    """Whether maps that are fitted to one half of the rows raise the likelihood of the other."""
    halves = predicted.halves()
    gain = 0.0
    for fitted_to, scored_on in (halves, halves[::-1]):
        mapped = replace(law, calibration=_fit_map(fitted_to, law, recipe))
        difference = scored_on.log_density(mapped) - scored_on.log_density(law)
        gain += float(difference @ scored_on.weight)
    return gain > 0.0


def _novelty(fit: EnsembleFit, held_out: Encoded | None, recipe: LawRecipe) -> Novelty:
    data, location = fit.candidate.data, fit.candidate.location
    chosen = np.arange(len(data.x))[:: -(-len(data.x) // recipe.novelty.most_rows)]
    some = data.rows(chosen)
    spread = _spread_at(fit, some.x if held_out is None else held_out.x)
    if held_out is None:
        # Members agree more on rows that most of them were trained on than on new ones.
        of_new = fit.out_of_fold_spread()[chosen]
        spread *= max(of_new.mean() / max(spread.mean(), 1e-30), 1.0)
    learned = Novelty.learn(
        some, spread, recipe.novelty, located=location is not None, bounds=bounds_of(data.x)
    )
    if held_out is None or not held_out.by_time:
        return learned
    # Later rows are beyond the training rows, as those that the law was learned from.
    return learned.knowing(held_out.x, recipe.novelty)


def _spread_at(fit: EnsembleFit, x: np.ndarray) -> np.ndarray:
    location = fit.candidate.location
    return member_spread(fit.ensemble, None if location is None else location.model.at(x), x)


def _with_odds(predicted: Predicted, law: Law) -> Support:
    """The support with calibrated log odds of its point masses."""
    dist = predicted.distribution(law, predicted.weights.mean(axis=0))
    odds = []
    for bound in law.support.reached:
        mass = np.clip(dist.pmf(bound), 1e-9, 1.0 - 1e-9)
        regression = LogisticRegression().fit(
            logit(mass)[:, None], predicted.y == bound, predicted.weight
        )
        odds.append((float(regression.intercept_[0]), float(regression.coef_[0, 0])))
    return replace(law.support, odds=tuple(odds))
