"""docs/benchmarks.md as text, and the tables that a benchmark prints: from rows alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.experiments import rl_specs, simulation_specs, specs, table_specs
from benchmarks.experiments.cell import ON_REQUEST, Cell
from benchmarks.experiments.methods import METHODS, PEERS
from benchmarks.experiments.paper import PAPER_METRICS, TITLES
from benchmarks.experiments.rows import Rows
from benchmarks.pages import peers_section, rl_section, simulations_section, tables_section, text
from benchmarks.pages.markdown import figures, signed, table, table_or_note, unfinished
from benchmarks.pages.summary import BETTER, WITHIN, WORSE, Summary, sources, summarise
from benchmarks.pages.tables import (
    outputs_table,
    paper_table,
    pooled_table,
    scaling_table,
    score_table,
    seconds_table,
)

_OTHER = {
    "crps": ("CRPS", "In units of y."),
    "nll": ("NLL", "Mean of minus the log density; ∞ where a test row has density 0."),
    "coverage": ("90 % coverage", "Share of test rows inside their central 90 % interval."),
    "width": ("90 % width", "Mean length of these intervals, in units of y."),
}

_NO_CAUSE = "cause not yet found"


def page(rows: Rows, causes: dict[str, str], pictures: dict[str, str]) -> str:
    """The whole page in Markdown; ``pictures`` maps file names in images/ to captions.

    ``causes`` maps experiment/metric/data set/method to the cause of a score that is worse than the
    paper's.
    """
    toy = summarise(specs.toy_cells(), rows)
    uci = summarise(specs.uci_cells(), rows)
    outputs = summarise(specs.outputs_cells(), rows)
    scaling = summarise(specs.scaling_cells(), rows)
    year = summarise(specs.year_cells(), rows)
    peers = summarise(specs.peer_cells(), rows)
    agents = rl_section.summaries(rows)
    other_tables = summarise(table_specs.recorded_cells(rows), rows)
    simulations = summarise(simulation_specs.simulation_cells(), rows)
    tables = [*toy, *uci]
    parts = [
        text.HEAD,
        _counts(toy, uci),
        text.TUNING,
        "## Toy data",
        text.TOY,
        paper_table(toy, "was1_x100"),
        *figures(pictures, "toy-"),
        "## UCI data",
        text.UCI,
        "### QICE",
        paper_table(uci, "qice_percent"),
        *figures(pictures, "qice"),
        "### QICE pooled over folds",
        text.POOLED,
        pooled_table(uci),
        "### RMSE",
        text.RMSE,
        paper_table(uci, "rmse"),
        *figures(pictures, "rmse"),
        *peers_section.section(uci, peers),
        *tables_section.section(other_tables),
        *simulations_section.section(simulations),
        "## Worse than the paper",
        _worse(tables, causes),
        "## Missing",
        _missing(tables),
        "## Other scores",
        text.OTHER_SCORES,
        *(
            part
            for metric, (title, meaning) in _OTHER.items()
            for part in (f"### {title}", meaning, score_table(tables, metric))
        ),
        "## Seconds",
        text.SECONDS,
        "### Fit",
        seconds_table(tables, lambda s: s.fit_seconds()),
        "### Samples",
        seconds_table(tables, lambda s: s.median_seconds("sample")),
        "### Distributions",
        seconds_table(tables, lambda s: s.median_seconds("predict")),
        "## Two outputs",
        text.OUTPUTS,
        outputs_table(outputs),
        "### Seconds of two outputs",
        seconds_table(outputs, lambda s: s.fit_seconds()),
        "## Growth with n",
        text.SCALING,
        scaling_table(scaling),
        *figures(pictures, "scaling"),
        "## Year",
        _year(year),
        *rl_section.section(agents, pictures),
        "## Where the numbers come from",
        _sources(
            [*tables, *peers, *other_tables, *simulations, *outputs, *scaling, *year, *agents]
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def result_text(cells: Sequence[Cell], rows: Rows) -> str:
    """The tables that a benchmark prints at its end."""
    summaries = summarise(cells, rows)
    if cells and cells[0].experiment == rl_specs.EXPERIMENT:
        return rl_section.scores_table(summaries)
    by_experiment: dict[str, list[Summary]] = {}
    for summary in summaries:
        by_experiment.setdefault(summary.cell.experiment, []).append(summary)
    parts = []
    for experiment, found in by_experiment.items():
        if experiment == "scaling":
            parts.append(scaling_table(found))
        elif experiment == "year":
            parts.append(_year(found))
        elif experiment == specs.OUTPUTS:
            parts.append(outputs_table(found))
        elif experiment == table_specs.EXPERIMENT:
            parts.append(tables_section.scores_table(found))
        elif experiment == simulation_specs.EXPERIMENT:
            parts.append(simulations_section.scores_tables(found))
        else:
            ours = [s for s in found if s.cell.method not in PEERS]
            parts += [paper_table(ours, metric) for metric in PAPER_METRICS[experiment] if ours]
            if len(ours) < len(found):
                parts.append(peers_section.peers_table(found))
        if experiment == specs.QUICK:
            parts.append(text.QUICK)
    return "\n\n".join(parts)


def _counts(toy: Sequence[Summary], uci: Sequence[Summary]) -> str:
    """The number of cells of the paper's tables that are better, within 2, worse and missing."""
    lines = []
    for metric, summaries in (("was1_x100", toy), ("qice_percent", uci), ("rmse", uci)):
        cells = [s for s in summaries if METHODS[s.cell.method].in_paper]
        verdicts = [s.verdict(metric) for s in cells]
        empty = sum(s.cell.dataset in ON_REQUEST and not s.rows for s in cells)
        counts = [verdicts.count(v) for v in (BETTER, WITHIN, WORSE)]
        lines.append([
            TITLES[metric], str(len(cells)), *map(str, counts),
            str(len(cells) - sum(counts) - empty), str(empty),
        ])  # fmt: skip
    header = ["table", "cells", "better", "within 2", "worse", "missing", "Year"]
    return table(header, lines)


