"""Texts of objects with arrays: a prompt shows their shapes, not pages of numbers."""

from __future__ import annotations

from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)


def shapes_in_repr(cls: _Class) -> _Class:
    """Give a named tuple or dataclass a `repr` in which arrays and tables are their shapes."""
    names = getattr(cls, "_fields", None) or tuple(cls.__dataclass_fields__)  # type: ignore[attr-defined]

    def __repr__(self: Any) -> str:
        fields = (f"{name}={_described(getattr(self, name))}" for name in names)
        return f"{cls.__name__}({', '.join(fields)})"

    cls.__repr__ = __repr__  # type: ignore[method-assign, assignment]
    return cls


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"<{type(value).__name__} {' x '.join(map(str, shape))}>"
    if isinstance(value, tuple) and any(hasattr(one, "__array__") for one in _flat(value)):
        return f"<{len(value)} items>"
    return repr(value)


def _flat(value: tuple[Any, ...]) -> list[Any]:
    return [item for one in value for item in (one if isinstance(one, tuple) else [one])]
