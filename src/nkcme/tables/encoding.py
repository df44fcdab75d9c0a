"""From a table of any kind to a matrix of standardised floats.

`nkcme.tables.columns` reads the table; `nkcme.tables.column_encoding` has what each column becomes.

Rows of weight zero count as absent and whole weights as repetition, to the last bit. The order of
rows makes no difference. Outputs are always finite.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nkcme.errors import TableError, UnknownCategoryWarning
from nkcme.tables.column_encoding import Column, UnknownCategories
from nkcme.tables.column_fitting import fit_column
from nkcme.tables.columns import MAX_COLUMNS, Table
from nkcme.tables.config_checks import check, check_keys
from nkcme.tables.messages import listed
from nkcme.tables.number_encoding import NumberEncoder
from nkcme.tables.sample_weights import checked_weight

#: The types of JSON's numbers and missing values.
_PLAIN_NUMBERS = {float, int, bool, type(None)}


#: The types of columns that a user chose, by name or by position.
ColumnTypes = Mapping[Any, str]


def chosen_types(types: ColumnTypes | None, table: Table) -> dict[int, str]:
    """The chosen type of each column that has one, by its position in the table."""
    names: Sequence[str | int] = table.names or range(table.n_columns)
    place = {name: position for position, name in enumerate(names)}
    unknown = [name for name in types or {} if name not in place]
    if unknown:
        raise TableError(
            f"a type, or to drop it, was chosen for {listed(unknown)}, which is no feature of the "
            f"table; it has {listed(list(names))}"
        )
    return {place[name]: wanted for name, wanted in (types or {}).items()}


@dataclass(frozen=True)
class TableEncoder:
    """Encodes tables as a matrix of standardised inputs, with what was learned of each column.

    With ``standardize`` off, numbers and booleans keep their values (clipped to the range of
    float32) and missing ones are still replaced by the mean.
    """

    columns: tuple[Column, ...]
    standardize: bool = True

    @classmethod
    def fit(
        cls,
        X: Any,
        *,
        standardize: bool | str = True,
        sample_weight: np.ndarray | None = None,
        types: ColumnTypes | None = None,
    ) -> TableEncoder:
        """Learn the columns of a table.

        Parameters
        ----------
        X : table
        standardize : bool or "robust"
            With "robust" numbers are scaled by their quantiles.
        sample_weight : array (n,), optional
        types : mapping of str or int to str, optional
            The types of some columns, by name or by position, instead of those that are found.
        """
        table = Table.read(X, "X").with_decimal_mark()
        weight = checked_weight(sample_weight, table.n_rows)
        names = table.names or (None,) * table.n_columns
        robust = standardize == "robust"
        chosen = chosen_types(types, table)
        learned = tuple(
            fit_column(name, raw, weight, robust=robust, wanted=chosen.get(j))
            for j, (name, raw) in enumerate(zip(names, table, strict=True))
        )
        if all(column.kind == "unused" for column in learned):
            raise TableError(
                "no column of X is used: all were dropped, or hold a different text in every row; "
                "keep one, with columns={'name': 'category'} in Python or --types name=category"
            )
        return cls(learned, bool(standardize))

    @cached_property
    def n_outputs(self) -> int:
        return sum(column.n_outputs for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the training columns, or None where they had none."""
        names = tuple(column.name for column in self.columns if column.name is not None)
        return names or None

    def text_columns(self, names: Sequence[str]) -> list[str]:
        """The columns of a file that are read as text: those that were text in training.

        ``names`` are the columns of the file, which matter where training had no names: columns are
        then matched by position.
        """
        pairs = zip(self.feature_names or names, self.columns, strict=False)
        return [name for name, column in pairs if column.is_from_text]

    @property
    def decimal(self) -> str | None:
        """The decimal mark of numbers that were text in training, if all have the same."""
        marks = {c.notation for c in self.columns if c.kind == "numeric" and c.notation}
        return marks.pop() if len(marks) == 1 else None

    @property
    def unused_names(self) -> tuple[str, ...]:
        """The names of the columns that the model does not use; new tables need not have them."""
        return tuple(str(column.name) for column in self.columns if column.kind == "unused")

    def transform(self, X: Any) -> np.ndarray:
        """X as a finite float32 matrix of shape (rows, n_outputs).

        Columns are matched by name where training and X both have names, else by position. A
        column in which more than half of the rows hold unknown categories gives an
        `UnknownCategoryWarning`.
        """
        if self._takes_matrix(X):
            outputs = np.zeros((len(X), self.n_outputs), dtype=np.float32)
            numbers = X[:, self._numbers.positions].astype(np.float64, copy=False)
            self._numbers.encode(numbers, outputs)
            return outputs
        table = Table.read(X, "X")
        outputs = np.zeros((table.n_rows, self.n_outputs), dtype=np.float32)
        numbers = np.empty((table.n_rows, self._numbers.n_numbers))
        start = first = 0
        for column, position in self._matched(table):
            of_column = outputs[:, start : start + column.n_outputs]
            start += column.n_outputs
            if column.has_categories:
                unknown = column.encode_categories(table.column(position), of_column)
                if unknown is not None and unknown.is_surprising:
                    warnings.warn(str(unknown), UnknownCategoryWarning, stacklevel=2)
            elif n_own := len(column.number_columns):
                numbers[:, first : first + n_own] = column.numbers(table.column(position))
                first += n_own
        self._numbers.encode(numbers, outputs)
        return outputs

    def transform_records(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """What `transform` gives for rows of plain numbers and of known categories.

        Returns
        -------
        ndarray or None
            None where rows hold anything else, for which `transform` has a rule or a message.
        """
        names = self.feature_names
        if names is None:
            return None
        return self._transform_plain(rows, names)

    def transform_lists(self, rows: Sequence[Sequence[Any]]) -> np.ndarray | None:
        """The same for rows with the values of all columns in the order of training."""
        return self._transform_plain(rows, range(len(self.columns)))

    def _transform_plain(self, rows: Sequence[Any], keys: Sequence[Any]) -> np.ndarray | None:
        """What `transform` gives for rows that hold plain values by these keys of the columns."""
        if not self._is_plain or any(len(row) != len(keys) for row in rows):
            return None
        number_keys = [keys[j] for j in self._numbers.positions]
        plan = [(keys[j], place) for j, place in self._category_places]
        try:
            values = [[row[key] for key in number_keys] for row in rows]
            codes = [[place[row[key]] for key, place in plan] for row in rows]
            if not {type(value) for row in values for value in row} <= _PLAIN_NUMBERS:
                return None
            numbers = np.array(values, np.float64)
        except (KeyError, TypeError, OverflowError):
            return None
        if np.isinf(numbers).any():
            return None
        outputs = np.zeros((len(rows), self.n_outputs), dtype=np.float32)
        self._numbers.encode(numbers, outputs)
        if plan:
            outputs[np.arange(len(rows))[:, None], codes] = 1.0
        return outputs

    @cached_property
    def has_categories(self) -> bool:
        """Whether some column is one of categories."""
        return any(column.has_categories for column in self.columns)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether each column is one number, categories, or nothing."""
        return all(column.kind not in ("date", "time", "text") for column in self.columns)

    @cached_property
    def _numbers(self) -> NumberEncoder:
        return NumberEncoder(self.columns, self.standardize)

    @cached_property
    def _category_places(self) -> list[tuple[int, dict[str, int]]]:
        """The position of each column of categories, and the outputs of its categories."""
        starts = np.cumsum([0, *(column.n_outputs for column in self.columns)]).tolist()
        return [
            (j, {label: start + i for i, label in enumerate(column.categories)})
            for j, (column, start) in enumerate(zip(self.columns, starts, strict=False))
            if column.kind == "category"
        ]

    def _takes_matrix(self, X: Any) -> bool:
        """Whether X is an array of numbers, and all columns are."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype.kind in "fiu"
            and X.shape[1] == len(self.columns)
            and len(X) > 0
            and not self.has_categories
            and self._is_plain
            and not np.count_nonzero(np.isinf(X))
        )

    def unknown_categories(self, X: Any) -> Iterator[UnknownCategories]:
        """For each column with categories that the model does not know, how many rows hold them.

        A table that `transform` would refuse is refused here, in the same words.
        """
        table = Table.read(X, "X")
        for column, position in self._matched(table):
            if column.has_categories:
                outputs = np.zeros((table.n_rows, column.n_outputs), dtype=np.float32)
                unknown = column.encode_categories(table.column(position), outputs)
                if unknown is not None:
                    yield unknown
            elif column.number_columns:
                column.numbers(table.column(position))

    def _matched(self, table: Table) -> Iterator[tuple[Column, int]]:
        """Each training column, and its position in the table; unused ones may be absent."""
        names = self.feature_names
        if names is None or table.names is None:
            if table.n_columns != len(self.columns):
                raise TableError(
                    f"X has {table.n_columns} columns but the model was fitted on "
                    f"{len(self.columns)}; pass the same columns in the same order"
                )
            return zip(self.columns, range(table.n_columns), strict=True)
        place = {name: position for position, name in enumerate(table.names)}
        absent = [n for n in names if n not in place and n not in self.unused_names]
        unknown = [name for name in table.names if name not in set(names)]
        if absent or unknown:
            faults = [f"lacks {listed(absent)}"] if absent else []
            faults += [f"has the unknown {listed(unknown)}"] if unknown else []
            raise TableError(
                f"X {' and '.join(faults)}; pass the {len(names)} columns the model was fitted on"
            )
        return zip(self.columns, (place.get(name, -1) for name in names), strict=True)

    def in_order_of(self, X: Any) -> list[Column]:
        """The training columns in the order of the columns of a table."""
        pairs = [pair for pair in self._matched(Table.read(X, "X")) if pair[1] >= 0]
        return [column for column, _ in sorted(pairs, key=lambda pair: pair[1])]

    def to_config(self) -> dict[str, Any]:
        """A description that JSON can hold, exact to the last bit."""
        columns = [column.to_config() for column in self.columns]
        return {"standardize": self.standardize, "columns": columns}

    @classmethod
    def from_config(cls, config: Any) -> TableEncoder:
        """The encoder of a description, which is checked."""
        check_keys(config, {"standardize", "columns"}, "the table encoder", frozenset())
        check(isinstance(config["standardize"], bool), "'standardize' is not true or false")
        columns = config["columns"]
        check(
            isinstance(columns, list) and 1 <= len(columns) <= MAX_COLUMNS,
            f"'columns' is not a list of 1 to {MAX_COLUMNS} columns",
        )
        encoder = cls(
            tuple(Column.from_config(column, f"column {j}") for j, column in enumerate(columns)),
            config["standardize"],
        )
        check(encoder.n_outputs > 0, "no column is used")
        names = {column.name for column in encoder.columns}
        check(names == {None} or len(names - {None}) == len(columns), "column names repeat")
        return encoder
