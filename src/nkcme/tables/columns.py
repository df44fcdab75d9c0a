"""Tables of any kind, read one column at a time.

A table is a pandas, polars or pyarrow frame, an array, or a list of rows. A `RawColumn` is one of
its columns as given; its `kind` is numeric, boolean, category or empty.
"""

from __future__ import annotations

import datetime
import math
import numbers
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nkcme.errors import TableError

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw

MAX_COLUMNS = 100_000

_MISSING_TYPES = ("NAType", "NaTType")  # of pandas; by name, as pandas is not imported here
_DATE_TYPES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NEEDED = "expected numbers, booleans or text"

#: A calendar date, alone or with a time behind it. Compact forms such as 20240131 are left out:
#: they may as well be codes.
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}.*)?")

Kind = Literal["numeric", "boolean", "category", "empty"]


@dataclass(frozen=True)
class RawColumn:
    """One column as given: an array of booleans, of numbers, or of Python objects.

    ``where`` names it in messages. ``declared`` is true for a column of a categorical type, in
    which even numbers are names of categories.
    """

    where: str
    array: np.ndarray
    declared: bool = False

    @classmethod
    def of_series(cls, where: str, series: nw.Series) -> RawColumn:
        import narwhals.stable.v1 as nw  # slow to import, and arrays do not need it

        declared = series.dtype in (nw.Categorical, nw.Enum)
        if declared or series.dtype == nw.String:
            # Not to_numpy: it gives a dictionary-encoded pyarrow null the first category, and
            # drops NUL characters at the end of polars text.
            values = np.fromiter(series.to_list(), object, len(series))
            return cls(where, values, declared)
        return cls.of_array(where, series.to_numpy())

    @classmethod
    def of_array(cls, where: str, array: np.ndarray) -> RawColumn:
        kind = array.dtype.kind
        if kind in "Mm":
            raise TableError(_dates_refused(where))
        if array.ndim != 1 or kind not in "biufOUT":
            raise TableError(f"{where} holds {array.dtype} values, {_NEEDED}; convert or drop it")
        return cls(where, array.astype(object) if kind in "UT" else array)

    @cached_property
    def missing(self) -> np.ndarray:
        if self.array.dtype.kind == "f":
            return np.isnan(self.array)
        if self.array.dtype.kind == "O":
            return np.fromiter(map(is_missing, self.array), bool, len(self.array))
        return np.zeros(len(self.array), dtype=bool)

    @cached_property
    def kind(self) -> Kind:
        """The kind of the present values; values of other types are refused."""
        if self.missing.all():
            return "empty"
        if self.array.dtype.kind != "O":
            return "boolean" if self.array.dtype.kind == "b" else "numeric"
        types = {type(value) for value in self.present}
        families = {_family(value_type) for value_type in types}
        if None in families and not self.declared:
            foreign = next(value_type for value_type in types if _family(value_type) is None)
            if issubclass(foreign, _DATE_TYPES):
                raise TableError(_dates_refused(self.where))
            raise TableError(
                f"{self.where} holds {foreign.__name__} values, {_NEEDED}; convert or drop it"
            )
        if families & {None, "category"}:
            return "category"
        return "boolean" if families == {"boolean"} else "numeric"

    def refuse_dates(self) -> None:
        """Refuse text in which every present value is an ISO 8601 date or date-time."""
        if self.declared or self.kind != "category":
            return
        if all(isinstance(value, str) and _is_iso_date(value) for value in self.present):
            raise TableError(_dates_refused(self.where))

    @property
    def present(self) -> np.ndarray:
        return self.array[~self.missing]

    def rows(self, keep: np.ndarray) -> RawColumn:
        return RawColumn(self.where, self.array[keep], self.declared)

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
        return [None if missing else _label(value) for value, missing in pairs]

    def first_text(self) -> tuple[int, Any]:
        """The row and the value of the text that kept a column from being numeric.

        That is the first text that cannot be read as a number, such as "n/k" in a column of
        numbers which are text because of it; else the first text.
        """
        texts = [
            (int(row), self.array[row])
            for row in np.flatnonzero(~self.missing)
            if _family(type(self.array[row])) not in ("numeric", "boolean")
        ]
        return next((pair for pair in texts if not reads_as_number(pair[1])), texts[0])


@dataclass(frozen=True)
class Table:
    """A table of at least one row and one column, read one column at a time."""

    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int
    column: Callable[[int], RawColumn]

    def __iter__(self) -> Iterator[RawColumn]:
        return map(self.column, range(self.n_columns))

    @classmethod
    def read(cls, data: Any, what: str) -> Table:
        """``what`` is the name of the argument, for messages; a table is returned as it is."""
        if isinstance(data, Table):
            return data
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
        read: Callable[..., RawColumn] = RawColumn.of_series if is_frame else RawColumn.of_array
        wheres = [f"column {name!r} of {what}" for name in names or range(n_columns)]
        return cls(names, n_rows, n_columns, lambda j: read(wheres[j], data[:, j]))


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
            f"{what} cannot be read as an array ({_one_line(error)}); pass rows of equal length"
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


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN of any type, or a missing value of pandas."""
    if isinstance(value, (float, np.floating, Decimal)):
        return bool(value != value)
    return value is None or type(value).__name__ in _MISSING_TYPES


def _family(value_type: type) -> Literal["numeric", "boolean", "category"] | None:
    if issubclass(value_type, str):
        return "category"
    if issubclass(value_type, (bool, np.bool_)):
        return "boolean"
    if issubclass(value_type, (numbers.Real, Decimal)) and value_type is not np.timedelta64:
        return "numeric"
    return None


def as_float(value: Any) -> float:
    """Any number as a float; infinite where it is out of range."""
    try:
        return float(value)
    except OverflowError:  # an integer beyond the range of float64
        return math.inf


def reads_as_number(text: Any) -> bool:
    """Whether text can be converted to a float."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _is_iso_date(text: str) -> bool:
    text = text.strip()
    if not _ISO_DATE.fullmatch(text):
        return False
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _label(value: Any) -> str:
    """The text of a category; 1.0 is "1", because missing values turn integers into floats."""
    if isinstance(value, (float, np.floating)) and value.is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    return str(value)


# ---------------------------------------------------------------------------------- messages


def _dates_refused(where: str) -> str:
    return (
        f"{where} holds dates or times, {_NEEDED}; convert it to numbers, such as days since a "
        "start date"
    )


def _one_line(value: object) -> str:
    return " ".join(str(value).split())


def shown(value: object) -> str:
    """A value in short, on one line."""
    return _one_line(reprlib.repr(value))


def listed(names: list[Any]) -> str:
    """The first few columns by name, and how many more there are."""
    first = ", ".join(map(repr, names[:5]))
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"column{'s' if len(names) > 1 else ''} {first}{more}"


def note_on_columns(found: Iterable[str], names: Iterable[str]) -> str | None:
    """A note on the columns of a table that the model was not fitted on; None if there are none.

    A table that lacks some of the model's columns is refused.
    """
    found, names = dict.fromkeys(found), dict.fromkeys(names)
    absent = [name for name in names if name not in found]
    if absent:
        raise TableError(f"the table lacks {listed(absent)}, which the model was fitted on")
    extra = [name for name in found if name not in names]
    return f"ignored {listed(extra)}, which the model was not fitted on" if extra else None
