"""Runs a benchmark: cell after cell, every missing run becomes a row."""

from __future__ import annotations

import textwrap
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.experiments import rl_specs, simulation_specs, specs, table_specs
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.paper import PAPER_METRICS, published
from benchmarks.experiments.protocols import perform
from benchmarks.experiments.protocols.fitting import Outcome
from benchmarks.experiments.rows import Row, Rows
from benchmarks.experiments.trials import remove_trial, run_trials
from benchmarks.provenance import provenance
from benchmarks.timing import timed

#: The last lines of a traceback are kept: where the error happened, not the whole call stack.
_TRACEBACK_LINES = 12


class Tally(NamedTuple):
    """Counts of a benchmark: cells, cells finished before, runs, and failed runs."""

    cells: int
    already_there: int
    run: int
    failed: int


def run_cells(cells: Sequence[Cell], rows: Rows, note: Callable[[str], object]) -> Tally:
    """Run the missing runs of all cells; a failed run becomes a row too, and the next one follows.

    Ctrl-C ends it; the rows written until then stay.
    """
    already_there = n_run = n_failed = 0
    for number, cell in enumerate(cells, start=1):
        missing = rows.missing(cell)
        if not missing:
            already_there += 1
            continue
        failed, seconds = timed(partial(_run_cell, cell, missing, rows))
        n_run += len(missing)
        n_failed += failed
        note(f"[{number}/{len(cells)}] {_line(cell, rows.of(cell), len(missing), failed, seconds)}")
    return Tally(len(cells), already_there, n_run, n_failed)


def run_cells_on_cluster(
    cells: Sequence[Cell], rows: Rows, note: Callable[[str], object], address: str
) -> Tally:
    """What `run_cells` does, with each run on one core of a Ray cluster.

    A worker writes a file per run, whose row this process, the only one that writes them, adds to
    the rows of the cell. The runs of a cell, which `run_cells` trains as one program, are trained
    one by one.
    """
    missing = {
        f"{cell.experiment}--{cell.name}--{run}--{cell.fingerprint}": (cell, run)
        for cell in cells
        for run in rows.missing(cell)
    }
    n_failed = 0
    for number, (name, row) in enumerate(
        run_trials(_run_trial, missing, rows.trials, address), start=1
    ):
        cell, run = missing[name]
        rows.put(cell, row)
        remove_trial(rows.trials, name)
        n_failed += "error" in row
        result = f"FAILED: {row['error']}" if "error" in row else "finished"
        note(f"[{number}/{len(missing)}] {cell.dataset} {cell.method}: run {run} {result}")
    already_there = len(cells) - len({(cell.experiment, cell.name) for cell, _ in missing.values()})
    return Tally(len(cells), already_there, len(missing), n_failed)


def _run_trial(trial: tuple[Cell, int]) -> Row:
    """The row of one run of a cell."""
    cell, run = trial
    ((_, outcome),) = _all_outcomes(cell, [run])
    return _row(cell, run, outcome)


def _run_cell(cell: Cell, runs: Sequence[int], rows: Rows) -> int:
    """Write the rows of the given runs; the number of failed ones."""
    failed = 0
    for run, outcome in _all_outcomes(cell, runs):
        rows.put(cell, _row(cell, run, outcome))
        failed += isinstance(outcome, Exception)
    return failed


def _all_outcomes(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """One outcome per run: an error that ends the cell is the outcome of all unfinished runs."""
    unfinished = list(runs)
    try:
        for run, outcome in perform(cell, runs):
            unfinished.remove(run)
            yield run, outcome
    except Exception as error:
        for run in unfinished:
            yield run, error


def _row(cell: Cell, run: int, outcome: Outcome) -> Row:
    """The row of a run: its configuration, its provenance and its result or error."""
    row: Row = {
        "experiment": cell.experiment,
        "dataset": cell.dataset,
        "method": cell.method,
        "run": run,
        "estimator": cell.estimator,
        "parameters": cell.parameters,
        "protocol": cell.protocol,
        "fingerprint": cell.fingerprint,
        **provenance(),
    }
    if not isinstance(outcome, Exception):
        return row | outcome
    trace = "".join(traceback.format_exception(outcome)).splitlines()
    return row | {"error": _one_line(outcome), "traceback": trace[-_TRACEBACK_LINES:]}


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return textwrap.shorten(text, 300, placeholder=" ...")


def _line(cell: Cell, rows: Sequence[Row], n_run: int, failed: int, seconds: float) -> str:
    """The progress line of a cell: runs, seconds, and scores beside the paper's."""
    done = [row for row in rows if "error" not in row]
    texts = [f"{cell.dataset} {cell.method}: {n_run} of {cell.n_runs} runs in {seconds:.1f} s"]
    if done:
        texts += [_result(cell, done, metric) for metric in _metrics(cell)]
    if failed:
        error = next(row["error"] for row in rows if "error" in row)
        texts.append(f"{failed} FAILED: {error}")
    return "; ".join(texts)


def _metrics(cell: Cell) -> tuple[str, ...]:
    """The metrics of a cell's progress line."""
    if cell.experiment == rl_specs.EXPERIMENT:
        return rl_specs.METRICS
    if cell.experiment == specs.OUTPUTS:
        return tuple(specs.OUTPUTS_TITLES)
    if cell.experiment == table_specs.EXPERIMENT:
        return table_specs.METRICS
    if cell.experiment == simulation_specs.EXPERIMENT:
        return simulation_specs.progress_metrics(cell)
    return PAPER_METRICS.get(cell.experiment, ("fit_seconds", "predict_seconds"))


def _result(cell: Cell, rows: Sequence[Row], metric: str) -> str:
    """Mean and standard deviation of a metric, with the paper's number where there is one."""
    values: Any = [row["metrics"][metric] for row in rows]
    text = f"{metric} {np.mean(values):.4g}"
    if len(values) > 1:
        text += f" +- {np.std(values):.2g}"
    paper = published(metric, cell.dataset, cell.method)
    if paper is None or cell.experiment not in PAPER_METRICS:
        return text
    deviation = "" if paper.std is None else f" +- {paper.std:g}"
    return f"{text} (paper {paper.mean:g}{deviation})"
