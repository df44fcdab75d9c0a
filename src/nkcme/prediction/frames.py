"""Frames of any library: the columns that a model needs, and frames of the same kind as results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.messages import listed, note_on_columns
from nkcme.tables.plain_frame import PlainFrame


def column_names(X: Any) -> list[str] | None:
    """The names of the columns of a frame or of a dict of columns; None for other tables."""
    if isinstance(X, Mapping):
        return list(X)
    if isinstance(X, PlainFrame):
        return list(X.columns)
    frame = _opened(X)
    return None if frame is None else list(frame.columns)


def row_count(X: Any) -> int:
    """The rows of a frame, of a dict of columns or of an array."""
    return len(next(iter(X.values()), ())) if isinstance(X, Mapping) else len(X)


def features_of(X: Any, encoder: TableEncoder, target: str | None) -> Any:
    """The columns of a table on which a model was fitted; a table that lacks one is refused.

    A model that was fitted on an array takes columns by position, without the target.
    """
    found, names = column_names(X), encoder.feature_names
    if found is None:
        return X
    if names is not None:
        note_on_columns(found, names, encoder.unused_names)
    chosen = (
        [n for n in found if n != target] if names is None else [n for n in names if n in found]
    )
    return selected(X, chosen)


def selected(X: Any, names: Sequence[str]) -> Any:
    """A frame, or a dict of columns, with these columns."""
    if isinstance(X, PlainFrame):
        return X[list(names)]
    if isinstance(X, Mapping):
        return {name: X[name] for name in names}
    return _opened(X).select(list(names)).to_native()


def frame_like(X: Any, kept: Sequence[str], columns: Mapping[str, np.ndarray]) -> Any:
    """A frame of the kind of X, with columns kept of X and new ones; a dict where X is no frame.

    A pandas frame has the index of X.
    """
    absent = [name for name in kept if name not in (column_names(X) or ())]
    if absent:
        raise TableError(f"the table lacks {listed(absent)}, which must be kept")
    frame = None if isinstance(X, Mapping) else _opened(X)
    if frame is None:
        return {**(selected(X, kept) if kept else {}), **columns}
    import narwhals.stable.v1 as nw

    space = nw.get_native_namespace(frame)
    new = nw.from_dict({**{name: frame[name] for name in kept}, **columns}, native_namespace=space)
    native = new.to_native()
    return native.set_axis(X.index, axis=0) if nw.dependencies.is_pandas_dataframe(X) else native


def _opened(X: Any) -> Any:
    """X as a narwhals frame; None if it is no frame."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None
