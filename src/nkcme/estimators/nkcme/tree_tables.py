"""Sums of boosted trees, evaluated for one row or for many.

A tree is evaluated without descending it. Each split that sends a row to the right rules out the
leaves on its left; the first leaf that no split rules out is the row's. With one bit per leaf, a
table has for every input and every interval between its thresholds the leaves of all trees that are
ruled out, so that a row needs one line of the table per input (after QuickScorer, Lucchese et al.,
2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nkcme.distributions.blocks import row_slices
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees

#: Rows that are evaluated together, so that their bits stay in the cache of a core.
_BLOCK_ROWS = 256

#: Up to as many rows all members are evaluated together: the calls cost more than the arithmetic.
_FEW_ROWS = 4

_WORD = 64


@dataclass(frozen=True, eq=False)
class TreeTables:
    """The tables of K sums of up to T trees, over the F inputs that they use.

    Attributes
    ----------
    columns : array (F,)
        The columns of the inputs.
    thresholds : list of F arrays
        All thresholds of each input, in increasing order.
    numbers : array (F,)
        From 0 to F - 1.
    keys : array of complex
        All of them, with the number of the input as their real part: in the order of complex
        numbers, which is by the real part first, one search finds the places of all inputs.
    lines : array (n_keys + F, K)
        The lines of ``ruled_out``, input after input, for rows with 0 to m of its thresholds below
        them.
    ruled_out : array (n_lines, T * n_words)
        Bits of the leaves that one input rules out.
    values : array (K * T * n_leaves,)
    first : array (K, T)
        The place of the first leaf of each tree in ``values``.
    baseline : array (K,)
    n_words : int
        Words of bits for each tree; one up to 64 leaves.
    """

    columns: np.ndarray
    thresholds: list[np.ndarray]
    numbers: np.ndarray
    keys: np.ndarray
    lines: np.ndarray
    ruled_out: np.ndarray
    values: np.ndarray
    first: np.ndarray
    baseline: np.ndarray
    n_words: int

    @classmethod
    def of(cls, sums: Sequence[BoostedTrees]) -> TreeTables:
        n_trees = max(len(one.roots) for one in sums)
        nodes = _Nodes.of(sums, n_trees)
        n_leaves = int(nodes.n_leaves.max())
        bits, n_words = _words(n_leaves)
        first = (n_leaves * np.arange(len(sums) * n_trees)).reshape(len(sums), n_trees)
        values = np.zeros(first.size * n_leaves, np.float32)
        leaf = np.flatnonzero(nodes.is_leaf)
        values[nodes.tree[leaf] * n_leaves + nodes.first[leaf]] = nodes.value[leaf]
        baseline = np.array([one.baseline for one in sums])
        inner = np.flatnonzero(~nodes.is_leaf)
        # Splits by input, then by sum, then by threshold.
        number = nodes.tree[inner] // n_trees
        order = np.lexsort((nodes.threshold[inner], number, nodes.feature[inner]))
        inner, number = inner[order], number[order]
        feature, threshold = nodes.feature[inner], nodes.threshold[inner]
        columns = np.unique(feature)
        thresholds: list[np.ndarray] = []
        lines: list[np.ndarray] = []
        blocks: list[np.ndarray] = []
        n_lines = 0
        for column in columns:
            of_column = slice(*np.searchsorted(feature, [column, column + 1]))
            all_thresholds = np.unique(threshold[of_column])
            of_input = np.empty((len(all_thresholds) + 1, len(sums)), np.intp)
            for k in range(len(sums)):
                start, stop = of_column.start + np.searchsorted(number[of_column], [k, k + 1])
                own, place = np.unique(threshold[start:stop], return_inverse=True)
                block = np.zeros((len(own) + 1, n_trees * n_words), f"u{bits // 8}")
                chosen = inner[start:stop]
                column_of = n_words * (nodes.tree[chosen] % n_trees)
                _rule_out(block, place + 1, nodes, chosen, column_of, n_words)
                np.bitwise_or.accumulate(block, axis=0, out=block)
                of_input[0, k] = n_lines
                of_input[1:, k] = n_lines + np.searchsorted(own, all_thresholds, "right")
                blocks.append(block)
                n_lines += len(block)
            thresholds.append(all_thresholds)
            lines.append(of_input)
        nothing = np.zeros((1, n_trees * n_words), f"u{bits // 8}")
        ruled_out = np.concatenate(blocks or [nothing])
        keys = [_keys(i, own) for i, own in enumerate(thresholds)]
        return cls(
            columns,
            thresholds,
            np.arange(len(columns)),
            np.concatenate([*keys, _keys(0, np.empty(0))]),
            np.concatenate([*lines, np.empty((0, len(sums)), np.intp)]),
            ruled_out,
            values,
            first,
            baseline,
            n_words,
        )

    def sums(self, x: np.ndarray) -> np.ndarray:
        """The sums (n, K) at rows (n, p) of single precision."""
        if not self.thresholds:
            return np.tile(self.baseline + self.values.take(self.first).sum(axis=1), (len(x), 1))
        lines = self.lines.take(self._places(x), axis=0)
        if len(x) <= _FEW_ROWS:
            ruled_out = self.ruled_out.take(lines, axis=0)
            leaf = self._leaf(np.bitwise_or.reduce(ruled_out, axis=1))
            values = self.values.take(leaf + self.first)
            return self.baseline + np.add.reduce(values, axis=-1, dtype=np.float64)
        total = np.empty((len(x), len(self.baseline)))
        for rows in row_slices(len(x), _BLOCK_ROWS):
            for k, first in enumerate(self.first):
                leaf = self._leaf(self._of_sum(lines[rows, :, k]))
                total[rows, k] = self.values.take(leaf + first).sum(axis=1, dtype=np.float64)
        return self.baseline + total

    def _places(self, x: np.ndarray) -> np.ndarray:
        """The places (n, F) of rows among `lines`."""
        if len(x) <= _FEW_ROWS:
            keys = _keys(self.numbers, x.take(self.columns, axis=1))
            return self.keys.searchsorted(keys) + self.numbers
        places, start = np.empty((len(x), len(self.columns)), np.intp), 0
        for i, (column, own) in enumerate(zip(self.columns, self.thresholds, strict=True)):
            places[:, i] = own.searchsorted(x[:, column])
            places[:, i] += start
            start += len(own) + 1
        return places

    def _of_sum(self, lines: np.ndarray) -> np.ndarray:
        """The leaves of one sum that are ruled out, for lines (n, F)."""
        ruled_out = self.ruled_out.take(lines[:, 0], axis=0)
        more = np.empty_like(ruled_out)
        for column in lines.T[1:]:
            self.ruled_out.take(column, axis=0, out=more, mode="clip")
            np.bitwise_or(ruled_out, more, out=ruled_out)
        return ruled_out

    def _leaf(self, ruled_out: np.ndarray) -> np.ndarray:
        """The number (..., T) of the first leaf that is not ruled out, (..., T * n_words)."""
        first = np.bitwise_count(ruled_out & ~(ruled_out + ruled_out.dtype.type(1)))
        if self.n_words == 1:
            return first
        words = first.reshape(*first.shape[:-1], -1, self.n_words).astype(np.intp)
        leaf = words[..., 0]
        for w in range(1, self.n_words):
            leaf = np.where(leaf == w * _WORD, leaf + words[..., w], leaf)
        return leaf


def _keys(number: Any, x: np.ndarray) -> np.ndarray:
    """Values of inputs, with the numbers of the inputs as real parts."""
    keys = np.empty((*x.shape, 2), np.float32)
    keys[..., 0], keys[..., 1] = number, x
    return keys.view(np.complex64)[..., 0]


class _Nodes(NamedTuple):
    """The nodes of all trees, in the order in which they are reached from the roots."""

    tree: np.ndarray  # the number of the tree; tree t of sum k has k * n_trees + t
    feature: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    is_leaf: np.ndarray
    first: np.ndarray  # the first of the leaves below a node, counted from the left of its tree
    n_leaves: np.ndarray  # the number of them
    n_left: np.ndarray  # the number below its left child

    @classmethod
    def of(cls, sums: Sequence[BoostedTrees], n_trees: int) -> _Nodes:
        starts = np.cumsum([0, *(len(one.left) for one in sums)])
        left, right, roots = (
            np.concatenate([getattr(one, name) + at for one, at in zip(sums, starts, strict=False)])
            for name in ("left", "right", "roots")
        )
        tree = np.concatenate([k * n_trees + np.arange(len(s.roots)) for k, s in enumerate(sums)])
        levels = [(roots, tree)]
        while len(levels[-1][0]):
            node, tree = levels[-1]
            inner = left[node] != node
            node, tree = node[inner], tree[inner]
            levels.append((np.concatenate([left[node], right[node]]), np.tile(tree, 2)))
        count, count_left, first = (np.zeros(len(left), np.intp) for _ in range(3))
        for node, _ in reversed(levels):
            inner = left[node] != node
            count_left[node] = np.where(inner, count[left[node]], 0)
            count[node] = np.where(inner, count_left[node] + count[right[node]], 1)
        for node, _ in levels:
            node = node[left[node] != node]
            first[left[node]] = first[node]
            first[right[node]] = first[node] + count_left[node]
        reached = np.concatenate([node for node, _ in levels])
        feature, threshold, value = (
            np.concatenate([getattr(one, name) for one in sums])[reached]
            for name in ("feature", "single_threshold", "value")
        )
        return cls(
            np.concatenate([tree for _, tree in levels]),
            feature.astype(np.intp),  # files have 16 bits
            threshold,
            value,
            left[reached] == reached,
            first[reached],
            count[reached],
            count_left[reached],
        )


def _words(n_leaves: int) -> tuple[int, int]:
    """The bits of a word, and the number of words that have a bit for each leaf."""
    bits = next(b for b in (8, 16, 32, _WORD) if n_leaves <= b or b == _WORD)
    return bits, -(-n_leaves // bits)


def table_bytes(sums: Sequence[BoostedTrees]) -> int:
    """The size of the tables of these sums, as if every tree were the largest."""
    n_nodes = max(int(np.diff(np.append(one.roots, len(one.left))).max()) for one in sums)
    bits, n_words = _words(n_nodes // 2 + 1)
    n_lines = 0
    for one in sums:
        inner = np.flatnonzero(~one.is_leaf)
        feature, threshold = one.feature[inner], one.threshold[inner]
        order = np.lexsort((threshold, feature))
        changes = (np.diff(feature[order]) != 0) | (np.diff(threshold[order]) != 0)
        n_lines += 1 + int(np.count_nonzero(changes)) + len(np.unique(feature))
    return n_lines * max(len(one.roots) for one in sums) * n_words * bits // 8


def _rule_out(
    block: np.ndarray,
    line: np.ndarray,
    nodes: _Nodes,
    chosen: np.ndarray,
    column: np.ndarray,
    n_words: int,
) -> None:
    """Set the bits of the leaves to the left of the chosen splits, in these lines and columns."""
    bits = min(8 * block.itemsize, _WORD)
    for w in range(n_words):
        start = np.clip(nodes.first[chosen] - w * _WORD, 0, bits)
        stop = np.clip(nodes.first[chosen] + nodes.n_left[chosen] - w * _WORD, 0, bits)
        mask = (_ones(stop) & ~_ones(start)).astype(block.dtype)
        np.bitwise_or.at(block.reshape(-1), line * block.shape[1] + column + w, mask)


def _ones(n: np.ndarray) -> np.ndarray:
    """Words with their lowest n of up to 64 bits set."""
    shifted = np.uint64(1) << np.minimum(n, _WORD - 1).astype(np.uint64)
    return np.where(n < _WORD, shifted - np.uint64(1), ~np.uint64(0))
