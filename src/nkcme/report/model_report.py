"""The HTML report of a fitted model: its predictions for a table with observed values."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np

from nkcme import metrics
from nkcme.evaluation import (
    NOMINAL,
    Evaluation,
    as_table,
    evaluate_rows,
    native,
    used_columns,
)
from nkcme.number_text import written
from nkcme.report import model_charts as charts
from nkcme.report.download import download
from nkcme.report.drivers import drivers
from nkcme.report.page import chart, header, percent, section, write_page
from nkcme.report.partial_dependence import Features
from nkcme.report.single_rows import SingleRows

#: Limits of what is drawn of a long table; scores use all rows.
MAX_POINTS = 2000
MAX_FEATURE_POINTS = 600
MAX_BARS = 300
MAX_FEATURES = 8


def write_report(
    model: Any, X: Any, y: Any, path: str | Path, *, title: str | None = None, target: str = "y"
) -> None:
    """Write a report of a fitted model on a table, as one HTML file that needs no network.

    Parameters
    ----------
    model : estimator
        A fitted estimator of one output with ``predict_dist``.
    X : table
        An array, or a pandas or polars frame.
    y : array_like of shape (n_rows,)
        The observed values.
    path : str or Path
        The file to write. It is complete or does not change.
    title : str or None
        The title of the page; None for one with the name of the target.
    target : str
        The name of y.

    Raises
    ------
    NkcmeError
        If the file cannot be written, or if the model predicts no distributions.
    TableError
        If ``X`` is no table, or if ``y`` does not fit to it.
    """
    title = title or f"Predicted distributions of {target}"
    write_page(path, title, lambda: _body(model, X, y, title, str(target)))


def _body(model: Any, X: Any, y: Any, title: str, target: str) -> list[str]:
    X = used_columns(model, X)
    results = evaluate_rows(model, X, y)
    shown = _sample(np.arange(len(results)), MAX_POINTS)
    table = as_table(X)[shown]
    features = Features(native(table), getattr(model, "encoder_", None))
    order = features.by_influence(model)
    single = SingleRows(model, table, results.rows(shown), shown, features, order, target)
    return [
        _header(model, results, len(shown), features, title, target),
        _scores(results) + download(results),
        single.differing(),
        drivers(model, table, results.y[shown], target),
        _partial_dependence(model, results.y[shown], features, order, target),
        _against_actual(results, target),
        single.worst_and_picked(),
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
    support = getattr(model, "support_", None)
    if support is not None and not support.is_everything:
        facts.append(html.escape(f"{target} takes {support}"))
    if getattr(model, "transform_", "none") == "log":
        facts.append(html.escape(f"models the log of {target}"))
    text = (
        f"For each row of a table the model predicts the distribution of {name}. This page "
        f"compares its predictions with the true values of {len(results):,} rows. If the model was "
        "trained on these rows, the scores are optimistic."
    )
    if n_shown < len(results):
        text += (
            f" Charts of single rows show {n_shown:,} of them, chosen at random; scores and "
            "calibration use all."
        )
    parameters: dict[str, Any] = model.get_params() if hasattr(model, "get_params") else {}
    return header(title, facts, text, parameters, "the model")


def _scores(results: Evaluation) -> str:
    scores, bare, n = results.scores(), results.scores_without_features(), len(results)
    impossible = int(np.isneginf(results.log_density).sum())
    level, chance = percent(NOMINAL, 0), _chance(n)
    references = {key: f"{written(value)} without the features" for key, value in bare.items()}
    references["rmse"] += " (the mean for every row)"
    references["qice"] = f"{percent(metrics.qice_floor(n), 2)} for a perfect model on {n:,} rows"
    references["coverage"] = f"{level} ± {percent(chance)} by chance"
    if "nll" in references:
        references["nll"] += " (one normal distribution for every row)"
    if impossible:
        references["nll"] = f"{impossible:,} true values had a predicted density of zero"
    names = {"crps": "CRPS", "rmse": "RMSE", "nll": "NLL", "qice": "QICE"}
    names |= {"coverage": f"{level} coverage", "interval_width": f"{level} width"}
    rows = []
    for key, name in names.items():
        share = key in ("qice", "coverage")
        value = percent(scores[key], 2) if share else written(scores[key])
        rows.append(
            f'<tr><th scope="row">{name}</th><td class="value">{value}</td>'
            f'<td class="reference">{references.get(key, "")}</td>'
            f"<td>{html.escape(metrics.EXPLANATIONS[key])}</td></tr>"
        )
    return section(
        "Scores",
        _verdict(scores, bare, n),
        "<table><thead><tr><th>Score</th><th>Model</th><th>Reference</th>"
        f"<th>Meaning</th></tr></thead><tbody>{''.join(rows)}</tbody></table>",
    )


def _chance(n: int) -> float:
    """The half-width of the 95 % range of a perfect model's coverage on n rows."""
    return float(1.96 * np.sqrt(NOMINAL * (1 - NOMINAL) / n))


