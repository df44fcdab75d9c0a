"""What an explorer answers: densities, quantiles, probabilities, nearest rows and novelty."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nkcme.distributions.base import Distribution
from nkcme.errors import NkcmeError
from nkcme.report.density_charts import BIN_LEVELS, binned_density
from nkcme.runtime.model import RuntimeModel
from nkcme.serving.answers import features, predictions_of
from nkcme.serving.explored_table import ExploredTable
from nkcme.serving.questions import Question, RequestError

#: Scenarios that are compared, and real rows that are shown beside each.
MAX_SCENARIOS, N_NEAREST = 2, 5

#: Point masses below it are too small to be seen.
_LEAST_MASS = 1e-4

#: Rows of the table whose predictions give the range of the chart, and their outer quantiles.
_RANGE_ROWS, _RANGE_LEVELS = 300, (0.01, 0.99)


class Exploration:
    """A model and a table: what the page shows first, and answers to its questions."""

    def __init__(self, model: RuntimeModel, table: ExploredTable, title: str):
        self._model, self._table = model, table
        chosen = np.random.default_rng(0).permutation(len(table))[:_RANGE_ROWS]
        ends = model._distribution(table.encoded[chosen]).ppf(_RANGE_LEVELS)
        middle = float(np.median(ends))
        # Without the rows that reach farthest, whose tails would leave the others no room.
        low, high = np.quantile(ends[:, 0], 0.05), np.quantile(ends[:, 1], 0.95)
        self._reach = float(low), float(high)
        novelty = getattr(getattr(model._predictor, "law", None), "novelty", None)
        self._novelty = novelty
        self.start = {
            "title": title,
            "target": model.target_name_ or "y",
            "inputs": table.inputs,
            "rows": table.n_rows_of_file,
            "event": float(f"{middle:.2g}"),
            "by_training": novelty is not None,
        }

    def answer(self, body: bytes) -> bytes:
        """The answer to ``{"rows": [values, ...], "probabilities": [event], ...}``, as JSON.

        The options are those of `/predict`; each row is a list of values in the order of inputs.
        """
        question = Question.read(body)
        if len(question.rows) > MAX_SCENARIOS or not isinstance(question.rows[0], list):
            raise RequestError(
                f"expected at most {MAX_SCENARIOS} rows, each a list of values in the order of the "
                "inputs"
            )
        n_inputs = len(self._table.names)
        if any(len(row) != n_inputs for row in question.rows):
            raise RequestError(f"expected {n_inputs} values in each row, one for each input")
        try:
            rows, _ = features(self._model, [self._table.as_row(row) for row in question.rows])
            encoded = self._model._encode(rows)
        except RequestError:
            raise
        except NkcmeError as error:
            raise RequestError(" ".join(str(error).split())) from error
        dist = self._model._distribution(encoded)
        asked = predictions_of(dist, question)
        scenarios = [
            {name: values[i] for name, values in asked.items()}
            | self._beside(encoded[i], question.rows[i])
            for i in range(len(rows))
        ]
        content = {"scenarios": scenarios, **self._densities(dist)}
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode(
            errors="backslashreplace"
        )

    def _beside(self, encoded: np.ndarray, values: list[Any]) -> dict[str, Any]:
        """What belongs to a scenario beside its prediction: rows near it, and how new it is."""
        if self._novelty is None:
            distance = self._table.distance(encoded)
        else:
            distance = float(self._novelty.distance(encoded[None])[0])
        return {
            "nearest": self._table.nearest(encoded, N_NEAREST),
            "distance": distance,
            "outside": self._table.outside(values),
        }

    def _densities(self, dist: Distribution) -> dict[str, Any]:
        """The densities over one range: that of the table, or wider where these rows need it."""
        quantiles, (values, masses) = dist.ppf(BIN_LEVELS), dist.point_masses()
        reach = (
            min(self._reach[0], quantiles[:, 0].min()),
            max(self._reach[1], quantiles[:, -1].max()),
        )
        drawn = []
        for i in range(dist.n_rows):
            edges, heights = binned_density(dist[i], quantiles[i], reach, values, masses[i])
            shown = (values >= reach[0]) & (values <= reach[1]) & (masses[i] > _LEAST_MASS)
            drawn.append(
                {
                    "edges": edges.tolist(),
                    "heights": heights.tolist(),
                    "masses": [values[shown].tolist(), masses[i, shown].tolist()],
                }
            )
        return {"range": list(map(float, reach)), "densities": drawn}
