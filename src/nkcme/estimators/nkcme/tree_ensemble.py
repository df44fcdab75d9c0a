"""Ensembles of trees as a base of a location model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.tree_tables import TreeTables, table_bytes

#: Tables that are larger are not made.
_MOST_BYTES = 2**29


class TreeEnsemble:
    """Members with a sum of trees for each output.

    Parameters
    ----------
    models : list of lists of BoostedTrees
        One for each member and output.
    """

    def __init__(self, models: Sequence[Sequence[BoostedTrees]]):
        self.n_members = len(models)
        self._models: Sequence[Sequence[BoostedTrees]] = models
        self._reader: Callable[[], Sequence[Sequence[BoostedTrees]]] | None = None

    @classmethod
    def later(
        cls, n_members: int, read: Callable[[], Sequence[Sequence[BoostedTrees]]]
    ) -> TreeEnsemble:
        """An ensemble whose models are read when they are first needed."""
        ensemble = cls([])
        ensemble.n_members, ensemble._reader = n_members, read
        return ensemble

    def read(self) -> None:
        """Read the models, where that was left for later."""
        if self._reader is not None:
            self._models, self._reader = self._reader(), None

    @property
    def models(self) -> Sequence[Sequence[BoostedTrees]]:
        """The trees of each member and output."""
        self.read()
        return self._models

    @property
    def _sums(self) -> list[BoostedTrees]:
        return [one for of_member in self.models for one in of_member]

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> TreeEnsemble:
        """From the arrays ``MEMBER/OUTPUT/NAME`` of an untrusted file."""
        trees: dict[tuple[str, str], dict[str, np.ndarray]] = {}
        for name, value in arrays.items():
            member, _, rest = name.partition("/")
            output, _, key = rest.partition("/")
            trees.setdefault((member, output), {})[key] = value
        n_members = len(trees) // max(n_out, 1)
        expected = {(str(member), str(j)) for member in range(n_members) for j in range(n_out)}
        if not trees or set(trees) != expected:
            raise ModelFileError("the trees of the location model in the file are not complete")
        return cls(
            [
                [BoostedTrees.from_arrays(trees[str(member), str(j)], n_in) for j in range(n_out)]
                for member in range(n_members)
            ]
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays for a model file."""
        return {
            f"{member}/{output}/{name}": value
            for member, of_member in enumerate(self.models)
            for output, one in enumerate(of_member)
            for name, value in one.to_arrays().items()
        }

    def members(self, x: np.ndarray) -> np.ndarray:
        """The predictions of each member at encoded inputs (n, p), (n_members, n, d)."""
        x = np.asarray(x, np.float32)
        if self._tables is not None:
            total = self._tables.sums(x)
        else:
            total = np.stack([one.predict(x) for one in self._sums], axis=1)
        n_outputs = total.shape[1] // self.n_members
        return total.reshape(len(x), self.n_members, n_outputs).swapaxes(0, 1)

    @cached_property
    def _tables(self) -> TreeTables | None:
        """None where they would be too large."""
        return TreeTables.of(self._sums) if table_bytes(self._sums) <= _MOST_BYTES else None
