"""The calibration map of an ensemble puts a wrong spread right."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from nkcme.errors import NkcmeError
from support.nkcme_models import line, quick, small


def test_recalibration_corrects_a_wrong_spread():
    """A network that is hardly trained predicts nearly the whole range for every x. With the map
    its intervals hold the right share of rows that it has not seen."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(8000, 1)), rng.standard_t(3, size=8000)
    train, test = slice(0, 6000), slice(6000, None)
    raw, mapped = (
        quick(recalibrate=r, epochs=1, learning_rate=1e-3).fit(x[train], y[train])
        for r in (False, True)
    )
    levels = np.linspace(0.1, 0.9, 9)
    errors = []
    for model in (raw, mapped):
        pit = model.predict_dist(x[test]).cdf(y[test])
        errors.append(np.abs(np.mean(pit[:, None] < levels, axis=0) - levels).max())
    assert errors[0] > 0.1
    assert errors[1] < 0.05  # four standard deviations of a share of 2,000 rows
    assert raw.recalibration_ is None
    quantiles = mapped.predict_quantiles(x[test], np.linspace(0, 1, 50))
    assert np.all(np.diff(quantiles, axis=1) >= 0)


def test_a_location_model_that_overfits_does_not_make_intervals_too_narrow():
    """The nearest neighbour of a training row is itself. But residuals are out-of-fold, so
    intervals hold new rows."""
    x, y = line(noise=1.0, seed=2)
    new, truth = line(n=500, noise=1.0, seed=4)
    model = small(center=KNeighborsRegressor(1), n_members=2, recalibrate=True).fit(x, y)
    low, high = model.predict_interval(new, coverage=0.9).T
    assert 0.82 < np.mean((low <= truth) & (truth <= high)) < 0.96


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"recalibrate": True, "head": "signed"}, "weights that are probabilities"),
        ({"recalibrate": True, "reading": "smoothed"}, "a reading as law"),
        ({"recalibrate": 3}, "recalibrate must be True, False"),
    ],
)
def test_recalibration_needs_weights_that_are_probabilities(parameters, message):
    with pytest.raises(NkcmeError, match=message):
        quick(**parameters).fit(*line())


@pytest.mark.parametrize("yes", [True, np.True_])
def test_recalibration_is_for_one_output(yes):
    x, y = line()
    with pytest.raises(NkcmeError, match="one output"):
        quick(recalibrate=yes).fit(x, np.stack([y, y], axis=1))
