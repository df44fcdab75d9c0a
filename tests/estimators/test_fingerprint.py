"""Fingerprints of runs: equal for equal values, in any process, and different otherwise."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nkcme.errors import NkcmeError
from nkcme.estimators.fingerprint import as_value, fingerprint
from nkcme.estimators.nkcme.recipe import Recipe


class Duck:
    """A regressor that is no scikit-learn estimator."""

    def __init__(self, depth, table=None):
        self.depth = depth
        self.table = table

    def fit(self, x, y): ...

    def predict(self, x): ...


def square(x):
    return x * x


DIFFERENT = [
    None,
    1,
    1.5,
    "1",
    True,
    [1, 2],
    [[1], 2],
    {"a": 1},
    {"a": 2},
    {1: "a"},
    {1, 2},
    np.arange(3),
    np.arange(3.0),
    np.array(["a", None], object),
    Ridge(),
    Ridge(alpha=2.0),
    make_pipeline(StandardScaler(), Ridge()),
    make_pipeline(StandardScaler(), Ridge(alpha=2.0)),
    RandomForestRegressor(max_depth=3),
    Duck(1),
    Duck(2),
    Duck(1, np.zeros(2)),
    Duck(1, square),
    Duck,
    square,
    Recipe(),
    Recipe(n_folds=3),
    np.random.RandomState(0),
    np.random.default_rng(0),
]


def test_different_values_have_different_fingerprints():
    prints = [fingerprint({"center": value}, []) for value in DIFFERENT]
    assert len(set(prints)) == len(DIFFERENT)


def test_equal_values_have_equal_fingerprints():
    # scikit-learn's repr of this is cut at 700 characters, before the last step.
    steps = [Ridge(alpha=i + 0.5) for i in range(60)]
    long = [make_pipeline(*steps, Ridge(alpha=alpha)) for alpha in (1, 2)]
    one, other = (as_value("center", value) for value in long)
    assert one != other
    assert as_value("center", Duck(1, np.ones(3))) == as_value("center", Duck(1, np.ones(3)))
    assert as_value("center", {"b": 1, "a": 2}) == as_value("center", {"a": 2, "b": 1})
    assert as_value("hidden", (8, 8)) == as_value("hidden", [8, 8])


def test_another_process_finds_the_same_fingerprint():
    code = (
        "from tests.estimators.test_fingerprint import Duck\n"
        "from nkcme.estimators.fingerprint import fingerprint\n"
        "print(fingerprint({'center': Duck(1, {'z', 'a', 'k'})}, ['digest']))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout


def closure(depth):
    def inner(x):
        return depth * x

    return inner


@pytest.mark.parametrize("value", [lambda x: x, closure(3), (1 for _ in "a")])
def test_what_has_no_value_is_refused(value):
    with pytest.raises(NkcmeError, match=r"center holds a \w+ that has none to compare by"):
        as_value("center", value)


def test_a_parameter_that_contains_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(NkcmeError, match="none to compare by"):
        as_value("center", loop)
