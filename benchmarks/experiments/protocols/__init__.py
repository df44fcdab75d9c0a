"""How each experiment trains and scores the runs of a cell, one module per experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.protocols import (
    agents,
    outputs,
    scaling,
    simulations,
    tables,
    toy,
    uci,
)
from benchmarks.experiments.protocols.fitting import Outcome

_PERFORMERS = {
    "toy": toy.perform,
    "toy-quick": toy.perform,
    "outputs": outputs.perform,
    "uci": uci.perform,
    "tables": tables.perform,
    "simulations": simulations.perform,
    "scaling": scaling.perform,
    "year": scaling.perform_year,
    "rl": agents.perform,
}


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train and score the given runs of a cell; yields each run when it is finished."""
    yield from _PERFORMERS[cell.experiment](cell, runs)
