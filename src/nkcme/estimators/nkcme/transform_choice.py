"""Whether to model y or log y: given by the user, or by the scores of quick models of both.

A quick model is gradient boosting with the quantiles of its out-of-fold residuals around it, by the
level of the prediction: like `NKCME`, it follows noise that grows with the prediction. Around
log y, residuals are factors of y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nkcme.calibration.effective_rows import effective_rows
from nkcme.distributions.support import EVERYTHING, Support
from nkcme.distributions.transforms import LOG, NONE, restored, transformed
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme import parameters
from nkcme.estimators.nkcme.background_fits import BackgroundFits
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.gradient_boosting import GradientBoosting
from nkcme.estimators.nkcme.law_recipe import TransformRecipe
from nkcme.estimators.nkcme.location_recipe import BoostingRecipe
from nkcme.estimators.nkcme.support_detection import support_of
from nkcme.estimators.training_data import Target, distinct_rows, need_positive
from nkcme.tables.row_groups import RowGroups
from nkcme.training.cores import available_cores

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


def understand_target(
    model: NKCME,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    seed: int,
    groups: RowGroups | None = None,
) -> Target:
    """The values that y can take, and what of y is modelled."""
    support = EVERYTHING
    if parameters.reads_law(model) and y.shape[1] == 1:
        support = support_of(model, y[:, 0], weight)
    return Target(support, transform_of(model, x, y, weight, support, seed, groups))


def transform_of(
    model: NKCME,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    support: Support,
    seed: int,
    groups: RowGroups | None = None,
) -> str:
    """The transform that the parameter means for y (n, d) beside encoded inputs (n, p)."""
    if parameters.transform_parameter(model) == LOG:
        if y.shape[1] > 1:
            raise NkcmeError(
                f'transform="log" is for one output, and y has {y.shape[1]}; transform y yourself, '
                'or use transform="auto"'
            )
        need_positive(y, "y", weight)
        return LOG
    recipe = model._recipe.transform
    if (
        parameters.transform_parameter(model) == NONE
        or y.shape[1] > 1
        or not parameters.may_transform(model)
    ):
        return NONE
    # Without a location model a fit is to be quick, or that of the paper.
    if parameters.has_center(model, "none"):
        return NONE
    if not _may_help(y[weight > 0, 0], support, recipe):
        return NONE
    # Distinct rows in a fixed order: the choice depends on neither their order nor repetitions.
    x, y, weight, groups = distinct_rows(x, y, weight, groups)
    return LOG if compare(x, y, weight, seed, recipe, groups).is_clear(recipe) else NONE


def _may_help(y: np.ndarray, support: Support, recipe: TransformRecipe) -> bool:
    """Whether y (n,) is a positive quantity that spans enough for its logarithm to differ."""
    positive = bool(np.all(y > 0)) and support.lower == 0.0 and np.isinf(support.upper)
    if not positive or support.is_discrete or len(y) < recipe.least_rows:
        return False
    low, high = np.quantile(y, [0.05, 0.95])
    return bool(high > recipe.least_ratio * low)


class Comparison(NamedTuple):
    """By how much quick models of log y have a lower CRPS than those of y."""

    gain: float  # as a share of the CRPS of those of y
    standard_errors: float  # the same in standard errors

    def is_clear(self, recipe: TransformRecipe) -> bool:
        """Whether models of log y are clearly better."""
        return self.gain > recipe.least_gain and self.standard_errors > recipe.standard_errors


def compare(
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    seed: int,
    recipe: TransformRecipe,
    groups: RowGroups | None = None,
) -> Comparison:
    """Compare out-of-fold scores of quick models of log y and of y (n, 1)."""
    order = np.random.default_rng(seed).permutation(len(x))[: recipe.most_rows]
    x, y, weight = x[order], y[order, 0], weight[order] / weight[order].sum()
    fold, n_folds = np.arange(len(y)) % recipe.n_folds, recipe.n_folds
    if groups is not None:
        groups = groups.rows(order)
        folds = Folds.assign_groups(groups, n_folds, 1, seed)
        fold, n_folds = folds.fold[0], folds.n_folds
    boosting = GradientBoosting(_boosting(recipe), len(y), seed)

    def predict(job: tuple[str, int]) -> np.ndarray:
        """The predictions of one fold by a quick model of y or of its transform."""
        transform, k = job
        train, test = fold != k, fold == k
        g = transformed(y, transform)
        held_out = x[test], g[test], weight[test]
        return boosting.fit(x[train], g[train], weight[train], held_out).predicted[-1]

    jobs = [(one, k) for one in (NONE, LOG) for k in range(n_folds)]
    predicted = BackgroundFits(predict, jobs, available_cores()).results()
    in_order = np.argsort(np.argsort(fold, kind="stable"), kind="stable")
    plain, log = (
        _scores(y, weight, np.concatenate(of_folds)[in_order], one, recipe)
        for one, of_folds in (
            (NONE, predicted[:n_folds]),
            (LOG, predicted[n_folds:]),
        )
    )
    gain = float(weight @ (plain - log))
    error = np.sqrt(np.sum(np.square(weight * (plain - log - gain))))
    if groups is not None:
        variance = weight @ np.square(plain - log - gain)
        error = np.sqrt(variance / effective_rows(plain - log, groups, weight))
    return Comparison(gain / float(weight @ plain), gain / max(float(error), 1e-300))


def _boosting(recipe: TransformRecipe) -> BoostingRecipe:
    """The boosting of a quick model: so many trees in one stage, which none is too many for."""
    return BoostingRecipe(
        n_trees=recipe.n_trees,
        stage_trees=recipe.n_trees,
        learning_rate=recipe.learning_rate,
        least_leaves=recipe.n_leaves,
        most_leaves=recipe.n_leaves,
        least_bins=BoostingRecipe.most_bins,
        min_samples_leaf=20,
        l2=0.0,
        max_features=1.0,
    )


def _scores(
    y: np.ndarray,
    weight: np.ndarray,
    predicted: np.ndarray,
    transform: str,
    recipe: TransformRecipe,
) -> np.ndarray:
    """The CRPS (n,) of out-of-fold predictions (n,) of y or of its transform, with the residuals
    of predictions of about one size around each."""
    g = transformed(y, transform)
    n_levels = int(np.clip(len(y) // recipe.rows_per_level, 1, recipe.most_levels))
    level = np.empty(len(y), int)
    level[np.argsort(predicted, kind="stable")] = np.arange(len(y)) * n_levels // len(y)
    scores = np.empty(len(y))
    for k in range(n_levels):
        own = level == k
        residuals = _quantiles((g - predicted)[own], weight[own], recipe.n_quantiles)
        values = restored(predicted[own, None] + residuals, transform)
        # No mass below zero, where the support of y has none either.
        scores[own] = _crps(np.maximum(values, 0.0), y[own])
    return scores


def _quantiles(values: np.ndarray, weight: np.ndarray, n: int) -> np.ndarray:
    """n quantiles of values (m,) at even levels, the middles of n equal shares."""
    order = np.argsort(values)
    values, weight = values[order], weight[order]
    upto = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    return np.interp((np.arange(n) + 0.5) / n, upto, values)


def _crps(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The CRPS of equally likely values (n, k), in increasing order, at y (n,)."""
    k = values.shape[1]
    factor = (2.0 * np.arange(k) + 1.0 - k) / (k * k)
    return np.abs(values - y[:, None]).mean(axis=1) - values @ factor
