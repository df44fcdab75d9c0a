"""A fitted model on one page: what it predicts for a table whose truth is known, and how well."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np

from nkcme import metrics
from nkcme.evaluation import NOMINAL, Evaluation, as_table, evaluate_rows, native
from nkcme.report import charts
from nkcme.report.page import chart, header, percent, section, write_page
from nkcme.report.partial_dependence import Features

#: Rows drawn as points, and as bars, where a table has more; scores are of all rows.
MAX_POINTS = 2000
MAX_FAN_POINTS = 600
MAX_BARS = 300
MAX_FANS = 8
N_DENSITIES = 6
_MAX_VALUES = 6  # of features, written below a density


def write_report(
    model: Any, X: Any, y: Any, path: str | Path, *, title: str | None = None, target: str = "y"
) -> None:
    """Write a report of how a fitted model does on a table, as one HTML file.

    ``model`` is any fitted estimator with `predict_dist`, ``X`` a frame or an array and ``y`` one
    number a row; ``target`` is the name of y. The file appears whole or not at all.
    """
    title = title or f"Predicted distributions of {target}"
    write_page(path, title, lambda: _body(model, X, y, title, str(target)))


def _body(model: Any, X: Any, y: Any, title: str, target: str) -> list[str]:
    results = evaluate_rows(model, X, y)
    shown = _sample(np.arange(len(results)), MAX_POINTS)
    table = as_table(X)[shown]
    features = Features(native(table))
    order = features.by_influence(model)
    return [
        _header(model, results, len(shown), features, title, target),
        _scores(results),
        _densities(model, table, results.rows(shown), shown, features, order, target),
        _fans(model, results.y[shown], features, order, target),
        _against_actual(results, target),
        _calibration(results),
        _training(getattr(model, "history_", None)),
    ]


# ---------------------------------------------------------------------------------- the sections


def _header(
    model: Any, results: Evaluation, n_shown: int, features: Features, title: str, target: str
) -> str:
    name, n_features = html.escape(target), len(features.names)
    facts = [
        html.escape(type(model).__name__),
        f"target <strong>{name}</strong>",
        f"{len(results):,} rows",
        f"{n_features:,} feature{'s' * (n_features != 1)}",
    ]
    text = (
        f"For each row of a table the model predicts how likely every value of {name} is, not one "
        f"value alone. This page compares what it predicted with {len(results):,} rows whose true "
        "values are known. If it was trained on these very rows, it looks better here than it is."
    )
    if n_shown < len(results):
        text += (
            f" Single rows are drawn from {n_shown:,} of them, chosen at random; scores and "
            "calibration use all."
        )
    parameters: dict[str, Any] = model.get_params() if hasattr(model, "get_params") else {}
    return header(title, facts, text, parameters, "the model")


def _scores(results: Evaluation) -> str:
    scores, bare, n = results.scores(), results.scores_without_features(), len(results)
    hopeless = int(np.isneginf(results.log_density).sum())
    level, chance = percent(NOMINAL, 0), _chance(n)
    references = {key: f"{value:.4g} without the features" for key, value in bare.items()}
    references["rmse"] += " (the mean for every row)"
    references["qice"] = f"{percent(metrics.qice_floor(n), 2)} for a perfect model on {n:,} rows"
    references["coverage"] = f"{level}, give or take {percent(chance)} by chance"
    if "nll" in references:
        references["nll"] += " (one normal distribution for every row)"
    if hopeless:
        references["nll"] = f"{hopeless:,} true values had a predicted density of zero"
    names = {"crps": "CRPS", "rmse": "RMSE", "nll": "NLL", "qice": "QICE"}
    names |= {"coverage": f"{level} coverage", "interval_width": f"{level} width"}
    rows = []
    for key, name in names.items():
        share = key in ("qice", "coverage")
        value = percent(scores[key], 2) if share else f"{scores[key]:.4g}"
        rows.append(
            f'<tr><th scope="row">{name}</th><td class="value">{value}</td>'
            f'<td class="reference">{references.get(key, "")}</td>'
            f"<td>{html.escape(metrics.EXPLANATIONS[key])}</td></tr>"
        )
    return section(
        "How good is it?",
        _verdict(scores, bare, n),
        "<table><thead><tr><th>Score</th><th>Model</th><th>To compare</th>"
        f"<th>What it means</th></tr></thead><tbody>{''.join(rows)}</tbody></table>",
    )


def _chance(n: int) -> float:
    """How far, 19 times in 20, the coverage of a perfect model on n rows is from nominal."""
    return float(1.96 * np.sqrt(NOMINAL * (1 - NOMINAL) / n))


def _verdict(scores: dict[str, float], bare: dict[str, float], n: int) -> str:
    """The scores in two sentences: are the features of use, and do the intervals hold?

    Intervals that hold 2 % more or less than they promise are called right, whatever chance says.
    """
    gain = 1 - scores["crps"] / bare["crps"] if bare["crps"] > 0 else 0.0
    blind = "than one that knows only how the target is distributed over all rows"
    if gain >= 0.005:
        useful = f"Knowing the features, the model errs {percent(gain, 0)} less (CRPS) {blind}."
    else:
        more = "more" if gain < -0.005 else "no less"
        useful = f"<strong>The model errs {more} (CRPS) {blind}, and not the features.</strong>"
    held = f"{percent(scores['coverage'])} of the true values"
    off = scores["coverage"] - NOMINAL
    if abs(off) <= max(_chance(n), 0.02):
        return f"{useful} Its 90 % intervals held {held}, as they should."
    fault = "too narrow or in the wrong place" if off < 0 else "wider than they should be"
    return f"{useful} <strong>Its 90 % intervals held {held}: they are {fault}.</strong>"


def _densities(
    model: Any,
    table: Any,
    rows: Evaluation,
    numbers: np.ndarray,
    features: Features,
    order: list[int],
    target: str,
) -> str:
    chosen = spread_rows(rows.median, rows.upper - rows.lower, N_DENSITIES)
    titles = [f"Row {numbers[i] + 1:,}" for i in chosen]
    dist = model.predict_dist(native(table[chosen]))
    others = [j for j in range(len(features.names)) if j not in order]
    told, more = [*order, *others][:_MAX_VALUES], len(features.names) - _MAX_VALUES
    some = "Rows with low, middling and high predictions, a narrow and a wide one of each."
    if len(rows) <= N_DENSITIES:
        some = "All rows of the table."
    if getattr(dist, "reading", "smoothed") == "atomic":
        note = " (The curve is smoothed for the eye, which puts a little more outside the shade.)"
    else:
        note = ""
    drawn = []
    figures = charts.densities(dist, rows.y[chosen], titles, target)
    for i, title, figure in zip(chosen, titles, figures, strict=True):
        values = [f"{features.names[j]} = {_value(features.columns[j][i])}" for j in told]
        values += [f"and {more:,} more"] if more > 0 else []
        drawn.append(chart(figure, f"Predicted density of {title}", "; ".join(values)))
    return section(
        "What does it predict for single rows?",
        f"{some} The curve is the predicted density of {html.escape(target)}: the higher, the "
        "likelier. The model gives 90 % to the shaded interval; the dashed line is the true value. "
        "Over many rows, 9 of 10 dashed lines should fall into the shade, and more of them where "
        f"the curve is high.{note}",
        f'<div class="grid">{"".join(drawn)}</div>',
    )


def _fans(model: Any, y: np.ndarray, features: Features, order: list[int], target: str) -> str:
    if not order:
        return ""
    moved = order[:MAX_FANS]
    some = _sample(np.arange(len(y)), MAX_FAN_POINTS)
    figures = [
        charts.fan_chart(features.fan(model, j, y=y), features.columns[j][some], y[some], target)
        for j in moved
    ]
    options = "".join(f"<option>{html.escape(features.names[j])}</option>" for j in moved)
    choice = f'<p class="choice"><label>Along <select>{options}</select></label></p>'
    text = (
        f"The darker, the likelier the value of {html.escape(target)} there (relative to the "
        "likeliest); the lines enclose the middle 50 % and 90 % of the prediction. Where it has "
        "several peaks the median may jump between them. "
    )
    if len(features.names) > 1:
        text += (
            "Only this feature moves, all others stay at their median or most common value. The "
            "points are rows of the table, which differ in the other features too: more than one "
            "in ten may well lie outside. "
        )
        if len(moved) > 1:
            text += "Features are in the order of how far they move the median."
    drawn = chart(figures, "Prediction along a feature", above=choice if len(moved) > 1 else "")
    return section("How does the prediction move along a feature?", text, drawn)


def _against_actual(results: Evaluation, target: str) -> str:
    some = results.rows(_sample(np.arange(len(results)), MAX_BARS))
    text = (
        "Each mark is a row: the predicted median, with a bar from end to end of the 90 % "
        "interval. A bar that crosses the diagonal holds the true value; about one in ten should "
        f"not. Here {percent(1 - some.inside.mean())} of {len(some):,} rows do not"
        + (f", drawn at random from {len(results):,}." if len(some) < len(results) else ".")
    )
    figure = charts.predicted_against_actual(some, target)
    return section(
        "Predicted against actual",
        text,
        f'<div class="square">{chart(figure, "Predicted against actual values")}</div>',
    )


def _calibration(results: Evaluation) -> str:
    histogram = chart(
        charts.pit_histogram(results.pit),
        "PIT histogram",
        "Where the true values fall in their predicted distributions. Flat is right. High at both "
        "ends: predictions too narrow. A hump in the middle: too wide. A slope: too low or too "
        "high.",
    )
    curve = chart(
        charts.coverage_chart(results.pit),
        "Coverage against nominal level",
        "How many true values the central intervals hold, from narrow to wide ones. Below the "
        "diagonal: intervals too narrow. Above: too wide.",
    )
    return section(
        "Can its probabilities be taken at their word?",
        "If the model says 90 %, it should be right 9 times in 10, and so for every percentage. "
        "Grey is where chance alone would put a perfect model on so many rows.",
        f'<div class="grid wide">{histogram}{curve}</div>',
    )


def _training(history: Any) -> str:
    figures = charts.training_curves(history) if isinstance(history, dict) else []
    if not figures:
        return ""
    drawn = "".join(chart(figure, "Training curve") for figure in figures)
    explained = "The curves should level off."
    if "bandwidth" in history:
        explained += (
            " The loss is measured with a kernel whose bandwidth is learned too, so its height has "
            "no meaning by itself; the bandwidth is the finest detail in y that the model tells "
            "apart."
        )
    return section(
        "How did training go?",
        explained,
        f'<div class="grid wide">{drawn}</div>',
    )


# ------------------------------------------------------------------------------------ the pieces


def spread_rows(median: np.ndarray, width: np.ndarray, n: int) -> np.ndarray:
    """Numbers of about ``n`` rows of low, middling and high median, narrow and wide for each."""
    if len(median) <= n:
        return np.arange(len(median))
    chosen = []
    for third in np.array_split(np.argsort(median, kind="stable"), n // 2):
        by_width = third[np.argsort(width[third], kind="stable")]
        chosen += [by_width[len(third) // 10], by_width[-1 - len(third) // 10]]
    return np.array(chosen)


def _sample(rows: np.ndarray, size: int) -> np.ndarray:
    """At most ``size`` of the rows, at random but always the same, in their order."""
    if len(rows) <= size:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, size, replace=False))


def _value(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= 40 else text[:39] + "…"
