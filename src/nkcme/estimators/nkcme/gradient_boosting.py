"""Gradient boosting by LightGBM, stopped where the mean of all members is best out-of-fold.

Every member of a cross-fitted base has rows that it was not trained on. Predictions of them are
kept after each stage of a few trees. Once all members are fitted, one number of trees is chosen for
all: that with the smallest error of the mean of *all* members (`Stack.error`). This number is
larger than the best one of a single member, because averaging removes a part of what a member
overfits, and one choice from all rows is nearly unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.recipe import BoostingRecipe
from nkcme.estimators.nkcme.stacking import Stack


class StagedTrees(NamedTuple):
    """A fitted member, and how it predicted held-out rows after each stage of training."""

    trees: Callable[[int], BoostedTrees]  # the first so many
    n_trees: list[int]  # (n_stages,)
    predicted: list[np.ndarray]  # (n_stages, n_held_out)

    @property
    def n_stages(self) -> int:
        return len(self.n_trees)

    def first(self, n_stages: int) -> BoostedTrees:
        """The trees of the first stages; all of them where they are fewer."""
        return self.trees(self.n_trees[min(n_stages, self.n_stages) - 1])

    def predicted_after(self, n_stages: int) -> np.ndarray:
        """How they predict the held-out rows, (n_held_out,)."""
        return self.predicted[min(n_stages, self.n_stages) - 1]


class GrowingTrees:
    """A member that is being fitted, in stages of a few trees.

    Parameters
    ----------
    recipe : BoostingRecipe
    booster : lightgbm.Booster
        Without trees. If there are held-out rows, they are its validation set: it then predicts
        them as it grows.
    held_out : tuple of arrays
        x, y and weights of rows that it is not trained on.
    """

    def __init__(
        self,
        recipe: BoostingRecipe,
        booster: Any,
        held_out: tuple[np.ndarray, np.ndarray, np.ndarray],
    ):
        self._recipe, self._booster, self._held_out = recipe, booster, held_out
        self._n_trees, self._errors = [0], list[float]()
        self._predicted = [np.zeros(len(held_out[0]))]
        self._ended = False

    def grow(self, most_trees: int | None = None, paused: Event | None = None) -> None:
        """Add stages until there are enough, ``most_trees``, or a pause is asked for."""
        _, y, weight = self._held_out
        for size in self._recipe.stage_sizes[len(self._errors) :]:
            few = most_trees is None or self._n_trees[-1] < most_trees
            if self._ended or not few or (paused is not None and paused.is_set()):
                return
            for _ in range(size):
                self._booster.update()
            if self._booster.num_trees() == self._n_trees[-1]:  # no leaf can be split
                self._ended = True
                return
            self._n_trees.append(self._booster.num_trees())
            self._predicted.append(self._predict_held_out())
            self._errors.append(float(weight @ np.square(self._predicted[-1] - y)))
            best = 1 + int(np.argmin(self._errors))
            self._ended = self._recipe.is_enough(len(self._errors), best)

    def _predict_held_out(self) -> np.ndarray:
        """The predictions of the held-out rows by all trees so far."""
        found = [np.zeros(0)]

        def keep(predicted: np.ndarray, _: Any) -> tuple[str, float, bool]:
            found.append(predicted.copy())
            return "", 0.0, False

        self._booster.eval_valid(keep)  # LightGBM shows them to functions that compute a metric
        return found[-1]

    def predicted_after(self, n_trees: int) -> np.ndarray:
        """How the first ``n_trees``, or all where they are fewer, predict the held-out rows."""
        stages = sum(n <= n_trees for n in self._n_trees)
        return self._predicted[max(stages, min(2, len(self._n_trees))) - 1]

    def result(self, most_trees: int | None = None) -> StagedTrees:
        """The trees so far, at most ``most_trees``."""

        def first(n_trees: int) -> BoostedTrees:
            return BoostedTrees.of_text(self._booster.model_to_string(num_iteration=n_trees))

        end = len(self._n_trees)
        if most_trees is not None:
            end = max(sum(n <= most_trees for n in self._n_trees), min(2, end))
        return StagedTrees(first, self._n_trees[1:end], self._predicted[1:end])


@dataclass(frozen=True)
class GradientBoosting:
    """Gradient boosting for one output of a table of ``n_rows``."""

    recipe: BoostingRecipe
    n_rows: int
    seed: int = 0

    def fit(
        self,
        x: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        held_out: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> StagedTrees:
        """Trees for rows (n, p), y (n,) and weights (n,); ``held_out`` are x, y and weights of
        other rows. Training ends long after the best prediction of these."""
        growing = self.start(x, y, weight, held_out)
        growing.grow()
        return growing.result()

    def start(
        self,
        x: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        held_out: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> GrowingTrees:
        """The same before its first tree."""
        import lightgbm  # here, because it is not needed to use a model

        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)  # it warns of slices
        differing = weight if np.ptp(weight) else None  # without weights it is faster
        table = lightgbm.Dataset(x, y, weight=differing, params=self.parameters)
        booster = lightgbm.Booster(self.parameters, table)
        if len(held_out[0]):
            rows, target = (np.ascontiguousarray(column) for column in held_out[:2])
            booster.add_valid(table.create_valid(rows, target, params=self.parameters), "held out")
        return GrowingTrees(self.recipe, booster, held_out)

    @property
    def parameters(self) -> dict[str, int | float | bool | str]:
        """LightGBM's; encoded inputs have neither missing values nor categories."""
        return {
            "objective": "l2",
            "metric": "None",  # our own is computed from the predictions
            "learning_rate": self.recipe.learning_rate,
            "num_leaves": self.recipe.n_leaves(self.n_rows),
            "min_data_in_leaf": self.recipe.min_samples_leaf,
            "min_sum_hessian_in_leaf": 0.0,
            "lambda_l2": self.recipe.l2,
            "max_bin": self.recipe.n_bins(self.n_rows),
            "feature_fraction_bynode": self.recipe.max_features,
            "use_missing": False,
            "seed": self.seed % 2**31,
            "deterministic": True,
            "force_col_wise": True,  # LightGBM would time both ways first
            "num_threads": 1,  # several would wait for each other; members are fitted side by side
            "verbosity": -1,
        }


def stop_members(
    members: Sequence[StagedTrees], y: np.ndarray, weight: np.ndarray, folds: Folds
) -> tuple[list[Callable[[], BoostedTrees]], np.ndarray]:
    """Functions that read the members, with one number of trees for all, and their out-of-fold
    predictions (n_repeats, n) of y (n,)."""

    def out_of_fold(n_stages: int) -> np.ndarray:
        return folds.out_of_fold(lambda member, _: members[member].predicted_after(n_stages))

    def error(n_stages: int) -> float:
        bases = out_of_fold(n_stages)[None]
        return Stack.fit(bases, y, weight, folds.n_members, 0.0).error(folds.n_members)

    best = min(range(1, max(member.n_stages for member in members) + 1), key=error)
    return [partial(member.first, best) for member in members], out_of_fold(best)
