"""What is predicted of each row, as columns: the mean, quantiles and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.estimators.predicting_on_cores import map_rows_on_cores
from nkcme.estimators.predictions import PredictionMethods
from nkcme.runtime.model import RuntimeModel

#: Rows that are predicted together, always as many: the last block of a batch is filled up. A
#: multiple of the rows that `nkcme.forward_passes.product` takes together, so that neither the
#: place of a row nor the number of rows changes its bits.
BLOCK_ROWS = 384


@dataclass(frozen=True)
class Request:
    """The levels of quantiles and the coverages of central intervals, which are checked."""

    quantiles: tuple[float, ...] = ()
    intervals: tuple[float, ...] = ()

    @classmethod
    def of(cls, quantiles: Sequence[float], intervals: Sequence[float]) -> Request:
        """From numbers of any type."""
        if not all(0 <= level <= 1 for level in quantiles):
            raise NkcmeError(
                f"quantiles must lie between 0 and 1; got {', '.join(map(str, quantiles))}"
            )
        for coverage in intervals:
            if not 0 < coverage < 1:
                raise NkcmeError(
                    f"the interval's coverage must lie between 0 and 1; got {coverage:g}"
                )
        return cls(tuple(map(float, quantiles)), tuple(map(float, intervals)))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        ends = [f"{end}_{c!r}" for c in self.intervals for end in ("lower", "upper")]
        return ["mean", *(f"q{level!r}" for level in self.quantiles), *ends]

    def columns(self, model: PredictionMethods, X: Any) -> dict[str, np.ndarray]:
        """The columns (n,) that a model of one output predicts for the rows of a table.

        With a model of the runtime the bits of a row do not depend on the other rows.
        """
        values = (
            _predict_in_full_blocks(model, X, self._of_rows)
            if isinstance(model, RuntimeModel)
            else model._stream(X, self._of_rows)
        )
        return {name: values[:, j] for j, name in enumerate(self.names)}

    def _of_rows(self, dist: Distribution) -> np.ndarray:
        parts = [dist.mean()[:, None]]
        if self.quantiles:
            parts.append(dist.ppf(list(self.quantiles)))
        parts += [dist.interval(coverage) for coverage in self.intervals]
        return np.concatenate(parts, axis=1)


def _predict_in_full_blocks(model: RuntimeModel, X: Any, ask: Any) -> np.ndarray:
    from threadpoolctl import threadpool_limits  # only here, where its import does not matter

    def predict(x: np.ndarray) -> np.ndarray:
        filled = np.concatenate([x, np.repeat(x[-1:], BLOCK_ROWS - len(x), axis=0)])
        return ask(model._distribution(filled))[: len(x)]

    with threadpool_limits(1, "blas"):  # several threads may divide a sum otherwise
        return map_rows_on_cores(predict, model._encode(X), block_rows=BLOCK_ROWS)
