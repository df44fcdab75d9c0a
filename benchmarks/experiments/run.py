"""The loop of a benchmark: cell after cell, what is missing is run and every run becomes a row."""

from __future__ import annotations

import textwrap
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.experiments import rl_specs, specs
from benchmarks.experiments.cells import Outcome, perform
from benchmarks.experiments.provenance import provenance
from benchmarks.experiments.rows import Row, Rows
from benchmarks.experiments.specs import Cell

#: Lines of a traceback that are kept: where it happened, not all the way there.
_TRACEBACK_LINES = 12


class Tally(NamedTuple):
    """What a benchmark did."""

    cells: int
    already_there: int
    run: int
    failed: int


def run_cells(cells: Sequence[Cell], rows: Rows, note: Callable[[str], object]) -> Tally:
    """Run what is missing of the cells; a run that fails is a row too, and the next one is tried.

    Ctrl-C goes through; the rows written by then stay.
    """
    already_there = n_run = n_failed = 0
    for number, cell in enumerate(cells, start=1):
        missing = rows.missing(cell)
        if not missing:
            already_there += 1
            continue
        start = time.perf_counter()
        failed = 0
        for run, outcome in _all_outcomes(cell, missing):
            rows.put(cell, _row(cell, run, outcome))
            failed += isinstance(outcome, Exception)
        seconds = time.perf_counter() - start
        n_run += len(missing)
        n_failed += failed
        note(f"[{number}/{len(cells)}] {_line(cell, rows.of(cell), len(missing), failed, seconds)}")
    return Tally(len(cells), already_there, n_run, n_failed)


def _all_outcomes(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """One outcome for each run, whatever happens: what ends the cell ends each run that is left."""
    left = list(runs)
    try:
        for run, outcome in perform(cell, runs):
            left.remove(run)
            yield run, outcome
    except Exception as error:
        for run in left:
            yield run, error


def _row(cell: Cell, run: int, outcome: Outcome) -> Row:
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
    """What was run, how long it took, and what came out beside the paper's."""
    what = f"{cell.dataset} {cell.method}: {n_run} of {cell.n_runs} runs in {seconds:.1f} s"
    done = [row for row in rows if "error" not in row]
    parts = [what]
    if done:
        parts += [_result(cell, done, metric) for metric in _shown(cell)]
    if failed:
        error = next(row["error"] for row in rows if "error" in row)
        parts.append(f"{failed} FAILED: {error}")
    return "; ".join(parts)


def _shown(cell: Cell) -> tuple[str, ...]:
    if cell.experiment == rl_specs.EXPERIMENT:
        return rl_specs.METRICS
    if cell.experiment == specs.OUTPUTS:
        return tuple(specs.OUTPUTS_TITLES)
    return specs.PAPER_METRICS.get(cell.experiment, ("fit_seconds", "predict_seconds"))


def _result(cell: Cell, rows: Sequence[Row], metric: str) -> str:
    values: Any = [row["metrics"][metric] for row in rows]
    text = f"{metric} {np.mean(values):.4g}"
    if len(values) > 1:
        text += f" +- {np.std(values):.2g}"
    paper = specs.published(metric, cell.dataset, cell.method)
    if paper is not None:
        text += (
            f" (paper {paper.mean:g}" + ("" if paper.std is None else f" +- {paper.std:g}") + ")"
        )
    return text
