"""Simulated tables: predicted laws against the true ones, on new rows and on shifted ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.protocols.fitting import TEST_STREAM, Outcome, fit_and_score
from benchmarks.experiments.simulation_specs import DESIGNS
from benchmarks.experiments.simulations import branch_designs, scores, support_designs
from benchmarks.experiments.simulations.design import Design
from benchmarks.timing import timed
from nkcme.estimators import ConditionalEstimator


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Train and score one model per seed."""
    design = DESIGNS[cell.dataset]

    def training(seed: int) -> tuple[np.ndarray, np.ndarray]:
        return design.make(cell.protocol["n_train"], np.random.default_rng(seed))

    return fit_and_score(
        cell, runs, training, lambda model, seed: _score(cell, design, model, seed)
    )


def _score(cell: Cell, design: Design, model: ConditionalEstimator, seed: int) -> dict[str, Any]:
    """The scores of every design on new rows, and those of its family."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(TEST_STREAM,)))
    n_test, n_train = cell.protocol["n_test"], cell.protocol["n_train"]
    X, y = design.make(n_test, rng)
    law = design.law(X)
    predicted, seconds = timed(lambda: model.predict_dist(X))
    outcome: dict[str, Any] = {
        "metrics": scores.common_scores(predicted, law, y),
        "seconds": {"predict": seconds},
    }
    if design.family == support_designs.FAMILY:
        found = scores.support_scores(predicted, law, n_test, design.possible, n_train)
        outcome["metrics"] |= found["metrics"]
        outcome["point_masses"] = found["point_masses"]
    if design.family == branch_designs.FAMILY:
        n = cell.protocol["n_points"]
        points = design.inputs(n, rng)
        outcome["metrics"] |= scores.distance_scores(
            model.predict_dist(points), design.law(points), n, rng
        )
    if design.shifted_inputs is not None:
        moved = design.shifted_inputs(n_test, rng)
        found = scores.common_scores(
            model.predict_dist(moved), design.law(moved), design.outputs(moved, rng)
        )
        outcome["metrics"] |= {f"shifted_{name}": value for name, value in found.items()}
    return outcome
