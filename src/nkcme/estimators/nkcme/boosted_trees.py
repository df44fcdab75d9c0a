"""Boosted trees as plain arrays, for safe files and for prediction by a compiled program.

scikit-learn's own objects can be stored only by pickle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.errors import ModelFileError


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A constant plus a sum of trees. The nodes of all trees are concatenated.

    A row goes left where its feature is at most the threshold. Both children of a leaf are the leaf
    itself, so that every row can take `depth` steps.
    """

    baseline: float
    roots: np.ndarray  # (n_trees,), the root of each
    feature: np.ndarray  # (n_nodes,)
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    depth: int

    @classmethod
    def of(cls, model: Any) -> BoostedTrees:
        """The trees of a fitted HistGradientBoostingRegressor without missing values."""
        trees = [stage[0].nodes for stage in model._predictors]
        sizes = [len(nodes) for nodes in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        nodes = np.concatenate(trees)
        first = np.repeat(roots, sizes)
        is_leaf, itself = nodes["is_leaf"].astype(bool), np.arange(len(nodes))
        return cls(
            baseline=float(np.ravel(model._baseline_prediction)[0]),
            roots=roots,
            feature=np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.int64),
            threshold=np.where(is_leaf, 0.0, nodes["num_threshold"]),
            left=np.where(is_leaf, itself, first + nodes["left"]),
            right=np.where(is_leaf, itself, first + nodes["right"]),
            value=np.where(is_leaf, nodes["value"], 0.0),
            depth=int(nodes["depth"].max()),
        )

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Predictions (n,) at rows (n, p), in single precision."""
        # Lengths are padded to powers of two, so that few programs are compiled.
        nodes = 1 << max(len(self.left) - 1, 1).bit_length()
        rows = 1 << max(len(x) - 1, 63).bit_length()
        room = partial(np.pad, pad_width=(0, nodes - len(self.left)))
        # On the host: a GPU is slow at thousands of short steps in sequence.
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            total = _descend(
                np.pad(np.asarray(x, np.float32), ((0, rows - len(x)), (0, 0))),
                self.roots.astype(np.int32),
                room(self.feature.astype(np.int32)),
                room(_rounded_down(self.threshold)),
                room(self.left.astype(np.int32)),
                room(self.right.astype(np.int32)),
                room(self.value.astype(np.float32)),
                self.depth,
            )
        return self.baseline + np.asarray(total, np.float64)[: len(x)]

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {
            "head": np.array([self.baseline, self.depth], np.float64),
            "roots": self.roots,
            "feature": self.feature,
            "threshold": self.threshold,
            "left": self.left,
            "right": self.right,
            "value": self.value,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_features: int) -> BoostedTrees:
        """The trees of an untrusted file: every index in it is checked."""
        whole, real = ("roots", "feature", "left", "right"), ("head", "threshold", "value")
        if set(arrays) != {*whole, *real}:
            raise ModelFileError("the trees of the model file are not complete")
        kinds = [(whole, "i"), (real, "f")]
        if not all(
            arrays[n].dtype.kind == kind and arrays[n].ndim == 1 for ns, kind in kinds for n in ns
        ):
            raise ModelFileError("the trees of the model file have the wrong types")
        n = len(arrays["left"])
        same = all(len(arrays[k]) == n for k in ("feature", "threshold", "right", "value"))
        inside = n > 0 and all(
            len(arrays[k]) and arrays[k].min() >= 0 and arrays[k].max() < bound
            for k, bound in (("roots", n), ("left", n), ("right", n), ("feature", n_features))
        )
        finite = all(np.isfinite(arrays[k]).all() for k in real)
        head = arrays["head"]
        if not (same and inside and finite and len(head) == 2 and 0 <= head[1] <= n):
            raise ModelFileError("the trees of the model file have indices out of range")
        rest = {k: v for k, v in arrays.items() if k != "head"}
        return cls(baseline=float(head[0]), depth=int(head[1]), **rest)


@jax.jit
def _descend(
    x: Array,
    roots: Array,
    feature: Array,
    threshold: Array,
    left: Array,
    right: Array,
    value: Array,
    depth: Array,
) -> Array:
    """The sum of the leaves that rows (n, p) reach. The loop over trees is outermost: a tree stays
    in the cache while all rows descend it."""
    rows = jnp.arange(len(x))

    def down(_: Array, node: Array) -> Array:
        return jnp.where(x[rows, feature[node]] <= threshold[node], left[node], right[node])

    def add(total: Array, root: Array) -> tuple[Array, None]:
        leaf = jax.lax.fori_loop(0, depth, down, jnp.full(len(x), root, jnp.int32))
        return total + value[leaf], None

    return jax.lax.scan(add, jnp.zeros(len(x), jnp.float32), roots)[0]


def _rounded_down(threshold: np.ndarray) -> np.ndarray:
    """In single precision, rounded so that comparisons with numbers of single precision do not
    change."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)
