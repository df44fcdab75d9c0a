"""The calibration map of an ensemble, from its out-of-fold predictions."""

from __future__ import annotations

import numpy as np

from nkcme.calibration.calibration_map import CalibrationMap, extrapolated_counts, pit_counts
from nkcme.distributions.embedding import summing_to_one
from nkcme.estimators.nkcme.ensemble import EnsembleFit
from nkcme.estimators.nkcme.recipe import Recipe


def fit_calibration_map(fit: EnsembleFit, recipe: Recipe) -> CalibrationMap:
    """A map of predicted probabilities to observed ones, for the mean of all members.

    Out-of-fold, a row is predicted by one member per repeat, and a new row by all members. The
    counts of PIT values for one repeat and for all repeats together are extrapolated to those of
    all members.
    """
    folds, data = fit.candidate.folds, fit.candidate.training_data
    assert folds is not None
    weight = fit.candidate.data.weight
    weight = weight * (fit.candidate.data.n_rows / weight.sum())

    def counts(weights: np.ndarray) -> np.ndarray:
        embedding = fit.ensemble.embedding(summing_to_one(weights), 0.0, 1.0, "atomic")
        return pit_counts(embedding.cdf(data.y[:, 0]), weight)

    each = fit.out_of_fold_weights
    of_one_repeat = np.mean([counts(weights) for weights in each], axis=0)
    of_all_repeats = counts(np.sum(each, axis=0))
    return CalibrationMap.from_counts(
        extrapolated_counts(of_one_repeat, of_all_repeats, folds.n_repeats, folds.n_members),
        uniform_rows=recipe.calibration_uniform_rows,
        beta_rows=recipe.calibration_beta_rows,
    )
