"""Pytrees as named arrays, from trusted and untrusted files."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import ModelFileError, TrainingError
from nkcme.networks import MLP
from nkcme.training.named_arrays import (
    named_arrays,
    tree_from_checkpoint,
    tree_from_model_file,
)


@pytest.fixture
def network():
    return MLP(2, 3, (4,), activation="relu", head="signed", key=jax.random.key(0))


@pytest.fixture
def skeleton():
    make = lambda key: MLP(2, 3, (4,), activation="relu", head="signed", key=key)  # noqa: E731
    return jax.eval_shape(make, jax.random.key(0))


def test_names_are_a_prefix_and_the_path(network):
    """These names are in model files and checkpoints: they never change."""
    assert set(named_arrays(network, "model")) == {
        f"model.layers[{i}].{name}" for i in (0, 1) for name in ("weight", "bias")
    }
    assert set(named_arrays({"a": (np.zeros(1), np.zeros(2))}, "state")) == {
        "state['a'][0]",
        "state['a'][1]",
    }


def test_a_model_file_gives_the_same_tree(network, skeleton):
    back = tree_from_model_file(skeleton, named_arrays(network, "model"), "model")
    assert jax.tree.structure(back) == jax.tree.structure(network)
    for ours, theirs in zip(jax.tree.leaves(back), jax.tree.leaves(network), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_leading_axes_come_before_the_shapes(network, skeleton):
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), network)
    back = tree_from_model_file(skeleton, named_arrays(stacked), leading=(2,))
    np.testing.assert_array_equal(back.layers[0].bias[1], 2 * network.layers[0].bias)
    with pytest.raises(ModelFileError, match="floats of shape"):
        tree_from_model_file(skeleton, named_arrays(stacked), leading=(3,))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a.pop(".layers[0].bias"), "lacks the array .layers"),
        (lambda a: a.update({".layers[0].bias": np.zeros(5, np.float32)}), "floats of shape"),
        (lambda a: a.update({".layers[0].bias": np.zeros(4, np.int32)}), "floats of shape"),
        (lambda a: a.update({".layers[0].bias": np.full(4, np.nan)}), "not finite"),
        (lambda a: a.update({"other": np.zeros(1)}), "does not have"),
    ],
)
def test_other_arrays_in_a_model_file_are_refused(network, skeleton, change, message):
    arrays = named_arrays(network)
    change(arrays)
    with pytest.raises(ModelFileError, match=message):
        tree_from_model_file(skeleton, arrays)


def test_a_checkpoint_gives_some_replicas_in_the_types_of_the_state():
    state = {"x": np.zeros((2, 3), np.float32), "key": np.zeros((2, 2), np.uint32)}
    whole = {"x": np.arange(15.0).reshape(5, 3), "key": np.arange(10).reshape(5, 2)}
    arrays = named_arrays(whole, "state")
    back = tree_from_checkpoint(state, arrays, "state", replicas=slice(1, 3), where="here")
    np.testing.assert_array_equal(back["x"], whole["x"][1:3])
    np.testing.assert_array_equal(back["key"], whole["key"][1:3])
    assert (back["x"].dtype, back["key"].dtype) == (jnp.float32, jnp.uint32)
    with pytest.raises(TrainingError, match="the checkpoint here was written by other versions"):
        tree_from_checkpoint(state, arrays, "state", replicas=slice(4, 6), where="here")
