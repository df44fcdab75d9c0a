"""Boosted trees as plain arrays, for safe files and for prediction with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from nkcme.distributions.blocks import row_slices
from nkcme.errors import ModelFileError

#: Trees are read by one thread at a time. Several would only hand Python's lock to each other, on
#: sixteen cores for three times as long as one takes.
_reading = Lock()

#: Paths of rows through trees that are followed together.
_MOST_PATHS = 2**18


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A constant plus a sum of trees. The nodes of all trees are concatenated.

    A forest is one too, if the values of its leaves are divided by the number of its trees. A row
    goes left where its feature is at most the threshold. Both children of a leaf are the leaf
    itself, so that every row can take `depth` steps. Numbers have 16 or 32 bits; in files of
    earlier versions they have 64.
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
    def of_text(cls, text: str) -> BoostedTrees:
        """The trees of a model in LightGBM's text format, for inputs of single precision without
        missing values and categories."""
        with _reading:
            return cls._of_text(text)

    @classmethod
    def _of_text(cls, text: str) -> BoostedTrees:
        trees = text.partition("\nend of trees")[0]

        def numbers(name: str, dtype: type) -> np.ndarray:
            """The values of all trees that follow this name."""
            lists = trees.split(f"\n{name}=")[1:]
            return np.fromstring(" ".join(one.partition("\n")[0] for one in lists), dtype, sep=" ")

        # A tree has its inner nodes first, then its leaves. A child that is negative is the leaf
        # whose number is its complement.
        n_leaves = numbers("num_leaves", np.int32)
        sizes = 2 * n_leaves - 1
        roots = (np.cumsum(sizes) - sizes).astype(np.int32)
        within = np.arange(sizes.sum(), dtype=np.int32) - np.repeat(roots, sizes)
        is_inner = within < np.repeat(n_leaves - 1, sizes)
        first, first_leaf = (np.repeat(at, n_leaves - 1) for at in (roots, roots + n_leaves - 1))

        def with_inner(values: np.ndarray, at_leaves: Any) -> np.ndarray:
            nodes = np.zeros(len(is_inner), values.dtype)
            nodes[is_inner], nodes[~is_inner] = values, at_leaves
            return nodes

        def child(name: str) -> np.ndarray:
            number = numbers(name, np.int32)
            at = np.where(number < 0, first_leaf + ~number, first + number)
            return with_inner(at, np.flatnonzero(~is_inner))

        left, right = child("left_child"), child("right_child")
        value = np.zeros(len(is_inner), np.float32)
        value[~is_inner] = numbers("leaf_value", np.float64)
        return cls(
            baseline=0.0,
            roots=roots,
            feature=with_inner(_narrow(numbers("split_feature", np.int32)), 0),
            threshold=with_inner(_rounded_down(numbers("threshold", np.float64)), 0.0),
            left=left,
            right=right,
            value=value,
            depth=_depth(roots, left, right),
        )

    @classmethod
    def of_trees(cls, regressors: Sequence[Any]) -> BoostedTrees:
        """The mean of scikit-learn's regression trees, for inputs of single precision."""
        with _reading:
            return cls._of_trees([one.tree_ for one in regressors])

    @classmethod
    def _of_trees(cls, trees: Sequence[Any]) -> BoostedTrees:
        sizes = np.array([tree.node_count for tree in trees])
        roots = (np.cumsum(sizes) - sizes).astype(np.int32)
        first = np.repeat(roots, sizes)
        itself = np.arange(sizes.sum(), dtype=np.int32)
        nodes = {
            name: np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("feature", "threshold", "children_left", "children_right")
        }
        is_leaf = nodes["children_left"] < 0
        left, right = (
            np.where(is_leaf, itself, first + nodes[name]).astype(np.int32)
            for name in ("children_left", "children_right")
        )
        value = np.concatenate([tree.value[:, 0, 0] for tree in trees]) / len(trees)
        return cls(
            baseline=0.0,
            roots=roots,
            feature=_narrow(np.where(is_leaf, 0, nodes["feature"])),
            threshold=_rounded_down(np.where(is_leaf, 0.0, nodes["threshold"])),
            left=left,
            right=right,
            value=np.where(is_leaf, value, 0.0).astype(np.float32),
            depth=_depth(roots, left, right),
        )

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Predictions (n,) at rows (n, p) of single precision; `tree_tables` has a faster way."""
        x, threshold = np.asarray(x, np.float32), self.single_threshold
        total = np.full(len(x), self.baseline)
        for rows in row_slices(len(x), max(1, _MOST_PATHS // len(self.roots))):
            own = np.arange(rows.stop - rows.start)[:, None]
            node = np.tile(self.roots, (len(own), 1))
            for _ in range(self.depth):
                goes_left = x[rows][own, self.feature[node]] <= threshold[node]
                node = np.where(goes_left, self.left[node], self.right[node])
            # Hundreds of roundings to single precision would add up.
            total[rows] += self.value[node].sum(axis=1, dtype=np.float64)
        return total

    @property
    def is_leaf(self) -> np.ndarray:
        """Whether each node is a leaf."""
        return self.left == np.arange(len(self.left))

    @property
    def single_threshold(self) -> np.ndarray:
        """The thresholds in single precision."""
        return _rounded_down(self.threshold)

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
        inner = np.flatnonzero(rest["left"] != np.arange(n))
        children = [rest["roots"], rest["left"][inner], rest["right"][inner]]
        if np.bincount(np.concatenate(children)).max() > 1:
            raise ModelFileError("the trees of the model file have nodes with several parents")
        return cls(baseline=float(head[0]), depth=int(head[1]), **rest)


def _depth(roots: np.ndarray, left: np.ndarray, right: np.ndarray) -> int:
    """The steps from the roots to the deepest leaf."""
    nodes, depth = roots, 0
    while len(nodes := nodes[left[nodes] != nodes]):
        nodes, depth = np.concatenate([left[nodes], right[nodes]]), depth + 1
    return depth


def _narrow(feature: np.ndarray) -> np.ndarray:
    """Numbers of features, in 16 bits where they fit."""
    fit = feature.max(initial=0) <= np.iinfo(np.int16).max
    return feature.astype(np.int16 if fit else np.int32)


def _rounded_down(threshold: np.ndarray) -> np.ndarray:
    """In single precision, rounded so that comparisons with numbers of single precision do not
    change."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)
