"""Trees that the first of several processes grows, and that all of them use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.estimators.nkcme.location_regressors import RegressorFits
from nkcme.estimators.nkcme.tree_ensemble import TreeEnsemble
from nkcme.estimators.training_data import Encoded
from nkcme.model_files.tensors import pack, portable, unpack
from nkcme.training.processes import gathered

_PREDICTED = "predicted"


class SharedFits:
    """`RegressorFits` of one data set, of which the other processes get the results.

    All processes call its methods in the same order.

    Parameters
    ----------
    fits : RegressorFits or None
        None in all processes but the first.
    data : Encoded
    """

    def __init__(self, fits: RegressorFits | None, data: Encoded):
        self._fits, self._sizes = fits, (data.x.shape[1], data.y.shape[1])

    def predicted_after(self, n_trees: int) -> list[np.ndarray]:
        """As that of `RegressorFits`."""
        found = [] if self._fits is None else self._fits.predicted_after(n_trees)
        return list(_shared({str(i): one for i, one in enumerate(found)}).values())

    def grow(self, numbers: Sequence[int], n_trees: int) -> None:
        """As that of `RegressorFits`."""
        if self._fits is not None:
            self._fits.grow(numbers, n_trees)

    def end(self, numbers: Sequence[int], n_trees: int) -> None:
        """As that of `RegressorFits`."""
        if self._fits is not None:
            self._fits.end(numbers, n_trees)

    def collect(self) -> list[list[tuple[Any, np.ndarray]]]:
        """As that of `RegressorFits`, for trees of ours."""
        arrays: dict[str, np.ndarray] = {}
        if self._fits is not None:
            for i, ((trees, predicted),) in enumerate(self._fits.collect()):
                arrays[f"{i}/{_PREDICTED}"] = predicted
                arrays |= {f"{i}/trees/{name}": one for name, one in trees.to_arrays().items()}
        shared = _shared(arrays)
        numbers = sorted({int(name.partition("/")[0]) for name in shared})
        return [[(self._trees(shared, i), shared[f"{i}/{_PREDICTED}"])] for i in numbers]

    def _trees(self, arrays: dict[str, np.ndarray], number: int) -> TreeEnsemble:
        prefix = f"{number}/trees/"
        own = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        return TreeEnsemble.from_arrays(own, *self._sizes)

    def pause(self) -> None:
        """Start no more fits."""
        if self._fits is not None:
            self._fits.pause()

    def abandon(self) -> None:
        """Start no more fits, and wait for those that are running."""
        if self._fits is not None:
            self._fits.abandon()


def _shared(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of the first process."""
    first = gathered(pack(portable(arrays)))[0]
    return unpack(first, Path("the first process"))[0]
