"""`NKCME` with a model of log y: predictions in units of y, files, and a known truth."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from nkcme import NKCME, load
from nkcme.errors import ModelFileError
from support.nkcme_models import quick, small
from support.tiny_estimators import small_recipe, tiny

N = 600


def prices(n=N, seed=0):
    """log y ~ N(1 + x_0, 0.4^2)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, np.exp(1 + x[:, 0] + 0.4 * rng.normal(size=n))


@pytest.fixture(scope="module")
def fitted():
    recipe = small_recipe()
    return NKCME(transform="log", recipe=recipe, hidden=(16,), random_state=2).fit(*prices())


def test_a_log_normal_truth_is_recovered(fitted):
    x, y = prices(2000, seed=1)
    dist = fitted.predict_dist(x)
    truth = stats.lognorm(0.4, scale=np.exp(1 + x[:, 0]))
    np.testing.assert_allclose(dist.mean().mean(), truth.mean().mean(), rtol=0.04)
    np.testing.assert_allclose(dist.std().mean(), truth.std().mean(), rtol=0.15)
    interval = dist.interval(0.9)
    assert np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])) == pytest.approx(0.9, abs=0.03)
    assert -dist.logpdf(y).mean() == pytest.approx(-truth.logpdf(y).mean(), abs=0.12)
    np.testing.assert_array_equal(dist.cdf(0.0), 0.0)
    assert np.all(np.isfinite(dist.logpdf(np.full(2000, 1e-200))))
    assert np.all(np.isfinite(dist.logpdf(np.full(2000, 1e200))))


def test_uncertainty_is_in_units_of_y(fitted):
    x, _ = prices(200, seed=1)
    aleatoric, epistemic = fitted.predict_uncertainty(x)
    known = stats.lognorm(0.4, scale=np.exp(1 + x[:, 0])).std()
    assert np.median(aleatoric / known) == pytest.approx(1.0, abs=0.2)
    assert np.all((epistemic >= 0) & (epistemic < 1))


def test_a_saved_model_predicts_the_same_bits(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.transform_ == "log"
    assert again.get_params()["transform"] == "log"
    x, y = prices(50, seed=2)
    ours, theirs = fitted.predict_dist(x), again.predict_dist(x)
    np.testing.assert_array_equal(ours.crps(y), theirs.crps(y))
    np.testing.assert_array_equal(ours.ppf([0.001, 0.5]), theirs.ppf([0.001, 0.5]))
    np.testing.assert_array_equal(
        fitted.predict_uncertainty(x).aleatoric, again.predict_uncertainty(x).aleatoric
    )


def test_a_file_with_another_transform_is_refused(tmp_path):
    model = quick(transform="log").fit(*prices())
    learned, arrays = model._learned()
    for law, parameters in (({"transform": "root"}, {}), ({}, {"reading": "smoothed"})):
        other = quick(**{"transform": "auto"} | parameters)
        for name in ("encoder_", "scaler_", "n_outputs_", "y_ndim_", "n_features_in_"):
            setattr(other, name, getattr(model, name))
        config = json.loads(json.dumps(learned | {"law": learned["law"] | law}))
        with pytest.raises(ModelFileError, match="transform"):
            other._relearn(config, arrays)


def test_auto_fits_log_y_where_it_is_clearly_better():
    x, y = prices(1000)
    wide = np.exp(np.log(y) + 2 * x[:, 1])
    model = tiny("NKCME").fit(x, wide)
    assert model.get_params()["transform"] == "auto"
    assert not hasattr(model, "transform")  # scikit-learn would take it for a transformer
    assert model.transform_ == "log"
    assert tiny("NKCME").fit(x, wide - 1).transform_ == "none"


def test_clones_have_the_parameter():
    assert clone(NKCME(transform="log")).get_params()["transform"] == "log"
    assert NKCME().get_params()["transform"] == "auto"


def test_log_y_of_one_network_and_validation_rows():
    x, y = prices()
    model = small(transform="log").fit(x[:400], y[:400], X_val=x[400:], y_val=y[400:])
    truth = stats.lognorm(0.4, scale=np.exp(1 + x[:, 0]))
    assert np.corrcoef(model.predict(x), truth.mean())[0, 1] > 0.95


@pytest.mark.parametrize("value", [1.0, 1e-9, 1e9])
def test_y_that_never_varies(value):
    x, _ = prices(100)
    model = tiny("NKCME", transform="log").fit(x, np.full(100, value))
    np.testing.assert_allclose(model.predict(x[:5]), value, rtol=1e-4)
    assert np.all(model.predict_dist(x[:5]).std() < 1e-4 * value)


def test_whole_numbers_and_caps_can_be_modelled_by_their_logarithms():
    x, y = prices()
    counts = tiny("NKCME", transform="log", integer=True, bounds=(1, None)).fit(x, np.ceil(y))
    assert np.all(np.rint(counts.predict_quantiles(x[:9])) == counts.predict_quantiles(x[:9]))
    np.testing.assert_array_equal(counts.predict_dist(x[:9]).cdf(0.5), 0.0)
    capped = tiny("NKCME", transform="log").fit(x, np.minimum(y, 4.0))
    assert capped.support_.reached == (4.0,)
    values, _ = capped.predict_dist(x[:9]).point_masses()
    np.testing.assert_array_equal(values, [4.0])
