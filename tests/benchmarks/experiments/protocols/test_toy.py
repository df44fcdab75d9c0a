"""The protocol of the toy problems, and what the protocols share."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.protocols import perform
from benchmarks.experiments.protocols.fitting import draw_samples
from nkcme.datasets.toy import TOYS, evaluate_was1
from nkcme.estimators import ESTIMATORS
from support import fake_bench


@pytest.fixture(autouse=True)
def _fake_estimator(monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "Fake", fake_bench.Fake)


def test_was1_and_bins_are_those_of_the_samples():
    outcomes = dict(perform(fake_bench.cell(), range(3)))
    noise = np.random.default_rng(2).normal(size=(50, 200))
    expected = 100 * evaluate_was1(TOYS["ring"], lambda _: noise, 2)
    assert outcomes[2]["metrics"]["was1_x100"] == expected
    assert sum(outcomes[2]["bins"]) == 30
    assert outcomes[2]["seconds"]["fitted_together"] == 3


def test_samples_are_kept_for_the_first_seed_only():
    (_, first), *others = perform(fake_bench.cell(), range(3))
    assert np.shape(first["samples"]["x"]) == (40,)
    noise = np.random.default_rng(0).normal(size=(50, 200))
    assert np.array_equal(first["samples"]["y"], noise[:, ::5].round(4))
    assert not any("samples" in outcome for _, outcome in others)


def test_an_infinite_nll_is_null_with_a_note(monkeypatch):
    monkeypatch.setattr(
        fake_bench.FakeDistribution,
        "logpdf",
        lambda self, y: np.where(np.arange(self.n) < 4, -np.inf, 0.0),
    )
    ((_, outcome),) = perform(fake_bench.cell(), [1])
    assert outcome["metrics"]["nll"] is None
    assert outcome["notes"] == ["nll is infinite: density 0 at 4 of 30 rows"]


def test_quantiles_as_samples_are_at_evenly_spaced_probabilities():
    class Model:
        def predict_quantiles(self, X, q):
            return X[:, :1] + np.asarray(q)

    found = draw_samples(Model(), np.array([[1.0], [2.0], [3.0]]), "quantiles", 4, seed=0)
    assert np.array_equal(found, np.add.outer([0.125, 0.375, 0.625, 0.875], [1.0, 2.0, 3.0]))
