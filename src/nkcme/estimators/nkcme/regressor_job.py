"""A regressor that is fitted to one member's rows in another thread, at once or in steps."""

from __future__ import annotations

from threading import Event
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.extra_trees import ExtraTrees
from nkcme.estimators.nkcme.gradient_boosting import GradientBoosting, GrowingTrees


class RegressorJob:
    """A regressor to fit to one output of a data set, and x, y and weights of the held-out rows."""

    def __init__(
        self,
        number: int,
        regressor: Any,
        x: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        held_out: tuple[np.ndarray, np.ndarray, np.ndarray],
    ):
        self.number, self.regressor, self.held_out = number, regressor, held_out
        self.most_trees: int | None = None  # of boosting, that are kept
        self._rows = x, y, weight
        self._growing: GrowingTrees | None = None
        self._started = Event()
        self._error: Exception | None = None
        self._fitted: tuple[Any, np.ndarray] | None = None

    def start(self, paused: Event) -> None:
        """Grow the first trees, whether paused or not."""
        try:
            growing = self.regressor.start(*self._rows, self.held_out)
            growing.grow(self.regressor.recipe.first_trees)
            self._growing = growing
        except Exception as error:
            self._error = error
            raise
        finally:
            self._started.set()

    def predicted_after(self, n_trees: int) -> np.ndarray:
        """The predictions of the held-out rows by so many trees; the first ones are waited for."""
        return self._begun().predicted_after(n_trees)

    def grow(self, n_trees: int) -> None:
        """Grow up to so many trees."""
        self._begun().grow(n_trees)

    def _begun(self) -> GrowingTrees:
        self._started.wait()
        if self._error is not None:
            raise self._error
        assert self._growing is not None
        return self._growing

    def finish(self, paused: Event) -> None:
        """Fit the regressor, or grow the other trees, unless paused."""
        if isinstance(self.regressor, GradientBoosting):
            self._started.wait()  # it was submitted before: some thread is at it
            if self._growing is not None:
                self._growing.grow(self.most_trees, paused)
        elif self._fitted is None and not paused.is_set():
            self._fitted = self._fit()

    def _fit(self) -> tuple[Any, np.ndarray]:
        x = self.held_out[0]
        if isinstance(self.regressor, ExtraTrees):
            return self.regressor.fit(*self._rows, x)
        rows, y, weight = self._rows
        self.regressor.fit(rows, y, **_weighted(self.regressor, weight))
        return self.regressor, self.regressor.predict(x) if len(x) else np.empty(0)

    def result(self) -> tuple[Any, np.ndarray]:
        """The fitted regressor and its predictions of the held-out rows. Boosted trees are not
        stopped yet."""
        if self._growing is not None:
            staged = self._growing.result(self.most_trees)
            return staged, staged.predicted[-1]
        assert self._fitted is not None
        return self._fitted


def _weighted(model: Any, weight: np.ndarray) -> dict[str, np.ndarray]:
    """The sample weights as arguments of `fit`, where they differ."""
    if np.ptp(weight) == 0:
        return {}
    if not has_fit_parameter(model, "sample_weight"):
        raise NkcmeError(
            f"{type(model).__name__} as center does not take sample_weight; fit without weights, "
            "or use another regressor"
        )
    return {"sample_weight": weight}
