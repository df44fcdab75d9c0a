"""The protocol of the UCI sets."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.protocols import perform
from nkcme.estimators import ESTIMATORS
from support import fake_bench


def test_scores_are_those_of_the_samples(monkeypatch):
    """y is 3 everywhere, samples are N(0, 1). The paper multiplies the RMSE of kin8nm by 100."""

    class Table:
        X, y = np.zeros((40, 2)), np.full(40, 3.0)

        def fold(self, k):
            return np.arange(30), np.arange(30, 40)

    monkeypatch.setitem(ESTIMATORS, "Fake", fake_bench.Fake)
    monkeypatch.setattr("nkcme.datasets.uci.load_uci", lambda name: Table())
    cell = fake_bench.cell(
        "kin8nm", experiment="uci", protocol={"draws": "independent", "n_draws": 1000}
    )
    outcome = dict(perform(cell, [0, 1]))[1]
    assert outcome["bins"] == [0] * 9 + [10]
    assert outcome["metrics"]["qice_percent"] == pytest.approx(100 * (0.9 + 9 * 0.1) / 10)
    means = np.random.default_rng(1).normal(size=(1000, 10)).mean(axis=0)
    assert outcome["metrics"]["rmse"] == pytest.approx(100 * np.sqrt(np.mean((3 - means) ** 2)))
    assert outcome["metrics"]["coverage"] == 0
