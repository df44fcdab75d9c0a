"""The sections of a report on single rows: six that differ, the worst ones, and any to pick."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from nkcme.evaluation import Evaluation, native
from nkcme.number_text import written
from nkcme.report.density_charts import densities
from nkcme.report.drivers import drivers_of_rows
from nkcme.report.page import chart, section
from nkcme.report.partial_dependence import Features
from nkcme.tables.values import is_missing

#: Rows drawn side by side, listed as the worst, and at most offered to pick.
N_DENSITIES = 6
N_WORST = 10
N_PICKED = 60
_MAX_VALUES = 6  # of features, listed below a density


class SingleRows:
    """Predictions for single rows of a table, and their texts.

    Parameters
    ----------
    model : estimator
    table : Table
        The rows that may be drawn.
    rows : Evaluation
        Their evaluation.
    numbers : array (n_rows,)
        Their numbers in the whole table, counted from zero.
    features : Features
        Their columns.
    order : list of int
        The features in the order of their influence.
    target : str
        The name of y.
    """

    def __init__(
        self,
        model: Any,
        table: Any,
        rows: Evaluation,
        numbers: np.ndarray,
        features: Features,
        order: list[int],
        target: str,
    ):
        self._model, self._table, self._rows = model, table, rows
        self._numbers, self._features, self._target = numbers, features, target
        others = [j for j in range(len(features.names)) if j not in order]
        self._listed = [*order, *others][:_MAX_VALUES]
        self._shown = spread_rows(rows.median, rows.upper - rows.lower, N_DENSITIES)
        self._worst = np.argsort(-rows.crps, kind="stable")[:N_WORST]
        explained = np.unique(np.concatenate([self._shown, self._worst]))
        texts = drivers_of_rows(model, table, explained)
        self._drivers = dict(zip(explained.tolist(), texts, strict=True))

    def differing(self) -> str:
        """The section of six rows that differ."""
        dist = self._model.predict_dist(native(self._table[self._shown]))
        selection = "Rows with a low, medium and high prediction, one narrow and one wide of each."
        if len(self._rows) <= N_DENSITIES:
            selection = "All rows of the table."
        note = ""
        if len(dist.point_masses()[0]):
            note = (
                " Values with a probability of their own are vertical lines, blue within the "
                "interval; the highest line is the most probable value."
            )
        titles = [f"Row {self._numbers[i] + 1:,}" for i in self._shown]
        figures = densities(dist, self._rows.y[self._shown], titles, self._target)
        drawn = [
            chart(one, f"Predicted density of {title}", self._caption(i))
            for i, title, one in zip(self._shown, titles, figures, strict=True)
        ]
        return section(
            "Predictions for single rows",
            f"{selection} The curve is the predicted density of {html.escape(self._target)}, the "
            "one that intervals and scores belong to. The shaded interval has a predicted "
            "probability of 90 %; the dashed line is the true value. Over many rows, 9 of 10 "
            "dashed lines should lie in the shaded interval, and more of them where the curve is "
            f"high.{note}",
            f'<div class="grid">{"".join(drawn)}</div>',
        )

    def worst_and_picked(self) -> str:
        """The section of the worst rows, with a chart of any row."""
        picked = self._offered()
        places = {int(i): place for place, i in enumerate(picked)}
        titles = [f"Row {self._numbers[i] + 1:,}" for i in picked]
        dist = self._model.predict_dist(native(self._table[picked]))
        figures = densities(dist, self._rows.y[picked], titles, self._target, height=320)
        options = "".join(
            f'<option data-caption="{html.escape(self._caption(i))}">{title}</option>'
            for i, title in zip(picked, titles, strict=True)
        )
        choice = f'<p class="choice"><label>Row <select>{options}</select></label></p>'
        drawn = chart(figures, "Predicted density of a row", self._caption(picked[0]), above=choice)
        listed = "".join(self._worst_row(int(i), places[int(i)]) for i in self._worst)
        heads = "".join(f"<th>{name}</th>" for name in ("Row", *_COLUMNS, "Chart"))
        some = "" if len(picked) == len(self._rows) else f", {len(picked):,} of them"
        return section(
            "Worst rows, and any row",
            "The rows with the largest error (CRPS). A true value far outside its interval may be "
            "a mistake in the table, or a kind of row that the model has not seen. Below, the "
            f"predicted density of any row{some}.",
            f"<table><thead><tr>{heads}</tr></thead><tbody>{listed}</tbody></table>"
            f'<div class="picked">{drawn}</div>',
        )

    def _offered(self) -> np.ndarray:
        """The rows to pick: the worst, those of the charts, and others at random, in order."""
        first = np.unique(np.concatenate([self._shown, self._worst]))
        others = np.setdiff1d(np.arange(len(self._rows)), first)
        rng = np.random.default_rng(0)
        n_others = min(len(others), N_PICKED - len(first))
        return np.sort(np.append(first, rng.choice(others, n_others, replace=False)))

    def _worst_row(self, i: int, place: int) -> str:
        rows = self._rows
        cells = (
            written(rows.y[i]),
            written(rows.median[i]),
            f"{written(rows.lower[i])} to {written(rows.upper[i])}",
            written(rows.crps[i]),
            written(rows.pit[i], 2),
        )
        shown = "".join(
            f'<td data-label="{name}">{cell}</td>'
            for name, cell in zip(_COLUMNS, cells, strict=True)
        )
        return (
            f'<tr><th scope="row">{self._numbers[i] + 1:,}</th>{shown}'
            f'<td><button type="button" data-pick="{place}">Show</button></td></tr>'
        )

    def _caption(self, i: int) -> str:
        """The values of a row's features, and what moved its prediction."""
        features, more = self._features, len(self._features.names) - _MAX_VALUES
        values = [f"{features.names[j]} = {_value(features.columns[j][i])}" for j in self._listed]
        values += [f"and {more:,} more"] if more > 0 else []
        moved = self._drivers.get(int(i), "")
        return "; ".join(values) + (f". {moved}" if moved else "")


_COLUMNS = ("True value", "Median", "90 % interval", "CRPS", "PIT")


def spread_rows(median: np.ndarray, width: np.ndarray, n: int) -> np.ndarray:
    """About ``n`` rows with a low, medium and high median, one narrow and one wide of each."""
    if len(median) <= n:
        return np.arange(len(median))
    chosen = []
    for third in np.array_split(np.argsort(median, kind="stable"), n // 2):
        by_width = third[np.argsort(width[third], kind="stable")]
        chosen += [by_width[len(third) // 10], by_width[-1 - len(third) // 10]]
    return np.array(chosen)


def _value(value: Any) -> str:
    if is_missing(value):
        return "missing"
    text = written(value) if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= 40 else text[:39] + "…"
