"""No text of an object that users get prints an array."""

import numpy as np
import pytest

from nkcme import rl
from nkcme.datasets import UciTable, load_apartments
from nkcme.estimators.nkcme.uncertainty import Uncertainty
from nkcme.report.partial_dependence import PartialDependence
from nkcme.rl.curve import Curve
from nkcme.rl.play import Episodes, Recording
from nkcme.rl.risky_path import RiskyPath

LONG, WIDE = np.arange(2000.0), np.zeros((2000, 3))


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (Uncertainty(LONG, LONG), "aleatoric=<ndarray 2000>"),
        (load_apartments(30), "X=<DataFrame 30 x 10>"),
        (UciTable("boston", WIDE, LONG, ((LONG, LONG),)), "folds=<1 items>"),
        (Episodes(WIDE, LONG, LONG, LONG, LONG > 3), "starts=<ndarray 2000 x 3>"),
        (Recording(WIDE, LONG, LONG, True, 3), "terminated=True, seed=3"),
        (Curve(LONG, WIDE), "loss=<ndarray 2000 x 3>"),
        (PartialDependence("area", LONG, WIDE, LONG, WIDE), "feature='area'"),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, str) else "",
)
def test_arrays_are_their_shapes(one, shown):
    assert shown in repr(one)
    assert "array(" not in repr(one)
    assert len(repr(one)) < 300


def test_a_result_says_what_was_trained():
    settings = rl.Settings(n_steps=200, prefill=100, buffer_size=100)
    result = rl.train(RiskyPath(), rl.DQN(), settings, seeds=2)
    assert repr(result).startswith("Result(2 dqn agents in RiskyPath, 200 steps, mean return ")
    assert len(repr(result)) < 100
