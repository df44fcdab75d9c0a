"""Rows as dicts or columns by name, read as a table; other tables are passed on as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.columns import RawColumn, Table, listed


def read_rows(X: Any) -> Any:
    """A table of dicts as a `Table`.

    Parameters
    ----------
    X : dict or list of dicts, or any table
        One row, columns by name, or rows. In rows a value of a known column that is absent is
        missing, as long as some row has it.
    """
    if isinstance(X, Mapping):
        if not X:
            raise TableError("X is an empty dict: expected a value or a column for each name")
        if not any(_is_column(value) for value in X.values()):
            return _table({name: [value] for name, value in X.items()})
        return _table(X)
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        if not all(isinstance(row, Mapping) for row in X):
            raise TableError("X is a list of dicts and of other things; pass a dict for each row")
        found = dict.fromkeys(name for row in X for name in row)
        return _table({name: [row.get(name) for row in X] for name in found})
    return X


def _is_column(value: Any) -> bool:
    """Whether a value of a dict is a list of values or an array; a series has the method."""
    return isinstance(value, list | tuple | np.ndarray) or hasattr(value, "to_numpy")


def _table(columns: Mapping[Any, Any]) -> Table:
    other = [name for name in columns if not isinstance(name, str)]
    if other:
        raise TableError(f"X has names that are not text: {listed(other)}; make them all text")
    arrays = {name: _array(name, values) for name, values in columns.items()}
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) != 1:
        raise TableError(
            f"the columns of X have different lengths, {min(lengths)} to {max(lengths)}; pass as "
            "many values for each"
        )
    if lengths == {0}:
        raise TableError("X is empty: a minimum of 1 row is required; pass at least one")
    items = list(arrays.items())
    return Table(
        tuple(arrays),
        lengths.pop(),
        len(items),
        lambda j: RawColumn.of_array(f"column {items[j][0]!r} of X", items[j][1]),
    )


def _array(name: str, values: Any) -> np.ndarray:
    """A column; numbers beside text or None keep their types."""
    if isinstance(values, np.ndarray):
        array = values
    elif hasattr(values, "to_numpy"):
        array = values.to_numpy()
    elif _is_column(values):
        kinds = {type(value) for value in values}
        if kinds <= {float} or kinds <= {bool}:
            array = np.array(values)
        else:
            array = np.fromiter(values, object, len(values))
    else:
        raise TableError(f"column {name!r} of X is one value where other columns are lists")
    if array.ndim != 1:
        raise TableError(f"column {name!r} of X has {array.ndim} dimensions; pass a list of values")
    return array
