"""Results on a terminal. Each function prints one result to standard output."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from nkcme.evaluation import NOMINAL
from nkcme.metrics import EXPLANATIONS
from nkcme.number_text import written, written_change
from nkcme.tables.table_summary import HEADINGS, TableSummary

#: Columns of a model that are listed before the rest is only counted.
_LISTED_COLUMNS = 20

#: Columns of a training table that are shown before the rest is only counted.
_READ_COLUMNS = 100


def console() -> Console:
    """Standard output, on which brackets in names are no markup."""
    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)


def show_json(result: Any) -> None:
    """One JSON object on one line; numbers that are not finite are null, as JSON lacks them."""
    print(json.dumps(_plain(result), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def show_warm_up(result: dict[str, Any]) -> None:
    """What was compiled, how long it took, and where it is."""
    console().print(
        f"Compiled {result['new_programs']} programs for tables of {result['tables']} sizes in "
        f"{result['seconds']:.1f} s.\n{result['cache']} holds {result['programs']} now.",
        soft_wrap=True,
    )


def show_columns(summary: TableSummary) -> None:
    """How each column of a training table is read, and doubts about it, on standard error."""
    table = Table(box=box.SIMPLE_HEAD, title="How each column is read", title_justify="left")
    for heading in HEADINGS:
        table.add_column(
            heading,
            justify="right" if heading in ("levels", "missing") else "left",
            no_wrap=heading != "becomes",
        )
    for column in summary.columns[:_READ_COLUMNS]:
        table.add_row(*column.cells())
    out = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    out.print(table)
    if len(summary) > _READ_COLUMNS:
        out.print(f"and {len(summary) - _READ_COLUMNS:,} more columns")
    for doubt in summary.doubts:
        out.print(f"doubt: {doubt}", soft_wrap=True)


def show_fit(result: dict[str, Any]) -> None:
    """What was fitted, and its scores on the rows held out."""
    out = console()
    facts = [] if result["steps"] is None else [f"{result['steps']} steps"]
    if result["bandwidth"] is not None:
        facts.append(f"bandwidth {result['bandwidth']:.3g}")
    training = f" ({', '.join(facts)})" if facts else ""
    out.print(
        f"Fitted {result['target']} from {result['columns']} columns on {result['rows']} rows in "
        f"{result['seconds']:.1f} s{training}.",
        soft_wrap=True,
    )
    if result["support"] is not None:
        out.print(f"Values of {result['target']}: {result['support']}.", soft_wrap=True)
    if result["transform"] == "log":
        out.print(
            f"Modelled the log of {result['target']}; predictions are in its own units.",
            soft_wrap=True,
        )
    out.print(f"Saved the model to {result['model']}", soft_wrap=True)
    if result["metrics"] is None:
        out.print("No rows were held out, so there are no scores.")
    else:
        show_metrics(result["metrics"], "rows held out")


def show_metrics(metrics: dict[str, Any], which: str = "rows") -> None:
    """The scores, each with its meaning."""
    table = Table(box=box.SIMPLE_HEAD, title=f"On {metrics['rows']} {which}", title_justify="left")
    table.add_column("score", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("what it means")
    labels = {
        "rmse": "RMSE",
        "crps": "CRPS",
        "nll": "NLL",
        "qice": "QICE",
        "coverage": f"{NOMINAL:.0%} coverage",
        "interval_width": f"{NOMINAL:.0%} width",
    }
    meanings = EXPLANATIONS | {
        "qice": f"{EXPLANATIONS['qice']} Here that scatter is {written(metrics['qice_floor'])}."
    }
    for name, label in labels.items():
        table.add_row(label, written(metrics[name]), meanings[name])
    console().print(table)


def show_model(described: dict[str, Any]) -> None:
    """What a model is, one fact per line."""
    table = Table.grid(padding=(0, 2))
    columns = described["columns"]
    listed = [_column(column) for column in columns[:_LISTED_COLUMNS]]
    if len(columns) > _LISTED_COLUMNS:
        listed.append(f"and {len(columns) - _LISTED_COLUMNS} more")
    facts = {
        "model": described["model"],
        "estimator": described["estimator"],
        "written by": f"nkcme {described['library_version']}, format {described['format_version']}",
        "target": described["target"] or "not named",
        "columns": f"{len(columns)}: {', '.join(listed)}",
        "outputs": described["outputs"],
        "kernel": described.get("kernel"),
        "bandwidth": described.get("bandwidth"),
        "atoms": described.get("atoms"),
        "members": described.get("members"),
        "location model": described.get("center"),
        "recalibrated": {True: "yes", False: "no", None: None}[described.get("recalibrated")],
        "support": described.get("support"),
        "modelled": {"log": "log of y", "none": "y"}.get(described.get("transform", "")),
        "network weights": described.get("weights"),
        "training steps": described.get("steps"),
        "parameters": ", ".join(map(_parameter, described["parameters"].items())),
    }
    for name, fact in facts.items():
        if fact is not None:
            table.add_row(name, f"{fact:.4g}" if isinstance(fact, float) else str(fact))
    console().print(table)


def _parameter(pair: tuple[str, Any]) -> str:
    name, value = pair
    if name == "recipe" and value is not None:  # its text has only what differs from the default
        from nkcme.estimators.nkcme.recipe import Recipe

        value = Recipe.from_config(value)
    return f"{name}={value!r}"


def _column(column: dict[str, Any]) -> str:
    kind = column["kind"]
    if column["categories"]:
        kind = f"{kind} of {len(column['categories'])}"
    return kind if column["name"] is None else f"{column['name']} ({kind})"


def show_ring(ring: dict[str, Any]) -> None:
    """The score on the ring between the paper's and that of a perfect model."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title="The ring: distance to the truth (lower is better)",
        title_justify="left",
    )
    table.add_column("model")
    table.add_column("WAS1 x100", justify="right")
    table.add_row("the paper, 100,000 steps, 10 seeds", _spread(ring["paper"]))
    table.add_row(f"this model, {ring['steps']:,} steps, {ring['seeds']} seeds", _spread(ring))
    table.add_row("a perfect model, 10 seeds", f"{ring['floor']:.2f}")
    table.add_row("a perfect model, these seeds", f"{ring['floor_of_these_seeds']:.2f}")
    console().print(table)


