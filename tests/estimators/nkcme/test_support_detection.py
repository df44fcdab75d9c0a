"""What values y can take: found in many kinds of targets, or given."""

import numpy as np
import pytest

from nkcme import NKCME
from nkcme.distributions.support import EVERYTHING, Support
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.law_recipe import SupportRecipe
from nkcme.estimators.nkcme.support_detection import detect, given_support
from support.nkcme_models import line, quick

N = 2000


def draw(kind):
    rng = np.random.default_rng(0)
    normal = rng.normal(size=N)
    return {
        "residuals": normal,
        "prices": np.exp(normal),
        "shares": rng.beta(2, 3, size=N),
        "coin": (normal > 0).astype(float),
        "stars": rng.integers(1, 6, size=N).astype(float),
        "counts": rng.poisson(3.0, size=N).astype(float),
        "eleven values": 10.0 * rng.integers(0, 11, size=N) - 28.945,
        "zero-inflated": np.where(normal > 0, 0.0, np.exp(1 + normal)),
        "capped": np.minimum(normal, 1.0),
        "rounded": np.round(normal, 4),
        "years": rng.integers(-2000, 2000, size=N).astype(float),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("residuals", EVERYTHING),
        ("prices", Support(lower=0.0)),
        ("shares", Support(lower=0.0, upper=1.0)),
        ("coin", Support(0.0, 1.0, (0.0, 1.0))),
        ("stars", Support(1.0, 5.0, (1.0, 2.0, 3.0, 4.0, 5.0))),
        ("counts", Support(lower=0.0, integer=True)),
        ("zero-inflated", Support(lower=0.0, reached=(0.0,))),
        ("capped", Support(upper=1.0, reached=(1.0,))),
        ("rounded", EVERYTHING),
        ("years", EVERYTHING),
    ],
)
def test_the_support_is_found(kind, expected):
    assert detect(draw(kind), np.ones(N), SupportRecipe()) == expected


def test_values_that_are_no_whole_numbers_are_found():
    found = detect(draw("eleven values"), np.ones(N), SupportRecipe())
    assert len(found.values) == 11
    assert found.unseen == 0.0


def test_a_value_seen_once_leaves_room_for_others():
    y = np.append(draw("eleven values"), 0.5)
    found = detect(y, np.ones(N + 1), SupportRecipe())
    assert found.unseen == pytest.approx(1 / (N + 1))


def test_few_rows_show_nothing():
    assert detect(np.repeat([0.0, 1.0], 10), np.ones(20), SupportRecipe()) == EVERYTHING


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, None),
        ({"bounds": (0, None)}, Support(lower=0.0)),
        ({"bounds": (None, 1.5)}, Support(upper=1.5)),
        ({"integer": True}, Support(integer=True)),
        ({"integer": True, "bounds": (0, 9)}, Support(0.0, 9.0, integer=True)),
        ({"values": [3, 1, 2, 2]}, Support(1.0, 3.0, (1.0, 2.0, 3.0))),
    ],
)
def test_a_support_can_be_given(parameters, expected):
    assert given_support(NKCME(**parameters)) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bounds": (1, 0)}, "lower < upper"),
        ({"bounds": 3}, "bounds must be"),
        ({"bounds": (0, "one")}, "bounds must be finite numbers"),
        ({"values": []}, "at least one number"),
        ({"values": [0, np.nan]}, "values must be finite numbers"),
        ({"values": [0, 1], "integer": True}, "give bounds and integer without it"),
        ({"bounds": (0, None)}, "values outside the given support.*first in row"),
        ({"support": "some"}, "support must be"),
        ({"integer": True, "head": "signed"}, "weights that are probabilities"),
    ],
)
def test_a_bad_support_is_refused(parameters, message):
    with pytest.raises(NkcmeError, match=message):
        quick(**parameters).fit(*line())
