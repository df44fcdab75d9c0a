"""Named arrays as safetensors bytes. The only module that imports safetensors."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.model_files import sealed_json
from nkcme.model_files.refusals import RESTORE, refusal

Arrays = Mapping[str, np.ndarray]
Contents = tuple[dict[str, Any], dict[str, np.ndarray]]
"""A config and its arrays."""

_DTYPES = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64"}
_DTYPES |= {"U32": "uint32", "I16": "int16", "U8": "uint8", "BOOL": "bool"}
_MAX_HEADER_BYTES = 100_000_000  # the limit of safetensors itself
_MAX_TENSORS = 10_000


def portable(arrays: Arrays) -> dict[str, np.ndarray]:
    """Make arrays little-endian and C-contiguous; refuse what the format does not hold."""
    if len(arrays) >= _MAX_TENSORS:  # one entry of the header is kept free for the metadata
        raise ValueError(f"{len(arrays)} arrays, where the limit is {_MAX_TENSORS - 1}")
    result = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if not isinstance(name, str) or name == "__metadata__":  # a key that safetensors reserves
            raise TypeError(f"an array cannot be named {name!r}")
        if array.dtype.name not in _DTYPES.values():
            allowed = ", ".join(_DTYPES.values())
            raise TypeError(f"array {name!r} has dtype {array.dtype}, not one of {allowed}")
        result[name] = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    return result


def pack(arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """The safetensors bytes of portable arrays."""
    # Imported here: the library must train and predict where safetensors is not installed.
    from safetensors.numpy import save

    return save(arrays, metadata)


def unpack(data: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Parse safetensors bytes into arrays, sorted by name, and metadata.

    The header is checked here first: that bounds the cost and refuses duplicates and other dtypes.
    safetensors itself checks that the tensors fill the file without overlap.
    """
    # Imported here: the library must train and predict where safetensors is not installed.
    from safetensors import SafetensorError
    from safetensors.numpy import load

    length, room = int.from_bytes(data[:8], "little"), min(len(data) - 8, _MAX_HEADER_BYTES)
    if length > room:
        raise refusal(path, f"a header of at most {room} bytes", f"{length}", RESTORE)
    header = sealed_json.parse(data[8 : 8 + length], path)
    if not isinstance(header, dict) or len(header) > _MAX_TENSORS:
        expected = f"a safetensors header of at most {_MAX_TENSORS} entries"
        raise refusal(path, expected, reprlib.repr(header), RESTORE)
    metadata = header.pop("__metadata__", None)
    for name, entry in header.items():
        dtype = entry.get("dtype") if isinstance(entry, dict) else entry
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            found = f"{reprlib.repr(dtype)} for {reprlib.repr(name)}"
            raise refusal(path, f"a dtype among {', '.join(_DTYPES)}", found, RESTORE)
    try:
        arrays = dict(sorted(load(data).items()))
    except (SafetensorError, ValueError) as error:
        raise refusal(path, "a safetensors file", str(error)[:300], RESTORE) from error
    for name, array in arrays.items():
        # A numpy boolean that is neither 0 nor 1 is undefined behaviour.
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            found = f"other bytes in {reprlib.repr(name)}"
            raise refusal(path, "booleans of 0 and 1", found, RESTORE)
    return arrays, metadata or {}


def digest(arrays: Arrays) -> dict[str, Any]:
    """Size and SHA-256 of names, dtypes, shapes and values."""
    sha256 = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        sha256.update(json.dumps([name, array.dtype.name, array.shape]).encode())
        sha256.update(array.reshape(-1).view(np.uint8).data)
    size = sum(array.nbytes for array in arrays.values())
    return {"bytes": size, "sha256": sha256.hexdigest()}
