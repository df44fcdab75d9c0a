"""Designs: their samples follow their law, and are what the design describes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial import cKDTree

from benchmarks.experiments.simulation_specs import DESIGNS, FAMILIES
from benchmarks.experiments.simulations import branch_designs, shift_designs, support_designs
from benchmarks.experiments.simulations.laws import Continuous

N = 6000


def made(design, n=N, seed=1):
    return design.make(n, np.random.default_rng(seed))


def test_names_are_unique_and_families_known():
    every = [*support_designs.DESIGNS, *shift_designs.DESIGNS, *branch_designs.DESIGNS]
    assert len({d.name for d in every} | set(FAMILIES)) == len(every) + len(FAMILIES)
    assert {d.family for d in every} == set(FAMILIES)


@pytest.mark.parametrize("name", DESIGNS)
def test_samples_follow_the_law(name):
    """The probability integral transform, drawn within point masses, is uniform."""
    design = DESIGNS[name]
    X, y = made(design)
    assert X.shape[0] == len(y) == N
    assert np.isfinite(y).all()
    law, points = design.law(X), y[:, None]
    upto, rng = law.cdf(points)[:, 0], np.random.default_rng(2)
    pit = upto - law.pmf(points)[:, 0] * rng.uniform(size=N)
    assert np.bincount((10 * pit).astype(int), minlength=10) == pytest.approx(N / 10, rel=0.15)
    # Uniform for low and for high inputs too: the law is that of the row.
    for column in X.T:
        high = column > column.mean()
        assert pit[high].mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / high.sum()))


@pytest.mark.parametrize("design", support_designs.DESIGNS, ids=lambda d: d.name)
def test_samples_are_possible_and_point_masses_frequent(design):
    X, y = made(design)
    possible = design.possible
    assert possible.lower <= y.min()
    assert y.max() <= possible.upper
    if possible.step:
        assert np.isin(y, possible.between(y.min(), y.max())).all()
    law = design.law(X)
    for value in possible.point_masses:
        mass = np.broadcast_to(law.pmf(value), (N, 1))[:, 0]
        assert np.mean(y == value) == pytest.approx(mass.mean(), abs=0.015)
        assert mass.mean() > 0.02
        assert mass.std() > 0.01  # it depends on the inputs


@pytest.mark.parametrize("design", shift_designs.DESIGNS, ids=lambda d: d.name)
def test_shifted_rows_lie_apart_from_training_rows(design):
    """Of 3,000 rows, the nearest is clearly farther than for new rows of the same law."""
    X, _ = made(design, design.n_train)
    rng = np.random.default_rng(2)
    tree = cKDTree(X[:, :3])
    usual, shifted = (
        np.median(tree.query(inputs(2000, rng)[:, :3])[0])
        for inputs in (design.inputs, design.shifted_inputs)
    )
    assert shifted > 1.5 * usual


def test_the_gap_has_no_training_rows():
    gap = DESIGNS["gap"]
    X, _ = made(gap)
    moved = gap.shifted_inputs(500, np.random.default_rng(0))
    distances = [np.hypot(*(part[:, :2] - 0.5).T) for part in (X, moved)]
    assert distances[0].min() >= 0.8 > distances[1].max()


@pytest.mark.parametrize("design", branch_designs.DESIGNS, ids=lambda d: d.name)
def test_branches_are_sharp_and_cross(design):
    X, y = made(design)
    mixture = design.law(X).law
    noise = mixture.components[0].scale[0, 0]
    assert noise / y.std() == pytest.approx(0.05, rel=0.05)
    assert 3 <= len(mixture.components) <= 5
    assert design.n_train == 6000
    means = np.concatenate([component.loc for component in mixture.components], axis=1)
    for j, mean in enumerate(means.T):
        others = np.delete(means, j, axis=1)
        above = mean[:, None] > others
        assert np.any(above.any(axis=0) & ~above.all(axis=0))  # of some other one, in some places
    assert np.sum(mixture.weights, axis=0) == pytest.approx(1.0)


def test_the_digest_changes_with_the_definition():
    design = DESIGNS["gap"]
    assert design.digest() == DESIGNS["gap"].digest()
    law = DESIGNS["moved-inputs"].law
    changed = {
        design.digest(),
        dataclasses.replace(design, law=law).digest(),
        dataclasses.replace(design, shifted_inputs=design.inputs).digest(),
    }
    assert len(changed) == 3
    assert isinstance(law(np.zeros((1, 4))), Continuous)