def _spread(score: dict[str, Any]) -> str:
    return f"{score['mean']:.2f} +- {score['std']:.2f}"


def show_intervals(rows: list[dict[str, Any]], target: str) -> None:
    """A few predicted intervals beside the true values."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"{NOMINAL:.0%} intervals for {target}, and the true value",
        title_justify="left",
    )
    for name in ("row", "lower", "upper", "mean", "actual", "inside"):
        table.add_column(name, justify="right")
    for row in rows:
        inside = row["lower"] <= row["actual"] <= row["upper"]
        numbers = (written(row[name]) for name in ("lower", "upper", "mean", "actual"))
        table.add_row(str(row["row"]), *numbers, "yes" if inside else "no")
    console().print(table)


def show_next(paths: dict[str, str], target: str) -> None:
    """What to try after the demo."""
    train, test, model = (shlex.quote(paths[name]) for name in ("train", "test", "model"))
    lines = (
        f"Open {paths['report']} in a browser. Then try:",
        f"  nkcme info {model}",
        f"  nkcme predict {model} {test} --interval 0.9 --quantiles 0.1,0.5,0.9",
        f"  nkcme fit {train} --target {target} --out my-model --seed 1",
        "and the last one with your own table.",
    )
    for line in lines:
        console().print(line, soft_wrap=True)


def show_data_sets(described: list[dict[str, Any]]) -> None:
    """The data sets, their sizes and where they are."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("name", "rows", "features", "folds", "where"):
        table.add_column(name, justify="left" if name in ("name", "where") else "right")
    for one in described:
        sizes = (f"{one[name]:,}" for name in ("rows", "features", "folds"))
        table.add_row(one["name"], *sizes, one["where"])
    console().print(table)


def show_training(result: dict[str, Any], imports: Sequence[str]) -> None:
    """What was trained, the returns at the end of training, and the files written; ``imports`` are
    the modules that the command imported."""
    out = console()
    n, late = len(result["seeds"]), result["last_fifth"]
    out.print(
        f"Trained {n} {result['agent']} agent{'s' * (n != 1)} in {result['env']} "
        f"({result['backend']}) for {result['steps']:,} steps in {result['seconds']:.1f} s.",
        soft_wrap=True,
    )
    if late:
        seeds = ", ".join(f"{value:.4g}" for value in late)
        each = f" (by seed: {seeds})" if n > 1 else ""
        out.print(f"Return in the last fifth of training: {result['mean']:.4g}{each}")
    out.print(f"Saved the agents to {result['agents']}", soft_wrap=True)
    for path in result["files"]:
        out.print(f"Wrote {path}", soft_wrap=True)
    module, colon, _ = result["env"].partition(":")
    modules = [*imports] or [module] * len(colon)
    watch = ["nkcme", "rl", "watch", result["agents"]]
    watch += [word for name in modules for word in ("--import", name)]
    out.print(f"Next: {shlex.join(watch)}", soft_wrap=True)


def show_episodes(result: dict[str, Any]) -> None:
    """The returns of the episodes of each agent."""
    chosen = "" if result["risk"] is None else f", by the worst {result['risk']:.0%} of returns"
    out = console()
    out.print(f"{result['env']} ({result['backend']}), {result['episodes']} episodes{chosen}")
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("agent", "mean", "std", "worst", "best"):
        table.add_column(name, justify="right")
    for row in result["by_agent"]:
        numbers = (f"{row[name]:.4g}" for name in ("mean", "std", "worst", "best"))
        table.add_row(f"seed {row['seed']}", *numbers)
    if len(result["by_agent"]) > 1:
        table.add_row("all", f"{result['mean']:.4g}", "", "", "")
    out.print(table)


def show_importance(result: dict[str, Any]) -> None:
    """How much worse predictions are with each input shuffled, in percent of the score."""
    measures = list(result["scores"])
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"{result['target']}: how much worse without an input, on {result['rows']} rows",
        title_justify="left",
    )
    table.add_column("input", overflow="fold")
    for measure in measures:
        table.add_column("CRPS" if measure == "crps" else measure, justify="right", no_wrap=True)
    for feature in result["features"]:
        shares = (f"{100 * feature[measure]['relative']:+.1f} %" for measure in measures)
        table.add_row(feature["name"], *shares)
    console().print(table)
    console().print(
        "CRPS: the whole distribution. centre, spread: the CRPS if only the median, or only the "
        "distances from it, change. tails: the loss of quantiles beyond the 90 % interval. An "
        "input that does not matter is near 0 %.",
        soft_wrap=True,
    )


def show_explained_row(result: dict[str, Any]) -> None:
    """The SHAP values of one row, from the average prediction to that of the row."""
    names = list(result["average"])
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"Row {result['row']}: {result['target']} = {written(result['actual'])}",
        title_justify="left",
    )
    table.add_column("input", overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("average prediction", *(written(result["average"][name]) for name in names))
    for one in result["inputs"]:
        table.add_row(
            f"{one['name']} = {one['value']}", *(written_change(one[name]) for name in names)
        )
    table.add_row("this row", *(written(result["predicted"][name]) for name in names))
    console().print(table)
