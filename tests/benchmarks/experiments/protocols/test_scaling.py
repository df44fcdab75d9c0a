"""The protocol of growing tables: seconds per step and the rest, and memory."""

from __future__ import annotations

import dataclasses
import time

import pytest

from benchmarks.experiments import specs
from benchmarks.experiments.protocols import perform
from nkcme import presets
from nkcme.estimators import ESTIMATORS
from support import fake_bench


def test_a_fit_is_split_into_steps_and_the_rest(monkeypatch):
    """An estimator that takes 2 s plus 10 ms per step, by a clock that only it advances."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    class Clockwork:
        def __init__(self, **parameters):
            self.parameters = parameters

        def set_params(self, **changes):
            self.parameters |= changes
            return self

        def fit(self, X, y):
            self.n_steps_ = len(X) // 256 * self.parameters["epochs"]
            now[0] += 2.0 + 0.01 * self.n_steps_

        def predict_interval(self, X):
            now[0] += 0.5

    monkeypatch.setitem(ESTIMATORS, "Clockwork", Clockwork)
    cell = fake_bench.cell(
        "1000", experiment="scaling", estimator="Clockwork", parameters={"epochs": 7},
        protocol={"n_inputs": 3, "n_predicted": 10}, n_runs=1,
    )  # fmt: skip
    ((_, outcome),) = perform(cell, [0])
    assert outcome["metrics"] == pytest.approx(
        {
            "seconds_a_step": 0.01,
            "seconds_without_steps": 2.0,
            "measured_steps": 21,
            "fit_seconds": 2.0 + 0.01 * specs.SCALING_STEPS,
            "predict_seconds": 0.5 * specs.SCALING_PREDICTED / 10,
        }
    )


def test_the_recipe_for_year_runs_on_a_generated_table():
    cell = dataclasses.replace(
        specs.year_cells()[0],
        parameters=presets.QUICK | {"hidden": (4,), "n_atoms": 5, "epochs": 1, "batch_size": 50},
        protocol={"n_rows": 300, "n_inputs": 4, "n_test": 100},
    )
    ((_, outcome),) = perform(cell, [0])
    metrics = outcome["metrics"]
    assert metrics["steps"] == 4
    assert metrics["seconds_a_step"] == metrics["fit_seconds"] / 4
    assert 0.01 < metrics["host_gib_peak"] < 64
