"""Pytrees as named arrays and back, for model files and checkpoints.

A leaf is named by the path that leads to it, as ``.layers[0].weight``, after a prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nkcme.errors import ModelFileError, TrainingError
from nkcme.model_files.array_checks import need_array

PyTree = Any


def named_arrays(tree: PyTree, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the leaves of a pytree, each under its path."""
    leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(tree))
    return {f"{prefix}{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def tree_from_model_file(
    skeleton: PyTree,
    arrays: Mapping[str, np.ndarray],
    prefix: str = "",
    *,
    leading: tuple[int, ...] = (),
) -> PyTree:
    """Fill a pytree of shapes with the arrays of an untrusted file, in single precision.

    The arrays must be exactly those that `named_arrays` gives of such a tree, finite floats, with
    the ``leading`` axes before those of each shape; anything else raises ModelFileError.
    """
    used = []

    def read(name: str, leaf: Any) -> jax.Array:
        need_array(arrays, name, (*leading, *leaf.shape))
        used.append(name)
        return jnp.asarray(arrays[name], jnp.float32)

    tree = _filled(skeleton, prefix, read)
    if len(used) != len(arrays):
        raise ModelFileError("the model file holds arrays that this model does not have")
    return tree


def tree_from_checkpoint(
    skeleton: PyTree,
    arrays: Mapping[str, np.ndarray],
    prefix: str,
    *,
    replicas: slice,
    where: str,
) -> PyTree:
    """Fill a pytree with some ``replicas`` of the arrays of a checkpoint, in the types it has.

    The checkpoint is this run's own, so a mismatch means that other versions of the libraries
    wrote it; ``where`` names the checkpoint in the TrainingError.
    """

    def read(name: str, leaf: Any) -> jax.Array:
        saved = arrays.get(name)
        if saved is None or saved[replicas].shape != leaf.shape:
            raise TrainingError(
                f"the checkpoint {where} was written by other versions of the libraries: "
                "delete it to start afresh"
            )
        return jnp.asarray(saved[replicas], leaf.dtype)

    return _filled(skeleton, prefix, read)


def _filled(skeleton: PyTree, prefix: str, read: Callable[[str, Any], jax.Array]) -> PyTree:
    """Replace each leaf by ``read(name, leaf)``."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: read(f"{prefix}{jax.tree_util.keystr(path)}", leaf), skeleton
    )
