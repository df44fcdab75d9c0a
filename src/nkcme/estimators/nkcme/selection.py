"""What the members of an `NKCME` learn from: a data set, its parts, what its centre leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nkcme.estimators.base import Encoded
from nkcme.estimators.nkcme.ensemble import (
    NeuralEmbedding,
    energy_of_atoms,
    weights_out_of_part,
)
from nkcme.estimators.nkcme.folds import Parts
from nkcme.estimators.nkcme.location_fitting import CenterFit, with_scale


class LearningTask(NamedTuple):
    """A data set to learn, dealt into parts where members are cross-fitted, with its centre."""

    data: Encoded
    parts: Parts | None
    center: CenterFit | None = None

    def uncentred(self) -> LearningTask:
        return self._replace(center=None)

    def with_scale(self) -> LearningTask:
        """The same with a scale s(x) beside the centre."""
        if self.center is None or self.parts is None:
            raise ValueError("there is no centre to have a scale")
        (fit,) = with_scale([self.center], [self.data], [self.parts])
        return self._replace(center=fit)

    def options(self, beyond_doubt: float) -> dict[str, LearningTask]:
        """What is to be compared, the simplest first. No centre, unless this one explains so large
        a share of y; the centre, if it explains anything; for several outputs the same with a scale
        (what one output's scale is, its weights tell as well)."""
        explained = self.explained()
        found = {}
        if explained < beyond_doubt:
            found["uncentred"] = self.uncentred()
        if explained > 0:
            found["centred"] = self
        if self.data.y.shape[1] > 1:
            found["scaled"] = self.with_scale()
        return found

    def explained(self) -> float:
        """The share of the variance of y that the centre explains, of the output where it is least;
        exactly zero where it says nothing."""
        y, weight = self.data.y, self.data.weight
        if self.center is None or not self.center.center.weights.any():
            return 0.0
        around = y - np.average(y, axis=0, weights=weight)
        variance = np.average(np.square(around), axis=0, weights=weight)
        left = np.square(self.center.unit()) / np.maximum(variance, 1e-30)
        return max(1.0 - float(np.max(left)), 1e-9)

    def left(self) -> Encoded:
        """What the embedding is learned from: y less its centre, in units of what that leaves out
        of part."""
        data, fit = self.data, self.center
        if fit is None:
            return data
        residuals = fit.residuals(data.y).astype(np.float32)
        data = data._replace(x=fit.inputs(data.x), y=residuals)
        if data.x_validation is None or data.y_validation is None:
            return data
        at = fit.center.at(data.x_validation)
        narrower = fit.unit(fit.center.n_members) / fit.unit(fit.center.n_averaged)
        held_out = ((data.y_validation - at.mean) / (at.scale * narrower)).astype(np.float32)
        return data._replace(x_validation=at.inputs, y_validation=held_out)


def energy_out_of_part(model: NeuralEmbedding, task: LearningTask) -> np.ndarray:
    """The energy score of what members say of rows they have not seen, a value a row, in units of
    standardised y. All deals speak, for a centre gains by it more than atoms that stay."""
    assert task.parts is not None
    left = task.left()
    weights = np.sum(
        [weights_out_of_part(model, left.x, task.parts, d) for d in range(task.parts.n_deals)],
        axis=0,
    )
    # A score is as large as the unit it is measured in, be it that of all rows or of one.
    unit, of_row = np.ones(1), np.ones(len(left.y))
    if task.center is not None:
        unit, of_row = task.center.unit(), task.center.relative[:, 0]
    y = unit * left.y
    atoms = unit * np.asarray(model.atoms.locations[0])
    scores = [
        energy_of_atoms(weights[i : i + _ROWS_AT_ONCE], atoms, y[i : i + _ROWS_AT_ONCE])
        for i in range(0, len(y), _ROWS_AT_ONCE)
    ]
    return of_row * np.concatenate([np.asarray(score) for score in scores])


#: Rows that are scored at once.
_ROWS_AT_ONCE = 1 << 14


def preferred(scores: dict[str, np.ndarray], weight: np.ndarray) -> str:
    """Which of several to take by their scores, a value a row, the simplest first: it is left for
    the next one only where that is clearly better."""
    best, *others = scores
    for name in others:
        if is_clear(scores[best] - scores[name], weight):
            best = name
    return best


def is_clear(gain: np.ndarray, weight: np.ndarray) -> bool:
    """Whether a mean over rows is above zero by more than its standard error."""
    mean = np.average(gain, weights=weight)
    variance = np.average(np.square(gain - mean), weights=weight)
    return bool(mean > np.sqrt(variance / len(gain)))
