"""Repeated K-fold cross-fitting: every training row gets an out-of-fold prediction per repeat.

An ensemble member trains on all folds of one repeat but one. Each row is therefore held out by
exactly one member per repeat. The predictions of those members, one per repeat, are *out-of-fold*:
they are made as for a new row. For rows that are really new, all members are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nkcme.estimators.nkcme.law_recipe import LawRecipe
from nkcme.estimators.training_data import Encoded
from nkcme.tables.row_groups import RowGroups, held_out_groups


class Folds(NamedTuple):
    """The fold of each row in each repeat. Member ``repeat * n_folds + fold`` holds that fold out.

    Attributes
    ----------
    fold : array (n_repeats, n_rows)
    n_folds : int
    """

    fold: np.ndarray
    n_folds: int

    @classmethod
    def of(cls, data: Encoded, n_folds: int, n_repeats: int) -> Folds:
        """The folds of a table, which keep its groups together."""
        if data.groups is None:
            return cls.assign(len(data.x), n_folds, n_repeats, data.seed)
        return cls.assign_groups(data.groups, n_folds, n_repeats, data.seed)

    @classmethod
    def assign(cls, n_rows: int, n_folds: int, n_repeats: int, seed: int) -> Folds:
        """Random folds of equal size, up to one row; fewer folds where rows are too few."""
        n_folds = max(min(n_folds, n_rows), 1)
        rng = np.random.default_rng(seed)
        in_order = np.arange(n_rows) % n_folds
        return cls(np.stack([rng.permutation(in_order) for _ in range(n_repeats)]), n_folds)

    @classmethod
    def assign_groups(cls, groups: RowGroups, n_folds: int, n_repeats: int, seed: int) -> Folds:
        """Folds of whole groups, of sizes as equal as these allow, or blocks of time."""
        _, place, count = np.unique(groups.codes, return_inverse=True, return_counts=True)
        n_folds = min(n_folds, len(count))
        rng = np.random.default_rng(seed)
        fold = np.empty((n_repeats, len(count)), np.intp)
        for repeat in range(n_repeats):
            if groups.by_time:
                # Blocks start elsewhere in each repeat; the last one goes on at the start.
                block = np.arange(len(count)) * n_folds / len(count) + repeat / n_repeats
                fold[repeat] = block.astype(np.intp) % n_folds
                continue
            # The largest groups first, in random order where equal, each to the smallest fold.
            size = np.zeros(n_folds)
            for group in np.lexsort((rng.permutation(len(count)), -count)):
                smallest = int(np.argmin(size))
                fold[repeat, group] = smallest
                size[smallest] += count[group]
        return cls(fold[:, place], n_folds)

    @property
    def n_repeats(self) -> int:
        return len(self.fold)

    @property
    def n_members(self) -> int:
        return self.n_repeats * self.n_folds

    def training_rows(self, member: int) -> np.ndarray:
        """The rows that a member trains on."""
        repeat, fold = divmod(member, self.n_folds)
        return np.flatnonzero(self.fold[repeat] != fold)

    def held_out_rows(self, member: int) -> np.ndarray:
        """The rows that a member does not train on."""
        repeat, fold = divmod(member, self.n_folds)
        return np.flatnonzero(self.fold[repeat] == fold)

    def of_rows(self, rows: np.ndarray) -> Folds:
        """The folds of some of the rows."""
        return self._replace(fold=self.fold[:, rows])

    def out_of_fold(self, predict: Callable[[int, np.ndarray], np.ndarray]) -> np.ndarray:
        """Out-of-fold predictions, (n_repeats, n_rows, ...).

        ``predict(member, rows)`` gives the predictions (len(rows), ...) of one member.
        """
        return np.stack([self._of_repeat(repeat, predict) for repeat in range(self.n_repeats)])

    def _of_repeat(
        self, repeat: int, predict: Callable[[int, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        members = range(repeat * self.n_folds, (repeat + 1) * self.n_folds)
        rows = [self.held_out_rows(member) for member in members]
        values = [predict(member, own) for member, own in zip(members, rows, strict=True)]
        return np.concatenate(values)[np.argsort(np.concatenate(rows))]


def hold_out(data: Encoded, recipe: LawRecipe) -> tuple[Encoded, Encoded | None]:
    """The rows to train on, and those held out from all training; None for small tables."""
    n = recipe.n_held_out(len(data.x), by_time=data.by_time)
    if not n:
        return data, None
    rng = np.random.default_rng([data.seed, n])
    if data.groups is not None:
        held = held_out_groups(data.groups, n, rng)
        n_groups = len(np.unique(data.groups.codes[held]))
        if not data.by_time and n_groups < recipe.least_held_out_groups:
            return data, None
        if held.sum() > 2 * n:  # groups are too large to spare one
            return data, None
        rest = data.rows(np.flatnonzero(~held))
        if data.by_time and recipe.folds_by_time == "random":
            rest = rest._replace(groups=None)
        return rest, data.rows(np.flatnonzero(held))
    order = rng.permutation(len(data.x))
    return data.rows(np.sort(order[n:])), data.rows(np.sort(order[:n]))
