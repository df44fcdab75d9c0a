"""The page of results, docs/benchmarks.md, and what a benchmark prints: from rows alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.experiments import rl_specs, specs
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.specs import METHODS, TITLES, Cell
from benchmarks.pages import peers_page, rl_page
from benchmarks.pages.summary import BETTER, WITHIN, WORSE, Summary, sources, summarise
from benchmarks.pages.tables import (
    outputs_table,
    paper_table,
    pooled_table,
    rows_or_none,
    scaling_table,
    score_table,
    seconds_table,
    shown,
    signed,
    table,
    unfinished,
)
from nkcme.errors import NkcmeError
from nkcme.model_files.atomic_files import replacing

_OTHER = {
    "crps": ("CRPS", "in units of y"),
    "nll": ("NLL", "mean of minus the log density; ∞ where a test row has density 0"),
    "coverage": ("90 % coverage", "share of test rows inside their central 90 % interval"),
    "width": ("90 % width", "mean length of these intervals, in units of y"),
}

_NO_CAUSE = "cause not yet found"


def write_page(rows: Rows, out: Path, draw: Callable[[Rows, Path], dict[str, str]]) -> None:
    """Write the page; ``draw`` makes the pictures in a directory and says their captions."""
    causes = _read_causes(out.with_name("benchmark-causes.json"))
    out.parent.mkdir(parents=True, exist_ok=True)
    pictures = draw(rows, out.parent / "images")
    with replacing(out, out.with_name(f"{out.name}.partial")) as file:
        file.write(page(rows, causes, pictures).encode())


def page(rows: Rows, causes: dict[str, str], pictures: dict[str, str]) -> str:
    """The whole page in Markdown; ``pictures`` are file names in images/ and their captions."""
    toy = summarise(specs.toy_cells(), rows)
    uci = summarise(specs.uci_cells(), rows)
    outputs = summarise(specs.outputs_cells(), rows)
    scaling = summarise(specs.scaling_cells(), rows)
    year = summarise(specs.year_cells(), rows)
    peers = summarise(specs.peer_cells(), rows)
    agents = rl_page.summaries(rows)
    everything = [*toy, *uci, *peers, *outputs, *scaling, *year, *agents]
    parts = [
        _HEAD,
        _counts(toy, uci),
        "## Toy data",
        _TOY,
        paper_table(toy, "was1_x100"),
        *shown(pictures, "toy-"),
        "## UCI data",
        _UCI,
        "### QICE",
        paper_table(uci, "qice_percent"),
        *shown(pictures, "qice"),
        "### QICE pooled over folds",
        _POOLED,
        pooled_table(uci),
        "### RMSE",
        "Of the mean of the same 1,000 samples; times 100 for kin8nm and naval, as in the paper.",
        paper_table(uci, "rmse"),
        *shown(pictures, "rmse"),
        *peers_page.section(uci, peers),
        "## Worse than the paper",
        _worse([*toy, *uci], causes),
        "## Missing",
        _missing([*toy, *uci]),
        "## Other scores",
        "Mean ± standard deviation over seeds or folds, of the predicted distribution itself. The "
        "paper has none of these.",
        *(
            part
            for metric, (title, meaning) in _OTHER.items()
            for part in (f"### {title}", f"{meaning[0].upper()}{meaning[1:]}.",
                         score_table([*toy, *uci], metric))
        ),
        "## Seconds",
        _SECONDS,
        "### Fit",
        seconds_table([*toy, *uci], lambda s: s.fit_seconds()),
        "### Samples",
        seconds_table([*toy, *uci], lambda s: s.median_seconds("sample")),
        "### Distributions",
        seconds_table([*toy, *uci], lambda s: s.median_seconds("predict")),
        "## Two outputs",
        _OUTPUTS,
        outputs_table(outputs),
        "### Seconds of two outputs",
        seconds_table(outputs, lambda s: s.fit_seconds()),
        "## Growth with n",
        _SCALING,
        scaling_table(scaling),
        *shown(pictures, "scaling"),
        "## Year",
        _year(year),
        *rl_page.section(agents, pictures),
        "## Where the numbers come from",
        _sources(everything),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def result_text(cells: Sequence[Cell], rows: Rows) -> str:
    """What a benchmark prints in the end: the tables of what was asked for."""
    if cells and cells[0].experiment == rl_specs.EXPERIMENT:
        return rl_page.scores_table(summarise(cells, rows))
    summaries = summarise(cells, rows)
    scaling = [s for s in summaries if s.cell.experiment == "scaling"]
    year = [s for s in summaries if s.cell.experiment == "year"]
    parts = [scaling_table(scaling)] if scaling else []
    parts += [_year(year)] if year else []
    outputs = [s for s in summaries if s.cell.experiment == specs.OUTPUTS]
    parts += [outputs_table(outputs)] if outputs else []
    peers = any(s.cell.method in specs.PEERS for s in summaries)
    scored = [
        s
        for s in summaries
        if s.cell.experiment in specs.PAPER_METRICS and s.cell.method not in specs.PEERS
    ]
    tables = specs.PAPER_METRICS[scored[0].cell.experiment] if scored else ()
    parts += [paper_table(scored, metric) for metric in tables]
    parts += [peers_page.peers_table(summaries)] if peers else []
    if scored and scored[0].cell.experiment == specs.QUICK:
        parts.append(_QUICK)
    return "\n\n".join(parts)


def _counts(toy: Sequence[Summary], uci: Sequence[Summary]) -> str:
    """How many cells of the paper's tables are better, as good, worse and missing."""
    lines = []
    for metric, summaries in (("was1_x100", toy), ("qice_percent", uci), ("rmse", uci)):
        cells = [s for s in summaries if METHODS[s.cell.method].in_paper]
        verdicts = [s.verdict(metric) for s in cells]
        empty = sum(s.cell.dataset in specs.WHY_EMPTY and not s.rows for s in cells)
        counts = [verdicts.count(v) for v in (BETTER, WITHIN, WORSE)]
        lines.append([
            TITLES[metric], str(len(cells)), *map(str, counts),
            str(len(cells) - sum(counts) - empty), str(empty),
        ])  # fmt: skip
    header = ["table", "cells", "better", "within 2", "worse", "missing", "Year"]
    return table(header, lines)


