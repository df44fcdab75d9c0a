"""Flows with random parameters: they bend as trained ones do, and nothing has to be trained."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from nkcme.distributions.flow import FlowDistribution
from nkcme.estimators.spline_flow.flow import Architecture, make_flow, spline_parameters
from nkcme.estimators.spline_flow.transports import JointTransport, SplineTransport

UNITS = {"location": np.array([3.0]), "scale": np.array([2.0])}


class RandomFlow(NamedTuple):
    architecture: Architecture
    model: Any
    x: np.ndarray
    dist: FlowDistribution


def random_model(architecture: Architecture, factor: float) -> Any:
    """Initial parameters, with the networks' weights scaled up so that splines bend."""
    model = jax.jit(make_flow(architecture).initial)(jax.random.key(0))
    return jax.tree.map(lambda a: factor * a if a.ndim > 2 else a, model)


@pytest.fixture(scope="session")
def one_output() -> RandomFlow:
    architecture = Architecture(2, 1, 3, 8, 3.0, (16,), "relu")
    model = random_model(architecture, 2.0)
    x = np.random.default_rng(0).uniform(-1, 1, size=(6, 2)).astype(np.float32)
    parameters = spline_parameters(architecture)(model, x)
    rows = tuple(np.asarray(array, np.float64) for array in parameters)
    dist = FlowDistribution(rows, SplineTransport(architecture.spline), **UNITS)
    return RandomFlow(architecture, model, x, dist)


@pytest.fixture(scope="session")
def two_outputs() -> RandomFlow:
    architecture = Architecture(2, 2, 2, 8, 3.0, (16,), "relu")
    model = random_model(architecture, 1.5)
    x = np.random.default_rng(1).uniform(-1, 1, size=(2, 2)).astype(np.float32)
    dist = FlowDistribution((x,), JointTransport(architecture, model))
    return RandomFlow(architecture, model, x, dist)
