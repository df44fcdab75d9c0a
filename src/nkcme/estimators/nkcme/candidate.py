"""A candidate for the final model: a data set, its folds, and perhaps a location model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.location_fitting import LocationFit
from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.training_data import Encoded


@dataclass(frozen=True, eq=False)
class Candidate:
    """What an ensemble of embeddings is fitted to: y, or the residuals of a location model."""

    data: Encoded
    folds: Folds | None
    location: LocationFit | None = None

    def at(self, location: LocationFit | None) -> Candidate:
        """The same data with another location model, or with none."""
        return replace(self, location=location)

    @property
    def location_model(self) -> LocationModel | None:
        """The fitted location model."""
        return None if self.location is None else self.location.model

    @cached_property
    def training_data(self) -> Encoded:
        """The data that the embedding learns from: with a location model its out-of-fold residuals,
        in units of their root mean square, and its out-of-fold predictions as further inputs."""
        data, fit = self.data, self.location
        if fit is None:
            return data
        residuals = fit.residuals(data.y).astype(np.float32)
        data = data._replace(x=fit.inputs(data.x), y=residuals)
        if data.x_validation is None or data.y_validation is None:
            return data
        at = fit.model.at(data.x_validation)
        narrower = fit.unit(fit.model.n_members) / fit.unit(fit.model.n_averaged)
        held_out = ((data.y_validation - at.mean) / (at.scale * narrower)).astype(np.float32)
        return data._replace(x_validation=at.inputs, y_validation=held_out)

    @cached_property
    def explained(self) -> float:
        """The share of the variance of y that the location model explains, of the output where it
        is least; exactly zero if it predicts nothing."""
        y, weight = self.data.y, self.data.weight
        if self.location is None or not self.location.model.weights.any():
            return 0.0
        around = y - np.average(y, axis=0, weights=weight)
        variance = np.average(np.square(around), axis=0, weights=weight)
        unexplained = np.square(self.location.unit()) / np.maximum(variance, 1e-30)
        return max(1.0 - float(np.max(unexplained)), 1e-9)