def _worse(summaries: Sequence[Summary], causes: dict[str, str]) -> str:
    lines = []
    for summary in summaries:
        cell = summary.cell
        for metric in specs.PAPER_METRICS[cell.experiment]:
            if summary.verdict(metric) != WORSE:
                continue
            key = f"{cell.experiment}/{metric}/{cell.dataset}/{cell.method}"
            difference = summary.difference(metric)
            assert difference is not None
            name = f"{TITLES[metric]}, {cell.dataset}, {METHODS[cell.method].label}"
            lines.append(f"- **{name}** ({signed(difference)}): {causes.get(key, _NO_CAUSE)}")
    return "\n".join(lines) or "No finished cell is worse by more than two."


def _missing(summaries: Sequence[Summary]) -> str:
    lines = []
    for summary in summaries:
        cell = summary.cell
        if summary.complete or (cell.dataset in specs.WHY_EMPTY and not summary.rows):
            continue
        name = f"{cell.experiment} {cell.dataset}, {METHODS[cell.method].label}"
        lines.append(unfinished(summary, name, "rows"))
    return "\n".join(lines) or "Nothing, but for Year."


def _year(summaries: Sequence[Summary]) -> str:
    (summary,) = summaries
    if not summary.rows:
        return "The recipe for Year on a generated table of its size was not run yet."
    row = summary.rows[0]
    m, protocol = row["metrics"], row["protocol"]
    memory = f"{m['host_gib_peak']:.2f} GiB of the host ({m['host_gib_before']:.2f} before the fit)"
    if "device_gib_peak" in m:
        memory += f", {m['device_gib_peak']:.2f} GiB of the device"
    return (
        "The paper's joint recipe for Year on a generated table of its size, "
        f"{protocol['n_rows']:,} × {protocol['n_inputs']} numbers ({m['table_gib']:.2f} GiB), for "
        f"{m['steps']:,} steps of {row['parameters']['batch_size']} rows.\n\n"
        f"On {row['device']}: {1e3 * m['seconds_a_step']:.2f} ms a step "
        f"({m['fit_seconds']:.1f} s in all, {m['fit_seconds_with_compilation']:.1f} s the first "
        f"time), {m['predict_seconds']:.1f} s for the intervals of {protocol['n_test']:,} rows; "
        f"peak memory {memory}."
    )


