"""The law of a fitted model: tails, support, calibration on held-out rows, and files."""

from dataclasses import replace

import numpy as np
import pytest

import nkcme
from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.law import Law, _smoother
from nkcme.estimators.nkcme.law_recipe import LawRecipe
from nkcme.model_files import read_model, write_model
from support.nkcme_models import line, small
from support.tiny_estimators import small_recipe

RECIPE = small_recipe(n_folds=2, n_repeats=2)


def calibrated(**changes):
    return small(**{"recalibrate": "auto", "n_members": None, "recipe": RECIPE} | changes)


def coin(n=1200, seed=0):
    """P(y = 0 | x) is a logistic function; otherwise y is lognormal."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 1))
    zero = 1 / (1 + np.exp(-3 * x[:, 0]))
    y = np.where(rng.uniform(size=n) < zero, 0.0, np.exp(1 + 0.3 * rng.normal(size=n)))
    return x, y, zero


@pytest.fixture(scope="module")
def amounts():
    x, y, _ = coin()
    return calibrated().fit(x, y)


def test_point_masses_are_those_of_the_truth(amounts):
    x, y, zero = coin(seed=1)
    dist = amounts.predict_dist(x)
    assert amounts.support_.reached == (0.0,)
    assert np.mean(dist.pmf(0.0)) == pytest.approx(zero.mean(), abs=0.04)
    assert np.corrcoef(dist.pmf(0.0), zero)[0, 1] > 0.9
    assert dist.rvs(20, random_state=0).min() == 0.0
    assert np.all(np.isfinite(dist.logpdf(y)))


def test_every_finite_y_has_a_density():
    x, y = line(noise=0.3)
    dist = calibrated(support="none").fit(x, y).predict_dist(x[:5])
    assert np.all(np.isfinite(dist.logpdf([-1e6, -50.0, 0.0, 50.0, 1e6], grid=True)))


def test_a_saved_law_is_the_same(amounts, tmp_path):
    x, y, _ = coin(seed=2)
    amounts.save(tmp_path / "m")
    again = nkcme.load(tmp_path / "m")
    for name in ("cdf", "logpdf", "crps", "pmf"):
        found, expected = (getattr(m.predict_dist(x), name)(y) for m in (again, amounts))
        np.testing.assert_array_equal(found, expected)
    assert again.support_ == amounts.support_


@pytest.mark.parametrize(
    "damage",
    [
        {"prior_share": 2.0},
        {"smoothing": -1.0},
        {"overlap": "much"},
        {"tails": [[0.1, 1.0, 0.1]]},
        {"tails": [[0.1, -1.0, 0.1], [0.1, 1.0, 0.1]]},
        {"support": {"lower": 1.0, "upper": 0.0}},
        {"support": {"lower": 0.0, "reached": [7.0]}},
        {"support": {"values": [2.0, 1.0]}},
        {"support": {"colour": "red"}},
        {"support": None},
    ],
)
def test_a_damaged_law_is_refused(damage, amounts, tmp_path):
    amounts.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    config["learned"]["law"] |= damage
    write_model(tmp_path / "m", config, arrays)
    with pytest.raises(ModelFileError):
        nkcme.load(tmp_path / "m")


def test_large_tables_are_calibrated_on_rows_held_out_from_all_training():
    """A location model that overfits: its residuals, even out-of-fold, are not what the held-out
    rows show. Intervals hold the right share of new rows."""
    x, y = line(n=1500, noise=1.0)
    new, truth = line(n=1500, noise=1.0, seed=4)
    recipe = replace(RECIPE, law=LawRecipe(held_out_from=1000, held_out_share=0.3))
    model = calibrated(recipe=recipe, center="auto").fit(x, y)
    low, high = model.predict_interval(new, coverage=0.9).T
    assert 0.84 < np.mean((low <= truth) & (truth <= high)) < 0.95


def test_smoothing_keeps_the_mass_and_widens_by_its_variance():
    eta = np.linspace(-5, 5, 201)
    weights = np.zeros((1, 201))
    weights[0, 100] = 1.0
    spread = weights @ _smoother(eta.tobytes(), eta.dtype, 0.5)
    assert spread.sum() == pytest.approx(1.0)
    assert spread @ eta == pytest.approx(0.0, abs=1e-9)
    assert spread @ eta**2 == pytest.approx(0.25, rel=1e-3)


def test_a_law_without_anything_learned_changes_no_weights():
    weights = np.array([[0.2, 0.8]])
    np.testing.assert_allclose(Law().weights(weights, np.array([[0.0], [1.0]]), "law"), weights)
