"""Tables of other shapes are trained by the programs of the first one."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from nkcme import NKCME, load
from nkcme.atoms import Atoms
from nkcme.estimators.nkcme import parameters
from nkcme.estimators.nkcme.embedding_network import TableValues, make_task
from nkcme.training.loop import Plan, Rows, train
from support.compiled_programs import CompiledPrograms
from support.tiny_estimators import small_recipe

N_IN, WIDTH, N_MEMBERS = 3, 16, 2


def table(n, p, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return x, np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=n)


def fitted(n, p):
    return NKCME(recipe=small_recipe(), hidden=(8,), random_state=0, verbose=False).fit(
        *table(n, p)
    )


def test_a_table_of_another_shape_needs_no_new_program():
    fitted(150, 2)
    with CompiledPrograms() as programs:
        model = fitted(170, 9)
    assert programs.names == []
    assert 0.0 <= model.fit_seconds_["compilation"] < model.fit_seconds_["total"]


def test_a_model_has_no_trace_of_the_padding(tmp_path):
    model = fitted(150, 5)
    n_in = 5 if model.center_ is None else model.center_.n_inputs(5)
    assert model.model_.network.layers[0].weight.shape[-2:] == (8, n_in)
    if model.center_ is not None:
        assert model.center_.bases["network"].models.layers[0].weight.shape[-1] == 5
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    x, _ = table(20, 5)
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))


@pytest.mark.parametrize("spectral_norm", [(), (0,)])
@pytest.mark.parametrize("head", ["simplex", "components"])
def test_padded_inputs_train_as_those_without_padding(head, spectral_norm):
    """From the same initial weights; floats are added in another order."""
    model = NKCME(hidden=(8, 8), n_atoms=20, spectral_norm=spectral_norm)
    x, y = table(80, N_IN)
    rows = Rows.of([np.arange(60), np.arange(20, 80)])
    keys = np.array([[0, 1], [0, 2]], np.uint32)
    atoms = Atoms.points(np.tile(np.linspace(-2, 2, 20, dtype=np.float32)[:, None], (2, 1, 1)))
    values = TableValues(*(np.full(N_MEMBERS, v, np.float32) for v in (N_IN, 2.0, 0.3)))
    spec = parameters.make_spec(model, head, model._descent(30), WIDTH, 1)
    task = make_task(spec)
    start = jax.vmap(task.init)(jax.random.split(jax.random.key(0), N_MEMBERS), (atoms, values))

    def trained(width, task):
        own = jax.tree.map(np.asarray, start.with_inputs(width))
        given = lambda key, constant: constant[2]  # noqa: E731
        inputs = np.pad(x, ((0, 0), (0, width - N_IN))).astype(np.float32)
        columns = inputs, y[:, None].astype(np.float32)
        constants = (atoms, values, own)
        return train(task._replace(init=given), constants, columns, rows, Plan(30, 16), keys)

    padded, narrow = trained(WIDTH, task), trained(N_IN, make_task(spec._replace(n_in=N_IN)))
    ours, theirs = (jax.tree.leaves(m) for m in (padded.models.with_inputs(N_IN), narrow.models))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3)
