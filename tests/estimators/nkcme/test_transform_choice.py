"""When log y is modelled: by the parameter, and by the scores of quick models."""

import numpy as np
import pytest

from nkcme.distributions.support import Support
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.law_recipe import TransformRecipe
from nkcme.estimators.nkcme.transform_choice import _crps, _quantiles, compare, transform_of
from support.nkcme_models import quick

N = 2000
POSITIVE = Support(lower=0.0)


def inputs(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, 3)).astype(np.float32)


def draw(kind, seed=0, n=N):
    """Inputs, and y whose noise multiplies it or is added to it."""
    rng, x = inputs(seed, n)
    normal = rng.normal(size=n)
    y = {
        "prices": np.exp(2 + 1.5 * x[:, 0] + 0.3 * normal),
        "noise changes with x": np.exp(1.5 * x[:, 0] + 0.3 * np.exp(0.5 * x[:, 1]) * normal),
        "gamma, added": 3 + np.clip(x[:, 0], -2.5, 2.5) + rng.gamma(2.0, 0.5, n),
        "normal, added": np.maximum(10 + 3 * x[:, 0] + normal, 0.1),
    }[kind]
    return x, y[:, None].astype(np.float64)


def chosen(x, y, weight=None, support=POSITIVE, seed=0, **parameters):
    weight = np.ones(len(y)) if weight is None else weight
    model = quick(**{"center": "auto"} | parameters)
    return transform_of(model, x, y, weight, support, seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("prices", "log"),
        ("noise changes with x", "log"),
        ("gamma, added", "none"),
        ("normal, added", "none"),
    ],
)
def test_the_logarithm_is_chosen_where_noise_multiplies(kind, expected, seed):
    assert chosen(*draw(kind, seed), seed=seed) == expected


def test_the_choice_depends_on_neither_order_nor_units_nor_repetitions():
    n = 1000
    x, y = draw("prices", n=n)
    weight = np.ones(n)
    recipe = TransformRecipe()
    one = compare(x, y, weight, 0, recipe)
    assert compare(x, y, weight, 0, recipe) == one
    np.testing.assert_allclose(compare(x, 2.0**40 * y, weight, 0, recipe), one, rtol=1e-6)
    np.testing.assert_allclose(compare(x, 1e-9 * y, weight, 0, recipe), one, rtol=1e-2)
    order = np.random.default_rng(1).permutation(n)
    for twice in (0, 7):
        rows = np.append(order, order[:twice])
        weights = np.where(np.arange(n) < twice, 2.0, 1.0)
        assert chosen(x[rows], y[rows]) == chosen(x[order], y[order], weights) == "log"


@pytest.mark.parametrize(
    ("y", "support"),
    [
        (lambda y: np.where(np.arange(N)[:, None] == 5, 0.0, y), POSITIVE),
        (lambda y: y, Support()),
        (lambda y: y, Support(0.0, 1000.0)),
        (lambda y: np.ceil(y), Support(0.0, integer=True)),
        (lambda y: 1000.0 + y, POSITIVE),  # spans too little
    ],
)
def test_other_targets_stay_as_they_are(y, support):
    x, prices = draw("prices")
    assert chosen(x, y(prices), support=support) == "none"


def test_auto_means_none_where_no_law_of_log_y_can_be_predicted():
    x, y = draw("prices")
    assert chosen(x[:150], y[:150]) == "none"  # few rows
    assert chosen(x, np.tile(y, 2)) == "none"
    assert chosen(x, y, head="signed") == "none"
    assert chosen(x, y, reading="atomic") == "none"
    assert chosen(x, y, transform="none") == "none"
    assert chosen(x, y, center="none") == "none"


def test_large_tables_are_compared_on_some_rows():
    x, y = draw("prices")
    recipe = TransformRecipe(most_rows=300)
    assert compare(x, y, np.ones(N), 0, recipe) != compare(x, y, np.ones(N), 0, TransformRecipe())


def test_scores_are_those_of_quantiles():
    rng = np.random.default_rng(0)
    values, y = np.sort(rng.normal(size=(4, 9)), axis=1), rng.normal(size=4)
    apart = np.abs(values[:, :, None] - values[:, None]).mean(axis=(1, 2))
    expected = np.abs(values - y[:, None]).mean(axis=1) - 0.5 * apart
    np.testing.assert_allclose(_crps(values, y), expected)
    repeated = _quantiles(np.array([1.0, 2.0, 2.0, 5.0]), np.ones(4), 50)
    weighted = _quantiles(np.array([5.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 50)
    np.testing.assert_allclose(np.mean(repeated), np.mean(weighted), atol=0.15)


# --- the parameter --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"transform": "sqrt"}, "transform must be"),
        ({"transform": "log", "head": "signed"}, 'needs head="simplex"'),
        ({"transform": "log", "reading": "smoothed"}, 'needs .*reading="auto" or "law"'),
    ],
)
def test_a_bad_transform_is_refused(parameters, message):
    x, y = draw("prices")
    with pytest.raises(NkcmeError, match=message):
        quick(**parameters).fit(x, y[:, 0])


def test_y_that_has_no_logarithm_is_refused():
    x, y = draw("prices")
    bad = y[:, 0].copy()
    bad[[3, 8]] = [0.0, -2.0]
    model = quick(transform="log")
    message = r'"log" needs y above zero; got 2 values that are not, the first in row 3 .*: 0; cor'
    with pytest.raises(NkcmeError, match=message):
        model.fit(x, bad)
    with pytest.raises(NkcmeError, match="needs y_val above zero"):
        model.fit(x, y[:, 0], X_val=x, y_val=bad)
    with pytest.raises(NkcmeError, match="one output, and y has 2"):
        model.fit(x, np.tile(y, 2))
    weight = np.where(bad > 0, 1.0, 0.0)
    assert model.fit(x, bad, weight).transform_ == "log"
