"""Checks of the arrays of an untrusted model file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nkcme.errors import ModelFileError


def need_array(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> None:
    """Raise ModelFileError unless the named array exists, is finite floats and has this shape."""
    if name not in arrays:
        raise ModelFileError(f"the model file lacks the array {name}")
    array = arrays[name]
    if array.shape != shape or array.dtype.kind != "f":
        raise ModelFileError(
            f"array {name} should be floats of shape {shape}; the file has {array.dtype} of shape "
            f"{array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise ModelFileError(f"array {name} holds values that are not finite")
