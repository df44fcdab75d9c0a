"""What None and "auto" stand for in the parameters of training."""

from __future__ import annotations

from typing import Any

from nkcme.estimators.gradient_trained import GradientTrainedEstimator
from nkcme.estimators.nkcme.recipe import DEFAULT, Recipe
from nkcme.training.optimizers import SCHEDULES, Descent


class WithTrainingDefaults(GradientTrainedEstimator):
    """The recipe, the minibatch and the schedule of `NKCME`, which is its only subclass."""

    recipe: Recipe | None

    _schedules = ("auto", *SCHEDULES)

    @property
    def _recipe(self) -> Recipe:
        return DEFAULT if self.recipe is None else self.recipe

    @property
    def _minibatch(self) -> Any:
        return self._recipe.embedding.batch_size if self.batch_size is None else self.batch_size

    def _descent(self, n_steps: int) -> Descent:
        descent = super()._descent(n_steps)
        return descent._replace(schedule="cosine") if descent.schedule == "auto" else descent
