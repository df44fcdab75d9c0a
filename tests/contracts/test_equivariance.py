"""Shifting and scaling y changes no prediction in standard units, for any estimator."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from support.tiny_estimators import every_estimator, tiny

N = 40
_rng = np.random.default_rng(0)
X = _rng.normal(size=(N, 2))
#: Of both signs and continuous, so that no bound and no set of values is found. Multiples of 2^-20,
#: so that the shifts below are exact.
Y = np.rint((X[:, 0] + 0.3 * _rng.normal(size=N)) * 2**20) / 2**20

#: Scale, shift, and the tolerance in standard deviations of y. Powers of two round nothing. Other
#: factors round y in its 53rd bit, after which its standardised form may round to another float32.
#: A prediction around 1e9 is a double, which has 1e-7 of a unit; so has y itself beside a shift of
#: 1e9 scales, and there the log density of a sample is that of gaps between neighbouring draws.
UNITS = [
    (2.0**-30, 0.0, 1e-12),
    (2.0**30, 0.0, 1e-12),
    (1e-9, 0.0, 1e-5),
    (1e9, 0.0, 1e-5),
    (1.0, 2.0**20, 1e-5),
    (1.0, -(2.0**20), 1e-5),
    (1e-9, 1.0, 1e-4),
    (1e9, 1e18, 1e-4),
]


def in_standard_units(model, scale: float, shift: float) -> dict[str, np.ndarray]:
    """The answers of every method for a few rows, scaled and shifted back."""
    dist = model.predict_dist(X[:5])
    points = np.linspace(-2, 2, 9)
    with np.errstate(divide="ignore"):
        log_density = dist.logpdf(shift + scale * points, grid=True) + np.log(scale)
    return {
        "mean": (dist.mean() - shift) / scale,
        "std": dist.std() / scale,
        "ppf": (dist.ppf([0.05, 0.5, 0.95]) - shift) / scale,
        "rvs": (dist.rvs(3, 0) - shift) / scale,
        "crps": dist.crps(np.full(5, shift + scale * 0.3)) / scale,
        "cdf": dist.cdf(shift + scale * points, grid=True),
        "logpdf": np.maximum(log_density, -30.0),
    }


@cache
def reference(name: str) -> dict[str, np.ndarray]:
    return in_standard_units(tiny(name).fit(X, Y), 1.0, 0.0)


@every_estimator
@pytest.mark.parametrize(("scale", "shift", "tolerance"), UNITS)
def test_units_of_y_change_nothing(name, scale, shift, tolerance):
    model = tiny(name).fit(X, shift + scale * Y)
    for method, values in in_standard_units(model, scale, shift).items():
        np.testing.assert_allclose(values, reference(name)[method], 0, tolerance, err_msg=method)


#: Targets on supports that are found, for which NKCME needs more rows.
MORE_X = _rng.normal(size=(300, 2))
MORE_Y = np.rint((MORE_X[:, 0] + 0.3 * _rng.normal(size=300)) * 2**20) / 2**20
SUPPORTED = {
    "zero-inflated": np.maximum(MORE_Y, 0.0),
    "capped": np.minimum(MORE_Y, 0.5),
    "positive": np.exp(MORE_Y),
    "values": np.clip(np.rint(2 * MORE_Y), -1, 1) / 2,
}
SHIFTED = (
    "capped",
    "values",
)  # the others have a bound at zero, and any y above zero is bounded by it


@cache
def on_support(target: str):
    return tiny("NKCME").fit(MORE_X, SUPPORTED[target])


@pytest.mark.parametrize(
    ("target", "scale", "shift"),
    [(target, scale, 0.0) for target in SUPPORTED for scale in (2.0**-30, 1e-9, 1e9)]
    + [(target, 1.0, shift) for target in SHIFTED for shift in (-(2.0**10), -(2.0**20))],
)
def test_units_of_y_are_those_of_its_support(target, scale, shift):
    one = on_support(target)
    if scale == 1e9 and target == "values":
        pytest.skip("at this scale these values are whole numbers")
    other = tiny("NKCME").fit(MORE_X, shift + scale * SUPPORTED[target])
    assert not one.support_.is_everything
    for bound in ("lower", "upper"):
        ours, theirs = (getattr(model.support_, bound) for model in (one, other))
        np.testing.assert_allclose((theirs - shift) / scale, ours, atol=1e-6)
    ours, theirs = (model.predict_dist(MORE_X[:5]) for model in (one, other))
    values, masses = ours.point_masses()
    scaled, other_masses = theirs.point_masses()
    np.testing.assert_allclose((scaled - shift) / scale, values, atol=1e-6)
    np.testing.assert_allclose(other_masses, masses, atol=1e-4)
    np.testing.assert_allclose((theirs.mean() - shift) / scale, ours.mean(), atol=1e-4)
    back = (theirs.ppf([0.05, 0.95]) - shift) / scale
    np.testing.assert_allclose(back, ours.ppf([0.05, 0.95]), rtol=1e-4, atol=1e-4)


@cache
def of_logarithms() -> dict[str, np.ndarray]:
    return in_standard_units(tiny("NKCME", transform="log").fit(X, np.exp(Y)), 1.0, 0.0)


@pytest.mark.parametrize("scale", [2.0**-30, 1e-9, 1e9])
def test_units_of_y_shift_its_logarithm(scale):
    """Logarithms of scaled y are rounded in their 50th bit."""
    model = tiny("NKCME", transform="log").fit(X, scale * np.exp(Y))
    for method, values in in_standard_units(model, scale, 0.0).items():
        np.testing.assert_allclose(values, of_logarithms()[method], 0, 1e-4, err_msg=method)