def _sources(summaries: Sequence[Summary]) -> str:
    lines = [
        [str(s["rows"]), s["device"], f"`{s['commit']}`", s["jax"], s["when"][:10]]
        for s in sources(summaries)
    ]
    return rows_or_none(["rows", "device", "commit", "jax", "latest"], lines)


def _read_causes(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    try:
        causes = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NkcmeError(f"{path} is not JSON ({error}); mend it") from error
    if not isinstance(causes, dict) or not all(isinstance(v, str) for v in causes.values()):
        raise NkcmeError(
            f"{path} must be one JSON object of texts, by experiment/metric/set/method"
        )
    return causes


_HEAD = """\
# Benchmarks

Every method of the paper on every data set of it, in one harness: the same data, folds, engine
and metrics. This page is written by `python -m benchmarks page` from the rows in `results/bench/`,
which `python -m benchmarks toy`, `uci`, `outputs`, `scaling` and `rl` add to; do not edit it.

*Ours* is the mean ± standard deviation over seeds or folds, *paper* is what the paper prints, and
the *difference* is (ours − paper) / √(s² + s²) in pooled standard deviations: below zero is
better than the paper, and up to 2 counts as reproduced. The paper prints two decimals, so a
difference of at most 0.005 is none. The *floor* is what a perfect model scores. The best of each
line is bold, and lower is better everywhere. `NKCME()` is this library's default and
`KernelCME()` the classical estimator; the paper has neither. *joint* and *iterative* are its two
proposals."""

_TOY = """\
5,000 rows, 10 seeds; 50 samples at each of 200 points against 50 true draws (Wasserstein-1). The
paper's kernel methods herd their samples, `NKCME()` gives its mid-quantiles, the others draw at
random."""

_UCI = """\
The published folds: 20, and 5 for protein. 1,000 samples for each test row. CARD's numbers in the
paper are those of its authors, by recipes of their own. Ours come from a recipe whose lengths, by
data set, were chosen on these test folds, and so was the least bandwidth of *joint* and *iterative*
on naval; nothing else here is tuned ([findings](findings.md#the-rivals))."""

_POOLED = """\
The bins of all folds counted together, which is far less noisy on small sets: the scatter of a
small test set no longer counts as miscalibration. The floor is that of as many different test
rows; the folds of the small sets share some."""

_SECONDS = """\
Of the machines named at the end, compilation included. On the H200 six to nine processes shared the
GPU, so these seconds compare methods roughly; [growth with n](#growth-with-n) was measured alone.
KernelCME ran on the CPU. A fit is that of all seeds or folds of the cell, trained side by side as
one program; the rest is the median of one seed or fold. Samples: 50 at 200 points on toy data,
1,000 a test row on UCI. Distributions: mean, interval, CDF, CRPS and density of the test rows."""

_OUTPUTS = """\
A ring, a banana and a mixture in the plane, whose shape moves with x
([several outputs](several-outputs.md)): 5,000 rows, 5 seeds; `NKCME()`, one network of it (*quick*)
and `SplineFlow()` (NSF) as it is by default. Sliced WAS1: 1,000 joint draws at each of 50 points
against 1,000 true ones, on average over 100 directions. The energy score (500 draws a row) and the
NLL are those of 1,000 fresh rows. A perfect model draws from the truth itself. The paper has
nothing of several outputs."""

_SCALING = f"""\
Seconds on tables of 10 columns, nothing of it compilation. Methods that train by steps are given
{specs.SCALING_STEPS} steps of {specs.SCALING_BATCH} rows whatever n is, by the recipe of protein:
what grows is encoding the table and what a method solves on all rows. Predicted are the 90 %
intervals of 1,000 rows; CARD, which takes minutes, is timed on 64 and multiplied. What does not
depend on steps is what is left of a fit when its steps, timed by a fit of twice as many, are taken
off. For CARD at 1,000,000 rows (7,812 steps) nothing was left but noise: its time there is about a
second too low. KernelCME stops at 10,000 rows; with landmarks it goes on."""

_QUICK = f"""\
A miniature: no network trains for more than {specs.QUICK_STEPS} steps (shorter recipes, ours among
them, are run whole), for two seeds, scored at 40 points. Compare the methods with each other; the
paper's numbers are those of the whole recipes."""