def _worse(summaries: Sequence[Summary], causes: dict[str, str]) -> str:
    """A list of the cells that are worse than the paper's, with their causes."""
    lines = []
    for summary in summaries:
        cell = summary.cell
        for metric in PAPER_METRICS[cell.experiment]:
            if summary.verdict(metric) != WORSE:
                continue
            key = f"{cell.experiment}/{metric}/{cell.dataset}/{cell.method}"
            difference = summary.difference(metric)
            assert difference is not None
            name = f"{TITLES[metric]}, {cell.dataset}, {METHODS[cell.method].label}"
            lines.append(f"- **{name}** ({signed(difference)}): {causes.get(key, _NO_CAUSE)}")
    return "\n".join(lines) or "No finished cell is worse by more than 2."


def _missing(summaries: Sequence[Summary]) -> str:
    """A list of the cells with unfinished runs."""
    lines = []
    for summary in summaries:
        cell = summary.cell
        if summary.complete or (cell.dataset in ON_REQUEST and not summary.rows):
            continue
        name = f"{cell.experiment} {cell.dataset}, {METHODS[cell.method].label}"
        lines.append(unfinished(summary, name, "rows"))
    return "\n".join(lines) or "Nothing except Year."


def _year(summaries: Sequence[Summary]) -> str:
    """Seconds and memory of the recipe for Year."""
    (summary,) = summaries
    if not summary.rows:
        return "The recipe for Year has not yet been run on a generated table of its size."
    row = summary.rows[0]
    m, protocol = row["metrics"], row["protocol"]
    memory = f"{m['host_gib_peak']:.2f} GiB on the host ({m['host_gib_before']:.2f} before the fit)"
    if "device_gib_peak" in m:
        memory += f", {m['device_gib_peak']:.2f} GiB on the device"
    return (
        "The paper's joint recipe for Year on a generated table of its size, "
        f"{protocol['n_rows']:,} × {protocol['n_inputs']} numbers ({m['table_gib']:.2f} GiB), for "
        f"{m['steps']:,} steps of {row['parameters']['batch_size']} rows.\n\n"
        f"On {row['device']}: {1e3 * m['seconds_a_step']:.2f} ms per step "
        f"({m['fit_seconds']:.1f} s in total, {m['fit_seconds_with_compilation']:.1f} s with "
        f"compilation), {m['predict_seconds']:.1f} s for the intervals of {protocol['n_test']:,} "
        f"rows; peak memory {memory}."
    )


def _sources(summaries: Sequence[Summary]) -> str:
    """A table of the devices, commits and versions behind the rows."""
    lines = [
        [str(s["rows"]), s["device"], f"`{s['commit']}`", s["jax"], s["when"][:10]]
        for s in sources(summaries)
    ]
    return table_or_note(["rows", "device", "commit", "jax", "latest"], lines)
