"""Tables of any kind, read one column at a time.

A table is a pandas, polars or pyarrow frame, an array, or a list of rows. A `RawColumn` is one of
its columns as given; `nkcme.tables.column_reading` decides how it is read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.decimal_marks import DecimalEvidence
from nkcme.tables.messages import listed, one_line
from nkcme.tables.plain_frame import PlainFrame
from nkcme.tables.values import as_float, family, is_missing, label_of

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw

MAX_COLUMNS = 100_000

_NEEDED = "expected numbers, booleans, text, dates or times"

Kind = Literal["numeric", "boolean", "category", "date", "time", "empty", "text", "unused"]
"""What a column is. The values of a `RawColumn` have the first six kinds."""

#: The rows in which decimal marks are looked for.
_EXAMINED_ROWS = 10_000

#: Where a pandas frame keeps the decimal mark of the text file that it was read from.
DECIMAL_OF_FILE = "nkcme decimal mark"


@dataclass(frozen=True)
class RawColumn:
    """One column as given: an array of booleans, of numbers, of dates, or of Python objects.

    ``where`` names it in messages. ``declared`` is true for a column of a categorical type, in
    which even numbers are names of categories. ``decimal`` is the decimal mark of the text file
    that it is from, where that is known.
    """

    where: str
    array: np.ndarray
    declared: bool = False
    decimal: str | None = None

    @classmethod
    def of_series(cls, where: str, series: nw.Series, decimal: str | None = None) -> RawColumn:
        import narwhals.stable.v1 as nw  # slow to import, and arrays do not need it

        declared = series.dtype in (nw.Categorical, nw.Enum)
        if declared or series.dtype == nw.String:
            # Not to_numpy: it gives a dictionary-encoded pyarrow null the first category, and
            # drops NUL characters at the end of polars text.
            values = np.fromiter(series.to_list(), object, len(series))
            return cls(where, values, declared, decimal)
        # Dates with a time zone come in UTC.
        return cls.of_array(where, series.to_numpy(), decimal)

    @classmethod
    def of_array(cls, where: str, array: np.ndarray, decimal: str | None = None) -> RawColumn:
        kind = array.dtype.kind
        if array.ndim != 1 or kind not in "biufOUTMm":
            raise TableError(f"{where} holds {array.dtype} values, {_NEEDED}; convert or drop it")
        if kind == "m":  # durations are numbers of seconds
            array = np.where(np.isnat(array), math.nan, array / np.timedelta64(1, "s"))
        return cls(where, array.astype(object) if kind in "UT" else array, decimal=decimal)

    @cached_property
    def missing(self) -> np.ndarray:
        if self.array.dtype.kind == "f":
            return np.isnan(self.array)
        if self.array.dtype.kind == "M":
            return np.isnat(self.array)
        if self.array.dtype.kind == "O":
            return np.fromiter(map(is_missing, self.array), bool, len(self.array))
        return np.zeros(len(self.array), dtype=bool)

    @cached_property
    def kind(self) -> Kind:
        """The kind of the present values; values of other types are refused."""
        if self.missing.all():
            return "empty"
        if self.array.dtype.kind != "O":
            of_type: dict[str, Kind] = {"b": "boolean", "M": "date"}
            return of_type.get(self.array.dtype.kind, "numeric")
        types = {type(value) for value in self.present}
        families = {family(value_type) for value_type in types}
        if None in families and not self.declared:
            foreign = next(value_type for value_type in types if family(value_type) is None)
            raise TableError(
                f"{self.where} holds {foreign.__name__} values, {_NEEDED}; convert or drop it"
            )
        if families == {"boolean", "numeric"}:
            return "numeric"
        only: Kind | None = families.pop() if len(families) == 1 else None
        return only or "category"

    @property
    def present(self) -> np.ndarray:
        return self.array[~self.missing]

    def rows(self, keep: np.ndarray) -> RawColumn:
        return RawColumn(self.where, self.array[keep], self.declared, self.decimal)

    def numbers(self) -> np.ndarray:
        """A float64 copy, NaN where missing; infinities are refused. Not for text."""
        if self.array.dtype.kind == "O":
            pairs = zip(self.array, self.missing, strict=True)
            floats = (math.nan if missing else as_float(value) for value, missing in pairs)
            values = np.fromiter(floats, np.float64, len(self.array))
        else:
            with np.errstate(over="ignore"):
                values = self.array.astype(np.float64)
        infinite = np.isinf(values)
        if infinite.any():
            raise TableError(
                f"{self.where} has {infinite.sum()} infinite values, the first in row "
                f"{infinite.argmax()} (counting from 0): expected finite numbers; replace or drop "
                "them"
            )
        return values

    def labels(self) -> list[str | None]:
        """The text of each value, None where missing; values of foreign types are refused."""
        if self.kind == "empty":
            return [None] * len(self.array)
        pairs = zip(self.array, self.missing, strict=True)
        return [None if missing else label_of(value) for value, missing in pairs]


@dataclass(frozen=True)
class Table:
    """A table of at least one row and one column, read one column at a time."""

    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int
    column: Callable[[int], RawColumn]

    def __iter__(self) -> Iterator[RawColumn]:
        return map(self.column, range(self.n_columns))

    def with_decimal_mark(self) -> Table:
        """The table with the decimal mark that its texts show, unless that of its file is known."""
        columns = list(self)
        if any(raw.decimal is not None for raw in columns):
            return self
        mark = self.decimal_mark()
        return replace(self, column=lambda j: replace(columns[j], decimal=mark))

    def decimal_mark(self) -> str | None:
        """The decimal mark that the texts of all columns show; None if they show none, or both."""
        evidence = DecimalEvidence()
        for raw in self:
            if raw.array.dtype.kind == "O" and not raw.declared:
                some = raw.array[:_EXAMINED_ROWS]
                evidence.add({value for value in some if isinstance(value, str)})
        return evidence.decimal()

    @classmethod
    def read(cls, data: Any, what: str) -> Table:
        """``what`` is the name of the argument, for messages; a table is returned as it is."""
        if isinstance(data, Table):
            return data
        if isinstance(data, PlainFrame):
            return cls._of_plain(data, what)
        data = _opened(data, what)
        is_frame = not isinstance(data, np.ndarray)
        if len(data.shape) != 2:
            raise TableError(
                f"{what} must be a 2-D table (a DataFrame, an array or a list of rows), got "
                f"{len(data.shape)} dimensions. Reshape your data: .reshape(-1, 1) makes one "
                "column, .reshape(1, -1) one row"
            )
        n_rows, n_columns = data.shape
        if not n_rows or not n_columns:
            raise TableError(
                f"{what} is empty: {n_rows} sample(s) and {n_columns} feature(s) (shape="
                f"({n_rows}, {n_columns})) while a minimum of 1 is required; pass at least one of "
                "each"
            )
        if n_columns > MAX_COLUMNS:
            raise TableError(
                f"{what} has {n_columns} columns, at most {MAX_COLUMNS} are handled; drop some"
            )
        names = _text_names(data, what) if is_frame else None
        decimal = _decimal_of_file(data) if is_frame else None
        read: Callable[..., RawColumn] = RawColumn.of_series if is_frame else RawColumn.of_array
        wheres = [f"column {name!r} of {what}" for name in names or range(n_columns)]
        return cls(names, n_rows, n_columns, lambda j: read(wheres[j], data[:, j], decimal))

    @classmethod
    def _of_plain(cls, frame: PlainFrame, what: str) -> Table:
        columns = list(frame.columns.items())

        def column(j: int) -> RawColumn:
            name, array = columns[j]
            return RawColumn.of_array(f"column {name!r} of {what}", array, frame.decimal)

        return cls(tuple(frame.columns), len(frame), len(columns), column)


def read_columns(data: Any, what: str) -> RawColumn | Table:
    """One column where ``data`` has one dimension, else a table; ``what`` is its name."""
    data = _opened(data, what)
    if len(data.shape) != 1:
        return Table.read(data, what)
    is_array = isinstance(data, np.ndarray)
    return RawColumn.of_array(what, data) if is_array else RawColumn.of_series(what, data)


def _opened(data: Any, what: str) -> Any:
    """``data`` as a narwhals frame or series where it is one, else as an array."""
    if hasattr(data, "toarray") and hasattr(data, "nnz"):  # SciPy's, which is not imported here
        raise TableError(
            f"{what} is a sparse matrix, expected a dense table; pass {what}.toarray() instead"
        )
    if isinstance(data, np.ma.MaskedArray):
        raise TableError(f"{what} is a masked array; pass {what}.filled(np.nan) instead")
    if not isinstance(data, np.ndarray | list | tuple):
        frame = _opened_frame(data, what)
        if frame is not None:
            return frame
    try:
        array = np.asarray(data)
        if array.dtype.kind in "US" and not isinstance(data, np.ndarray):
            array = np.array(data, dtype=object)  # numbers in a list stay numbers beside text
    except (TypeError, ValueError) as error:
        raise TableError(
            f"{what} cannot be read as an array ({one_line(error)}); pass rows of equal length"
        ) from error
    if array.dtype.kind == "c":
        raise TableError(  # scikit-learn expects these words
            f"{what} holds complex numbers, {_NEEDED}. Complex data not supported; pass its real "
            "and imaginary parts as columns"
        )
    return array


def _opened_frame(data: Any, what: str) -> Any:
    """``data`` as a narwhals frame or series; None if it is neither."""
    import narwhals.stable.v1 as nw

    try:
        opened = nw.from_native(data, pass_through=True, allow_series=True)
    except ValueError as error:
        names: list[Any] = getattr(data, "column_names", None) or list(data.columns)
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if not repeated:
            raise
        raise TableError(
            f"{what} repeats the {listed(repeated)}; give each column its own name"
        ) from error
    if isinstance(opened, nw.LazyFrame):
        raise TableError(f"{what} is a lazy frame; pass {what}.collect() instead")
    return opened if isinstance(opened, (nw.DataFrame, nw.Series)) else None


def _text_names(frame: nw.DataFrame, what: str) -> tuple[str, ...] | None:
    """Column names if they are text; None if they are plain numbers, as scikit-learn has it."""
    are_text = {isinstance(name, str) for name in frame.columns}
    if are_text == {True, False}:
        raise TableError(
            f"{what} has column names of text and of other types; make them all text, with "
            f"{what}.columns = {what}.columns.astype(str)"
        )
    return tuple(frame.columns) if are_text == {True} else None


def _decimal_of_file(frame: nw.DataFrame) -> str | None:
    attributes = getattr(frame.to_native(), "attrs", None)
    return attributes.get(DECIMAL_OF_FILE) if isinstance(attributes, dict) else None
