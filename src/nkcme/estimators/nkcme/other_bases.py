"""The bases beside the networks of a location model, and how many trees are worth growing.

Every member first grows its first trees, while networks are compiled and take their first steps.
Where networks then have the smaller error, the other trees wait until the networks have trained to
their end. Then

- trees that add nothing to the networks are left out,
- and the others grow, each time to twice as many, until they cannot come near the networks and add
  little to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.location_regressors import RegressorFits
from nkcme.estimators.nkcme.recipe import LocationRecipe
from nkcme.estimators.nkcme.shared_fits import SharedFits
from nkcme.estimators.nkcme.stacking import errors_of, fit_stacks
from nkcme.estimators.training_data import Encoded

#: Regressors by name, of each data set, and their out-of-fold predictions.
Found = dict[str, list[tuple[Any, np.ndarray]]]


@dataclass(frozen=True, eq=False)
class OtherBases:
    """The bases beside the networks, which are fitted while the networks train."""

    regressors: dict[str, Any]
    fits: RegressorFits | SharedFits
    datasets: Sequence[Encoded]
    folds: Sequence[Folds]
    recipe: LocationRecipe
    may_leave_out: bool  # whether trees that add nothing may be left out
    on_gpu: bool  # whether networks do not train on the cores that trees grow on

    @cached_property
    def collected(self) -> Found:
        """The fitted regressors by name, and their out-of-fold predictions; waited for."""
        return dict(zip(self.regressors, self.fits.collect(), strict=True))

    def stack_error(self, number: int, *out_of_fold: np.ndarray) -> float:
        """The error of a stack of bases with these predictions, in the mean over outputs."""
        data, folds = self.datasets[number], self.folds[number]
        stacks = fit_stacks(
            data.y, data.weight, folds.n_members, out_of_fold, self.recipe.least_bias_share
        )
        return float(np.sqrt(np.mean(np.square(errors_of(stacks, folds.n_members)))))

    def errors(self, networks: Sequence[np.ndarray]) -> np.ndarray:
        """The error of the other bases on each data set, beside networks with these out-of-fold
        predictions: that of the first trees where the rest of them wait for the networks.

        On a GPU the rest always waits: networks take seconds there, and may show that no more trees
        are needed.
        """
        if not self.regressors:
            return np.full(len(self.datasets), np.inf)
        if first := self.fits.predicted_after(self._first):
            of_first = np.array([self.stack_error(*one) for one in enumerate(first)])
            if self.on_gpu or np.all(self._errors_alone(networks) < of_first):
                self.fits.pause()
                return of_first
        fitted = self.collected.values()
        return np.array(
            [self.stack_error(i, *(each[i][1] for each in fitted)) for i in range(len(networks))]
        )

    def beside(self, networks: Sequence[np.ndarray]) -> Found:
        """The regressors that are worth having beside trained networks with these predictions."""
        if not self.regressors or self._are_hopeless(networks):
            return {}
        # Also where all trees were grown while networks did not lead yet: a run that goes on from a
        # checkpoint has not seen those networks, and ends with the same trees.
        if self._end_where_enough(networks):
            return dict(zip(self.regressors, self.fits.collect(), strict=True))
        return self.collected

    def _are_hopeless(self, networks: Sequence[np.ndarray]) -> bool:
        """Whether the first trees show that trees would add nothing to networks with these
        out-of-fold predictions. All data sets decide together, because the networks of their
        weights train as one program, with one number of inputs."""
        first = self.fits.predicted_after(self._first) if self.may_leave_out else []
        return bool(first) and all(
            self._adds_nothing(i, *pair) for i, pair in enumerate(zip(networks, first, strict=True))
        )

    def _adds_nothing(self, number: int, networks: np.ndarray, trees: np.ndarray) -> bool:
        alone = self.stack_error(number, networks)
        if alone > self.recipe.hopeless_ratio * self.stack_error(number, trees):
            return False
        together = self.stack_error(number, networks, trees)
        return together > (1.0 - self.recipe.hopeless_gain) * alone

    def _end_where_enough(self, networks: Sequence[np.ndarray]) -> bool:
        """Grow the trees of each data set to twice as many, as often as that may help; whether some
        ended before they were all grown."""
        growing, n_trees = list(range(len(networks))), self._first
        while growing and n_trees < self.recipe.boosting.n_trees:
            before, after = (
                self.fits.predicted_after(n_trees // 2),
                self.fits.predicted_after(n_trees),
            )
            if not after:  # no boosting
                return False
            enough = [
                i for i in growing if self._are_enough(i, n_trees, networks[i], before[i], after[i])
            ]
            self.fits.end(enough, n_trees)
            growing = [i for i in growing if i not in enough]
            n_trees *= 2
            self.fits.grow(growing, n_trees)
        return len(growing) < len(networks)

    def _are_enough(
        self, number: int, n_trees: int, networks: np.ndarray, before: np.ndarray, now: np.ndarray
    ) -> bool:
        """Whether so many trees are enough beside these networks, by the predictions of half of
        them and of all."""
        error, error_before = self.stack_error(number, now), self.stack_error(number, before)
        # At best the error falls by the same factor whenever the trees double.
        doublings = np.log2(self.recipe.boosting.n_trees / n_trees)
        reached = error * min(error / error_before, 1.0) ** doublings
        if self.stack_error(number, networks) > self.recipe.enough_ratio * reached:
            return False
        together = self.stack_error(number, networks, before)
        return self.stack_error(number, networks, now) > (1.0 - self.recipe.enough_gain) * together

    def _errors_alone(self, predicted: Sequence[np.ndarray]) -> np.ndarray:
        return np.array([self.stack_error(*one) for one in enumerate(predicted)])

    @property
    def _first(self) -> int:
        return self.recipe.boosting.first_trees
