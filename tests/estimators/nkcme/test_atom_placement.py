"""Where atoms are: dense where y is, reaching beyond it, and without gaps."""

import numpy as np
import pytest

import nkcme
from nkcme.estimators.nkcme.atom_placement import atoms_at_quantiles, closed_range
from nkcme.estimators.nkcme.recipe import DEFAULT
from support.nkcme_models import quick, small


def locations(model):
    return np.asarray(model.model_.atoms.locations[0])[:, 0]


def at_quantiles(y):
    atoms = atoms_at_quantiles(y, np.ones(len(y)), 40, DEFAULT.embedding)
    return np.asarray(atoms.locations)[:, 0]


def test_quantile_atoms_are_dense_where_y_is_and_reach_beyond_it():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(size=2000), [30.0]])
    model = quick(atoms="quantile").fit(rng.normal(size=(2001, 1)), y)
    z, atoms = (y - y.mean()) / y.std(), locations(model)
    assert np.all(np.diff(atoms) > 0)
    assert atoms[0] < z.min() < z.max() < atoms[-1]
    assert np.mean(atoms < 3 / y.std()) > 0.5  # an even grid would have a fifth of them there


@pytest.mark.parametrize(("furthest", "even"), [(3.0, True), (300.0, False)])
def test_atoms_are_even_unless_a_long_tail_would_make_them_coarse(furthest, even):
    rng = np.random.default_rng(0)
    y = np.append(rng.normal(size=1000), furthest)
    model = quick(atoms="auto").fit(rng.normal(size=(1001, 1)), y)
    assert (np.ptp(np.diff(locations(model))) < 1e-4) == even


def test_learned_atoms_gather_without_gaps(tmp_path):
    """y takes two values at each x. Half of the atoms move there; half stay even over the range of
    y and a twentieth of it beyond either end."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(400, 1))
    y = np.sign(rng.normal(size=400)) + 0.05 * rng.normal(size=400)
    model = small(atoms="learned", n_members=2, n_atoms=40, epochs=300).fit(x, y)
    learned = locations(model)
    z = (y - model.scaler_.location) / model.scaler_.scale
    assert learned[0] < z.min()
    assert learned[-1] > z.max()
    gaps = np.diff(learned)
    assert np.all(gaps > 0)
    even = 2 * (learned[-1] - learned[0]) / 39
    assert 0.9 * even < gaps.max() < 1.01 * even
    # Had they not moved, they would be at quantiles of the quantiles.
    start = at_quantiles(z)
    points = np.append(start, closed_range(z))
    unmoved = np.asarray(atoms_at_quantiles(points, np.ones(42), 40, DEFAULT.embedding).locations)[
        :, 0
    ]
    assert np.abs(learned - unmoved).max() > 0.05
    np.testing.assert_array_equal(*model.model_.atoms.locations)  # members share them
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(nkcme.load(tmp_path / "m").predict(x), model.predict(x))
