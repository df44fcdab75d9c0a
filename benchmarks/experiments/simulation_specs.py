"""The cells of the experiment on simulated tables with known truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.methods import DEFAULT, METHODS, ONE_NETWORK, OUR_PARAMETERS
from benchmarks.experiments.simulations import branch_designs, shift_designs, support_designs
from benchmarks.experiments.simulations.design import Design

EXPERIMENT = "simulations"

DESIGNS: dict[str, Design] = {
    design.name: design
    for designs in (support_designs.DESIGNS, shift_designs.DESIGNS, branch_designs.DESIGNS)
    for design in designs
}

#: The families of designs, and the scores of their progress lines.
FAMILIES = {
    support_designs.FAMILY: ("outside_bounds_percent", "crps_ratio", "coverage"),
    shift_designs.FAMILY: ("shifted_coverage", "coverage"),
    branch_designs.FAMILY: ("was1_ratio", "crps_ratio"),
}

#: Methods that run when none is named, and baselines that run when they are named, each with the
#: defaults of its estimator.
USUAL_METHODS = (DEFAULT, ONE_NETWORK)
_BASELINES = ("df-median", "mdn", "nsf", "card", "kernel-cme")

_N_RUNS = 5
_N_TEST = 2000
#: Inputs at which laws are compared by W1 distances.
_N_POINTS = 1000


def simulation_cells() -> list[Cell]:
    """Our methods and the baselines on every design, five seeds."""
    return [
        Cell(
            experiment=EXPERIMENT,
            dataset=design.name,
            method=name,
            estimator=METHODS[name].estimator,
            parameters=OUR_PARAMETERS.get(name, {}),
            protocol=_protocol(design),
            n_runs=_N_RUNS,
        )
        for design in DESIGNS.values()
        for name in (*USUAL_METHODS, *_BASELINES)
    ]


def _protocol(design: Design) -> dict[str, Any]:
    protocol = {
        "family": design.family,
        "n_train": design.n_train,
        "n_test": _N_TEST,
        "design": design.digest(),
    }
    return protocol | ({"n_points": _N_POINTS} if design.family == branch_designs.FAMILY else {})


def named_designs(names: Sequence[str]) -> list[str]:
    """Names of designs, with the name of a family replaced by those of its designs."""
    found = []
    for name in names:
        family = [design.name for design in DESIGNS.values() if design.family == name]
        found += family or [name]
    return found


def progress_metrics(cell: Cell) -> tuple[str, ...]:
    """The scores of a cell's progress line."""
    return FAMILIES[cell.protocol["family"]]
