"""Ensembles: members are averaged in the Hilbert space, and disagree where rows are missing."""

import jax
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from nkcme import NKCME
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme import ensemble
from nkcme.estimators.nkcme.ensemble import Ensemble, _mass_at
from support.nkcme_models import line, quick, small
from support.tiny_estimators import small_recipe


def test_the_weights_of_an_ensemble_are_the_mean_of_its_members():
    x, y = line()
    model, alone = quick(n_members=3).fit(x, y), quick().fit(x, y)
    ensemble = Ensemble(model.model_)
    assert ensemble.n_members == model.n_members_ == 3
    members = [
        Ensemble(jax.tree.map(lambda leaf, j=j: leaf[j : j + 1], model.model_)) for j in range(3)
    ]
    leaves = zip(*map(jax.tree.leaves, (members[0].members, alone.model_)), strict=True)
    for ours, theirs in leaves:  # the first member is a model alone
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    x = model._encode(x)
    each = [member.weights(x) for member in members]
    np.testing.assert_allclose(ensemble.weights(x), np.mean(each, axis=0), atol=1e-6)
    np.testing.assert_allclose(ensemble.each_weights(x), each, atol=1e-6)
    assert np.abs(each[0] - each[1]).max() > 1e-4
    bandwidths = [member.bandwidth for member in members]
    assert ensemble.bandwidth == pytest.approx(np.exp(np.mean(np.log(bandwidths))))


@pytest.mark.parametrize("center", ["none", LinearRegression()])
def test_aleatoric_and_epistemic_uncertainty_differ(center):
    """Noise of 0.1 on the left and 1 on the right, and no rows beyond 1."""
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, size=(600, 1))
    y = np.where(x[:, 0] < 0, 0.1, 1.0) * rng.normal(size=600)
    model = small(center=center, n_members=2 if center != "none" else 6).fit(x, y)
    left, right, far = (model.predict_uncertainty([[v]]) for v in (-0.5, 0.5, 8.0))
    assert right.aleatoric[0] == pytest.approx(1.0, rel=0.3)
    assert left.aleatoric[0] < 0.5 * right.aleatoric[0]
    assert far.epistemic[0] > 1.5 * max(left.epistemic[0], right.epistemic[0])
    many = model.predict_uncertainty(x)
    assert many.aleatoric.shape == many.epistemic.shape == (600,)
    alone = small(epochs=2).fit(x, y).predict_uncertainty(x)
    np.testing.assert_array_equal(alone.epistemic, 0.0)


def test_uncertainty_is_in_units_of_y():
    x, y = line()
    one, other = (quick(n_members=2).fit(x, unit * y) for unit in (1.0, 100.0))
    ours, theirs = one.predict_uncertainty(x), other.predict_uncertainty(x)
    np.testing.assert_allclose(theirs.aleatoric, 100 * ours.aleatoric, rtol=1e-3)
    np.testing.assert_allclose(theirs.epistemic, ours.epistemic, atol=1e-3)


@pytest.mark.parametrize("n", [2, 19, 20])
def test_few_rows_are_not_cross_fitted(n):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 1)), rng.normal(size=n)
    model = quick(center="auto", recalibrate="auto", n_members=None, epochs=1).fit(x, y)
    assert (model.recalibration_ is not None) == (n == 20)
    assert np.isfinite(model.predict(x)).all()
    if n < 20:
        with pytest.raises(NkcmeError, match=f"at least 20 different rows .* got {n}"):
            quick(center="mean").fit(x, y)


def test_the_log_score_of_components_is_that_of_the_nearest_atom():
    x, y = line(60)
    recipe = small_recipe(steps=20, n_repeats=1, n_folds=2)
    model = NKCME(center="none", head="components", recipe=recipe, random_state=0).fit(x, y)
    ensemble = Ensemble(model.model_)
    atoms = ensemble.atoms[:, 0]
    points = np.array([-9.0, atoms[3] + 1e-4, 0.5 * (atoms[7] + atoms[8]) + 1e-4, 9.0])
    outputs = ensemble._networks(model._encode(x[:4]))
    weights = ensemble.each_weights(model._encode(x[:4])).mean(axis=0)
    expected = weights[np.arange(4), [0, 3, 8, len(atoms) - 1]]
    np.testing.assert_allclose(_mass_at(points, ensemble, outputs), expected, atol=1.1e-3)
    assert np.all(_mass_at(points, ensemble, outputs) > 0)


def test_components_are_judged_by_their_log_score(monkeypatch):
    def refuse(*_):
        raise AssertionError("the energy score settles before branches are sharp")

    monkeypatch.setattr(ensemble, "energy_scores", refuse)
    recipe = small_recipe(steps=20, n_repeats=1, n_folds=2)
    x, y = line(60)
    NKCME(center="none", head="components", recipe=recipe, random_state=0).fit(x, y)
    with pytest.raises(AssertionError, match="settles"):
        NKCME(center="none", recipe=recipe, random_state=0).fit(x, y)
