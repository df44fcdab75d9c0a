"""The arrays of an untrusted model file, each of which must be used once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.model_files.array_checks import need_array

# What the names of arrays in files of gradient-trained estimators begin with.
HISTORY, SOLUTION = "history/", "solution/"


class FileArrays:
    """Arrays by name; `take` checks them, and `need_all_taken` that none is left over."""

    def __init__(self, arrays: Mapping[str, np.ndarray]):
        self._arrays = arrays
        self._taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array; that of no numbers where it is absent."""
        return self._arrays[name].shape if name in self._arrays else ()

    def take(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """The array of this name, which must be finite numbers of this shape; single precision."""
        need_array(self._arrays, name, shape)
        self._taken.add(name)
        return np.asarray(self._arrays[name], np.float32)

    def need_all_taken(self) -> None:
        """Raise ModelFileError if some array was not taken."""
        if len(self._taken) != len(self._arrays):
            raise ModelFileError("the model file holds arrays that this model does not have")


class Contents(NamedTuple):
    """The arrays of a gradient-trained model, and what was computed once training was over."""

    model: FileArrays
    solution: dict[str, np.ndarray]


def split_solution(arrays: Mapping[str, np.ndarray]) -> Contents:
    """The two kinds of arrays of a file; the history of training is left out."""
    solution = {
        name.removeprefix(SOLUTION): array
        for name, array in arrays.items()
        if name.startswith(SOLUTION)
    }
    rest = {k: v for k, v in arrays.items() if not k.startswith((HISTORY, SOLUTION))}
    return Contents(FileArrays(rest), solution)
