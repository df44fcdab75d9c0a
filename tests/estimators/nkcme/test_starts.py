"""Replicas that are initialised by NumPy are those of the compiled program."""

import jax
import numpy as np
import pytest

from nkcme import NKCME
from nkcme.atoms import Atoms
from nkcme.estimators.nkcme import location_networks, parameters
from nkcme.estimators.nkcme.embedding_network import TableValues, make_task
from nkcme.training.optimizers import Descent
from nkcme.training.steps import start_by_numpy, start_compiled

N_REPLICAS, WIDTH = 2, 5
KEYS = np.random.SeedSequence(0).generate_state(4 * N_REPLICAS).reshape(2, N_REPLICAS, 2)
DESCENT = Descent(1e-2, 1e-3, 0.99, "constant", 0)


def of_embedding(n_out=1, **parameters_of_model):
    """A task whose replicas have other atoms, widths and numbers of inputs."""
    model = NKCME(hidden=(8, 6), n_atoms=20, **parameters_of_model)
    spec = parameters.make_spec(model, model.head, DESCENT, WIDTH, n_out)
    locations = np.random.default_rng(0).normal(size=(N_REPLICAS, 20, n_out))
    atoms = Atoms.points(np.sort(locations, axis=1).astype(np.float32))
    numbers = np.array([[3, 0.5, 0.1], [5, 30.0, 0.2]], np.float32)
    return make_task(spec), (atoms, TableValues(*numbers.T))


def of_grid():
    """The same with atoms on a grid, which know their spacing."""
    task, (_, values) = of_embedding()
    ends = np.array([1.0, 2.0], np.float32)
    return task, (jax.vmap(lambda end: Atoms.grid(-end, end, 20))(ends), values)


def of_location():
    training = location_networks._Training(WIDTH, 2, (8, 6), DESCENT, 0.1)
    return location_networks._task(training), np.array([3, 5], np.float32)


CASES = {
    "location": of_location,
    "grid": of_grid,
    "simplex": of_embedding,
    "signed": lambda: of_embedding(head="signed"),
    "components": lambda: of_embedding(head="components"),
    "fixed bandwidth": lambda: of_embedding(bandwidth_update="fixed"),
    "fixed components": lambda: of_embedding(head="components", bandwidth_update="fixed"),
    "learned atoms": lambda: of_embedding(atoms="learned"),
    "two outputs": lambda: of_embedding(n_out=2),
}


@pytest.mark.parametrize("case", CASES)
def test_both_programs_start_alike(case):
    task, constants = CASES[case]()
    assert task.starts_by_numpy
    ours = start_by_numpy(task, *KEYS, constants)
    theirs = start_compiled(task, *KEYS, constants)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (one.dtype, one.weak_type) == (other.dtype, other.weak_type)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
