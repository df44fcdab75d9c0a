"""A fingerprint of a training run: parameters, data and version, compared by value.

A checkpoint is resumed only by the run that wrote it. Two runs are the same if the values of their
parameters are. Text made by `repr` would not do: scikit-learn shortens it, and that of a plain
object holds a memory address, which changes from process to process.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from nkcme._version import __version__
from nkcme.errors import NkcmeError


def fingerprint(parameters: Mapping[str, Any], digests: Sequence[str]) -> str:
    """The hash of a run with these parameters on data with these digests.

    Raises
    ------
    NkcmeError
        If a parameter holds something that has no value to compare by, such as an open file.
    """
    by_value = {name: as_value(name, value) for name, value in parameters.items()}
    text = json.dumps(by_value, sort_keys=True)
    return hashlib.sha256("\n".join([__version__, text, *digests]).encode()).hexdigest()


def as_value(name: str, value: Any) -> Any:
    """JSON that is equal for equal values of the parameter ``name``, in any process."""
    return _as_value(name, value, ())


def _as_value(name: str, value: Any, inside: tuple[int, ...]) -> Any:
    if id(value) in inside:
        raise _no_value(name, value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    inner = (*inside, id(value))
    if isinstance(value, np.generic | np.ndarray):
        return _array(name, np.asarray(value), inner)
    if isinstance(value, bytes | PurePath):
        return str(value)
    if isinstance(value, Mapping):
        # Keys need not be text, and text of two keys may agree: pairs, sorted by their JSON.
        pairs = [[_as_value(name, k, inner), _as_value(name, v, inner)] for k, v in value.items()]
        return {"mapping": sorted(pairs, key=json.dumps)}
    if isinstance(value, list | tuple):
        return [_as_value(name, one, inner) for one in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((_as_value(name, one, inner) for one in value), key=json.dumps)}
    if inspect.isroutine(value) or inspect.isclass(value):
        return {"defined": _importable(name, value)}
    state = _as_value(name, _state(name, value), inner)
    return {"object": _importable(name, type(value)), "state": state}


def _state(name: str, value: Any) -> dict[str, Any]:
    """What an object consists of: its parameters, fields or attributes."""
    if hasattr(value, "get_params") and not inspect.isclass(value):
        return value.get_params(deep=False)
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, np.random.RandomState):
        return dict(enumerate(value.get_state(legacy=True)))  # type: ignore[arg-type]
    if isinstance(value, np.random.Generator):
        return dict(value.bit_generator.state)
    if hasattr(value, "__dict__"):
        return vars(value)
    raise _no_value(name, value)


def _array(name: str, array: np.ndarray, inside: tuple[int, ...]) -> Any:
    if array.dtype.kind == "O":
        return _as_value(name, array.tolist(), inside)
    data = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return {"array": data, "dtype": array.dtype.str, "shape": list(array.shape)}


def _importable(name: str, value: Any) -> str:
    """Where a class or function is defined. A lambda or a closure is not identified by that."""
    qualified = getattr(value, "__qualname__", "<lambda>")
    if "<lambda>" in qualified or getattr(value, "__closure__", None):
        raise _no_value(name, value)
    return f"{value.__module__}.{qualified}"


def _no_value(name: str, value: Any) -> NkcmeError:
    return NkcmeError(
        f"a run with checkpoint is recognised by the values of its parameters, and {name} holds a "
        f"{type(value).__name__} that has none to compare by; fit without checkpoint, or use a "
        "scikit-learn estimator or a plain class or function instead"
    )
