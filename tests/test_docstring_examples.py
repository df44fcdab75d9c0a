"""The examples in docstrings run and give the results they show."""

import doctest
import importlib

import pytest

MODULES = [
    "nkcme.calibration.calibration_map",
    "nkcme.distributions.embedding",
    "nkcme.distributions.gaussian_mixture",
    "nkcme.distributions.hilbert_space",
    "nkcme.distributions.sample",
    "nkcme.kernels",
    "nkcme.metrics.calibration",
    "nkcme.metrics.distances",
    "nkcme.metrics.scores",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