def _verdict(scores: dict[str, float], bare: dict[str, float], n: int) -> str:
    """The scores in two sentences: are the features useful, and is the coverage right?

    A coverage within 2 % of the nominal one counts as right, also on many rows.
    """
    gain = 1 - scores["crps"] / bare["crps"] if bare["crps"] > 0 else 0.0
    reference = "that of a prediction without features"
    if gain >= 0.005:
        useful = f"The error of the model (CRPS) is {percent(gain, 0)} lower than {reference}."
    else:
        relation = "higher than" if gain < -0.005 else "not lower than"
        useful = f"<strong>The error of the model (CRPS) is {relation} {reference}.</strong>"
    covered = f"{percent(scores['coverage'])} of the true values"
    off = scores["coverage"] - NOMINAL
    if abs(off) <= max(_chance(n), 0.02):
        return f"{useful} Its 90 % intervals contain {covered}, as expected."
    fault = "too narrow or in the wrong place" if off < 0 else "too wide"
    return f"{useful} <strong>Its 90 % intervals contain {covered}: they are {fault}.</strong>"


def _partial_dependence(
    model: Any, y: np.ndarray, features: Features, order: list[int], target: str
) -> str:
    if not order:
        return ""
    shown = order[:MAX_FEATURES]
    some = _sample(np.arange(len(y)), MAX_FEATURE_POINTS)
    figures = [
        charts.partial_dependence_chart(
            features.partial_dependence(model, j, y=y), features.columns[j][some], y[some], target
        )
        for j in shown
    ]
    options = "".join(f"<option>{html.escape(features.names[j])}</option>" for j in shown)
    choice = f'<p class="choice"><label>Along <select>{options}</select></label></p>'
    text = (
        f"The shade is the predicted density of {html.escape(target)}, relative to its maximum at "
        "each value of the feature; the lines enclose the central 50 % and 90 % of the prediction. "
        "Where it has several peaks the median may jump between them. "
    )
    if len(features.names) > 1:
        text += (
            "Only this feature varies; the others have their median or most common value. The "
            "points are rows of the table, which differ in the other features as well, so more "
            "than one in ten may lie outside. "
        )
        if len(shown) > 1:
            text += "Features are ordered by their influence on the median."
    drawn = chart(figures, "Prediction along a feature", above=choice if len(shown) > 1 else "")
    return section("Partial dependence on a feature", text, drawn)


def _against_actual(results: Evaluation, target: str) -> str:
    some = results.rows(_sample(np.arange(len(results)), MAX_BARS))
    text = (
        "Each mark is a row: the predicted median, with a bar for the 90 % interval. A bar that "
        "crosses the diagonal contains the true value; about one in ten should not. Here "
        f"{percent(1 - some.inside.mean())} of {len(some):,} rows do not"
        + (f", chosen at random from {len(results):,}." if len(some) < len(results) else ".")
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
        "The predicted probability of values below the true one. A calibrated model has a flat "
        "histogram. High at both ends: predictions are too narrow. A hump in the middle: too wide. "
        "A slope: too low or too high.",
    )
    curve = chart(
        charts.coverage_chart(results.pit),
        "Coverage against nominal level",
        "The share of true values in central intervals, from narrow to wide ones. Below the "
        "diagonal: intervals are too narrow. Above: too wide.",
    )
    return section(
        "Calibration",
        "An interval with a predicted probability of 90 % should contain the true value in 9 of 10 "
        "rows, and likewise for every probability. The grey range is that of a perfect model on as "
        "many rows.",
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
            " The loss depends on the bandwidth of the kernel, which is learned too, so its value "
            "has no meaning by itself. The bandwidth is the finest detail in y that the model "
            "resolves."
        )
    return section(
        "Training",
        explained,
        f'<div class="grid wide">{drawn}</div>',
    )


# ------------------------------------------------------------------------------------ the pieces


def _sample(rows: np.ndarray, size: int) -> np.ndarray:
    """At most ``size`` of the rows, at random with a fixed seed, in their order."""
    if len(rows) <= size:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, size, replace=False))
