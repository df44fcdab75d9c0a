"""Choosing a candidate by its out-of-fold score: no location model, one, or one with a scale."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from nkcme.calibration.effective_rows import effective_rows
from nkcme.errors import TrainingError
from nkcme.estimators.nkcme.candidate import Candidate
from nkcme.estimators.nkcme.embedding_network import energy_scores
from nkcme.estimators.nkcme.ensemble import EnsembleFit, EnsembleTraining
from nkcme.estimators.nkcme.location_fitting import with_scale
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.estimators.replica_training import Run
from nkcme.tables.row_groups import RowGroups

#: The names of candidates, the simplest first.
FIXED, LOCATED, SCALED = "fixed", "located", "scaled"


def alternatives(candidate: Candidate, recipe: Recipe) -> dict[str, Candidate]:
    """The candidates to compare, the simplest first.

    Fixed atoms, unless the location model explains so much of y that they cannot be better; the
    location model, if it explains anything; and for several outputs the same with a scale. (For one
    output the weights describe the scale as well.)
    """
    found = {}
    if candidate.explained < recipe.explains_enough(candidate.data.n_rows):
        found[FIXED] = candidate.at(None)
    if candidate.explained > 0:
        found[LOCATED] = candidate
    if candidate.data.y.shape[1] > 1:
        assert candidate.location is not None
        assert candidate.folds is not None
        (scaled,) = with_scale(
            [candidate.location], [candidate.data], [candidate.folds], recipe.location
        )
        found[SCALED] = candidate.at(scaled)
    return found


def select(
    located: Sequence[EnsembleFit],
    recipe: Recipe,
    training: Mapping[str, EnsembleTraining],
    run: Run,
) -> list[EnsembleFit]:
    """The best candidate of each data set by its out-of-fold energy score.

    A candidate whose training diverges is left out, with a warning.

    Parameters
    ----------
    located : sequence of EnsembleFit
        Ensembles around location models, one per data set.
    recipe : Recipe
    training : mapping of str to EnsembleTraining
        How the other candidates are trained, by their names.
    run : Run
    """
    options = [alternatives(one.candidate, recipe) for one in located]
    fits = [{LOCATED: one} for one in located]
    for name in (FIXED, SCALED):
        compared = [i for i, of_data in enumerate(options) if name in of_data]
        if not compared:
            continue
        try:
            chosen = [options[i][name] for i in compared]
            fitted = training[name].fit(chosen, run.group(name))
        except TrainingError as error:  # the table can be predicted without this candidate
            warnings.warn(f"a candidate is left out, {name} atoms: {error}", stacklevel=2)
            continue
        if any(one.interrupted for one in fitted):
            return [_interrupted(one) for one in located]
        for i, one in zip(compared, fitted, strict=True):
            fits[i][name] = one
    return [
        best({name: of_data[name] for name in names if name in of_data} or of_data)
        for names, of_data in zip(options, fits, strict=True)
    ]


def best(fits: dict[str, EnsembleFit]) -> EnsembleFit:
    """The best of several ensembles of one data set, given the simplest first.

    A simpler one is given up only for one whose score is clearly better.
    """
    chosen, *others = fits
    if not others:
        return fits[chosen]
    scores = {name: out_of_fold_scores(fit) for name, fit in fits.items()}
    data = fits[chosen].candidate.data
    for name in others:
        gain = scores[chosen] - scores[name]
        if is_clearly_positive(gain, data.weight, data.groups):
            chosen = name
    return fits[chosen]


def out_of_fold_scores(fit: EnsembleFit) -> np.ndarray:
    """The out-of-fold energy score of each row, in units of standardised y.

    The weights are averaged over repeats, as they are over members for new rows: a location model
    gains more by that than fixed atoms.
    """
    data, location = fit.candidate.training_data, fit.candidate.location
    weights = np.sum(fit.out_of_fold_weights, axis=0)
    # A score has the unit of its residual: that of all rows, times that of the row.
    unit, of_row = np.ones(1), np.ones(len(data.y))
    if location is not None:
        unit, of_row = location.unit(), location.relative_scale[:, 0]
    y = unit * data.y
    return of_row * energy_scores(weights, unit * fit.ensemble.atoms, y)


def is_clearly_positive(
    gain: np.ndarray, weight: np.ndarray, groups: RowGroups | None = None
) -> bool:
    """Whether the mean over rows is above zero by more than its standard error.

    Rows of one of ``groups`` are not independent, and count as fewer.

    The most extreme percent of rows do not count in the error: a few wild rows, for better or
    worse, do not hide a mean that is clear without them.
    """
    bounded = np.clip(gain, *np.quantile(gain, [0.005, 0.995]))
    typical = np.average(bounded, weights=weight)
    variance = np.average(np.square(bounded - typical), weights=weight)
    n_rows: float = len(gain)
    if groups is not None:
        n_rows = effective_rows(bounded, groups, weight)
    return bool(np.average(gain, weights=weight) > np.sqrt(variance / n_rows))


def _interrupted(fit: EnsembleFit) -> EnsembleFit:
    return EnsembleFit(fit.candidate, fit.ensemble, fit.history, fit.n_steps, interrupted=True)
