"""A model of what a fit from disk costs, with constants that were measured here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.scale.large_table import TARGET
from benchmarks.scale.training_steps import _BATCH, step_parameters

#: Assumed of a network between hosts, and not measured: seconds of a message, bytes a second.
LATENCY, BANDWIDTH = 1e-4, 1.25e9

#: Steps of the location model, of the embedding, and of fixed atoms, at most.
_STEPS = 3 * 4096


class Constants(NamedTuple):
    """What was measured on one core."""

    survey_rows: float  # a second, of the first pass
    step_rows: float  # a second, of two networks in training, reading included
    local_exchange: float  # seconds, of a step's message between processes on this machine
    step_bytes: float  # of a message: four for each parameter of each replica


def step_seconds(hosts: int, constants: Constants, *, local: bool = False) -> float:
    """Of one step on so many hosts, of one core each: rows, and messages in turn. ``local``
    processes share the cores of this machine."""
    message = LATENCY + constants.step_bytes / BANDWIDTH
    cores = hosts
    if local:
        message, cores = constants.local_exchange, min(hosts, len(os.sched_getaffinity(0)))
    return _BATCH / cores / constants.step_rows + np.log2(hosts) * message


def fit_seconds(rows: float, hosts: int, constants: Constants) -> float:
    """Of the first pass and of all steps."""
    return rows / hosts / constants.survey_rows + _STEPS * step_seconds(hosts, constants)


def measured_constants(folder: Path, by_processes: list[dict[str, Any]]) -> Constants:
    """The constants, from rows of `training_steps.compared` and a survey of a table."""
    from nkcme.tables.parquet_folder import ParquetFolder
    from nkcme.tables.survey import survey

    table = ParquetFolder.open(folder)
    start = time.process_time()
    survey(table, TARGET, 0.01, 0)
    survey_rows = table.n_rows / (time.process_time() - start)
    alone, two = by_processes[:2]
    return Constants(
        survey_rows, alone["rows_per_second"], two["exchange_seconds"], 4.0 * step_parameters()
    )


def predictions(constants: Constants) -> Iterator[dict[str, Any]]:
    """Rows for the page: the constants, local speeds, and seconds by rows and hosts."""
    yield {"constants": constants._asdict()}
    alone = step_seconds(1, constants)
    for n in (2, 4):
        yield {"processes": n, "predicted_speed": alone / step_seconds(n, constants, local=True)}
    for rows in (1e6, 1e8, 1e10):
        of_hosts = {n: fit_seconds(rows, n, constants) for n in (1, 2, 4, 8, 16, 64)}
        yield {"rows": rows, "seconds_by_hosts": of_hosts}
