"""Scores of a perfect prediction, and of predictions that are wrong in a known way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.experiments.simulation_specs import DESIGNS
from benchmarks.experiments.simulations import branch_designs, scores, support_designs
from benchmarks.experiments.simulations.laws import Clipped, Continuous, Inflated
from support.oracle import LawPrediction

N = 500


def drawn(name, n=N):
    """The law of a design at n inputs, and one y for each."""
    rng = np.random.default_rng(5)
    X, y = DESIGNS[name].make(n, rng)
    return DESIGNS[name].law(X), y


@pytest.mark.parametrize("name", DESIGNS)
def test_a_perfect_prediction_is_calibrated_and_its_ratio_one(name):
    law, y = drawn(name)
    found = scores.common_scores(LawPrediction(law), law, y)
    assert found["crps_ratio"] == pytest.approx(1.0)
    for metric, expected in {"coverage_50": 0.5, "coverage": 0.9, "coverage_99": 0.99}.items():
        noise = np.sqrt(expected * (1 - expected) / N)
        assert found[metric] == pytest.approx(expected, abs=4 * noise)
    assert found["width"] > 0


def test_a_narrow_or_moved_prediction_is_worse():
    law, y = drawn("moved-inputs")
    mean = law.ppf(0.5)
    narrow = scores.common_scores(LawPrediction(Continuous(norm(mean, 0.25))), law, y)
    assert narrow["coverage"] == pytest.approx(2 * norm.cdf(0.5 * norm.ppf(0.95)) - 1, abs=0.08)
    assert narrow["width"] == pytest.approx(0.5 * norm.ppf(0.95))
    assert narrow["crps_ratio"] > 1.03
    moved = LawPrediction(Continuous(norm(mean + 0.5, 0.5)))
    assert scores.common_scores(moved, law, y)["crps_ratio"] > 1.1


@pytest.mark.parametrize("design", support_designs.DESIGNS, ids=lambda d: d.name)
def test_a_perfect_prediction_has_no_mass_elsewhere(design):
    law, _ = drawn(design.name, 300)
    found = scores.support_scores(LawPrediction(law), law, 300, design.possible, 1000)
    numbers = found["metrics"]
    assert numbers["outside_bounds_percent"] < 1e-9
    assert (numbers["between_values_percent"] is None) == (design.possible.step is None)
    if design.possible.step:
        assert numbers["between_values_percent"] < 1e-9
    assert [mass["value"] for mass in found["point_masses"]] == list(design.possible.point_masses)
    for mass in found["point_masses"]:
        assert mass["predicted"] == pytest.approx(mass["true"])
        assert mass["error"] == pytest.approx(0.0, abs=1e-9)
    assert (numbers["mass_bias_points"] is None) == (not design.possible.point_masses)


def test_mass_outside_the_bounds_is_that_of_the_worst_row():
    possible = DESIGNS["shares"].possible
    predicted = LawPrediction(Continuous(norm(np.array([[0.5], [0.0], [0.9]]), 0.1)))
    outside = scores.mass_outside_bounds(predicted, 3, possible)
    assert outside == pytest.approx([2 * norm.cdf(-5), 0.5, norm.cdf(-1)], abs=1e-12)


def test_mass_on_a_bound_is_not_outside_of_it():
    law = Clipped(Continuous(norm(np.zeros((2, 1)), 1.0)), low=0.0)
    assert scores.mass_outside_bounds(LawPrediction(law), 2, DESIGNS["lower-capped"].possible) \
        == pytest.approx([0.0, 0.0])  # fmt: skip


def test_mass_between_values_is_all_of_a_continuous_prediction_and_half_of_a_half_continuous_one():
    possible = DESIGNS["ordered"].possible
    continuous = Continuous(norm(np.full((2, 1), 3.3), 0.2))
    between = scores.mass_between_values(LawPrediction(continuous), 2, possible)
    inside = norm.cdf(3.5, 3.3, 0.2) - norm.cdf(3.0, 3.3, 0.2)
    assert np.all(between >= inside - 1e-9)
    half = Inflated(Continuous(norm(3.0, 0.2)), np.full((2, 1), 0.5), low=1.0)
    between = scores.mass_between_values(LawPrediction(half), 2, possible)
    assert between == pytest.approx(0.5, abs=0.01)


def test_a_prediction_without_possible_values_lies_between_them():
    far = Continuous(norm(np.full((2, 1), 90.0), 0.2))
    between = scores.mass_between_values(LawPrediction(far), 2, DESIGNS["ordered"].possible)
    assert np.array_equal(between, [1.0, 1.0])


def test_errors_of_point_masses_are_means_over_rows():
    """Masses 0.2 and 0.4 against a truth of 0.3: no bias, and an error of ten points."""
    possible = DESIGNS["zero-inflated"].possible
    amount = Continuous(norm(50.0, 1.0))
    predicted, law = (Inflated(amount, np.array(m)) for m in ([[0.2], [0.4]], [[0.3], [0.3]]))
    (found,) = scores.point_mass_errors(LawPrediction(predicted), law, 2, possible, 2100)
    expected = {"value": 0.0, "true": 30.0, "predicted": 30.0, "error": 10.0, "noise": 1.0}
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("design", branch_designs.DESIGNS, ids=lambda d: d.name)
def test_the_distance_of_a_perfect_prediction_is_the_oracles(design):
    law, y = drawn(design.name, 200)
    oracle = scores.distance_scores(LawPrediction(law), law, 200, np.random.default_rng(0))
    assert oracle["was1_ratio"] == pytest.approx(1.0)
    assert oracle["was1_x100"] > 0
    smeared = Continuous(norm(np.full((200, 1), y.mean()), y.std()))
    other = scores.distance_scores(LawPrediction(smeared), law, 200, np.random.default_rng(0))
    assert other["was1_oracle_x100"] == oracle["was1_oracle_x100"]
    assert other["was1_ratio"] > 2
