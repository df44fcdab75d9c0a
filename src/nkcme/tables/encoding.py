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
from nkcme.tables.columns import MAX_COLUMNS, Table, listed
from nkcme.tables.config_checks import check, check_keys
from nkcme.tables.number_encoding import NumberEncoder
from nkcme.tables.sample_weights import checked_weight

#: The types of JSON's numbers and missing values.
_PLAIN_NUMBERS = {float, int, bool, type(None)}


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
    ) -> TableEncoder:
        """Learn the columns of a table; with "robust" numbers are scaled by their quantiles."""
        table = Table.read(X, "X")
        weight = checked_weight(sample_weight, table.n_rows)
        names = table.names or (None,) * table.n_columns
        robust = standardize == "robust"
        learned = tuple(
            Column.fit(name, raw, weight, robust=robust)
            for name, raw in zip(names, table, strict=True)
        )
        return cls(learned, bool(standardize))

    @staticmethod
    def check(X: Any) -> None:
        """Raise where `fit` would, in the same words; nothing is learned."""
        for raw in Table.read(X, "X"):
            raw.refuse_dates()
            if raw.kind in ("numeric", "boolean") and not raw.declared:
                raw.numbers()

    @property
    def n_outputs(self) -> int:
        return sum(column.n_outputs for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the training columns, or None where they had none."""
        names = tuple(column.name for column in self.columns if column.name is not None)
        return names or None

    def text_columns(self, names: Sequence[str]) -> list[str]:
        """The columns of a file that were categories in training, to be read as text.

        ``names`` are the columns of the file, which matter where training had no names: columns are
        then matched by position.
        """
        pairs = zip(self.feature_names or names, self.columns, strict=False)
        return [name for name, column in pairs if column.kind == "category"]

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
        numbers = np.empty((table.n_rows, len(self._numbers.positions)))
        start = n_numbers = 0
        for column, position in self._matched(table):
            of_column = outputs[:, start : start + column.n_outputs]
            start += column.n_outputs
            if column.kind == "category":
                unknown = column.encode_categories(table.column(position), of_column)
                if unknown is not None and unknown.is_surprising:
                    warnings.warn(str(unknown), UnknownCategoryWarning, stacklevel=2)
            elif column.kind != "empty":  # of which the model uses nothing
                numbers[:, n_numbers] = column.numbers(table.column(position))
                n_numbers += 1
        self._numbers.encode(numbers, outputs)
        return outputs

    def transform_records(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray | None:
        """What `transform` gives for rows of plain numbers and of known categories.

        Returns
        -------
        ndarray or None
            None where rows hold anything else, for which `transform` has a rule or a message.
        """
        names, plan = self.feature_names, self._category_places
        if names is None or any(len(row) != len(names) for row in rows):
            return None
        try:
            number_names = [names[j] for j in self._numbers.positions]
            values = [[row[name] for name in number_names] for row in rows]
            codes = [[place[row[name]] for name, place in plan] for row in rows]
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

    @property
    def has_categories(self) -> bool:
        """Whether some column is one of categories."""
        return bool(self._category_places)

    @cached_property
    def _numbers(self) -> NumberEncoder:
        return NumberEncoder(self.columns, self.standardize)

    @cached_property
    def _category_places(self) -> list[tuple[str, dict[str, int]]]:
        """The name of each column of categories, and the outputs of its categories."""
        starts = np.cumsum([0, *(column.n_outputs for column in self.columns)]).tolist()
        return [
            (str(column.name), {label: start + i for i, label in enumerate(column.categories)})
            for column, start in zip(self.columns, starts, strict=False)
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
            and not np.isinf(X).any()
        )

    def unknown_categories(self, X: Any) -> Iterator[UnknownCategories]:
        """For each column with categories that the model does not know, how many rows hold them.

        A table that `transform` would refuse is refused here, in the same words.
        """
        table = Table.read(X, "X")
        for column, position in self._matched(table):
            if column.kind == "category":
                outputs = np.zeros((table.n_rows, column.n_outputs), dtype=np.float32)
                unknown = column.encode_categories(table.column(position), outputs)
                if unknown is not None:
                    yield unknown
            elif column.kind != "empty":
                column.numbers(table.column(position))

    def _matched(self, table: Table) -> Iterator[tuple[Column, int]]:
        """Each training column, and its position in the table."""
        names = self.feature_names
        if names is None or table.names is None:
            if table.n_columns != len(self.columns):
                raise TableError(
                    f"X has {table.n_columns} columns but the model was fitted on "
                    f"{len(self.columns)}; pass the same columns in the same order"
                )
            return zip(self.columns, range(table.n_columns), strict=True)
        place = {name: position for position, name in enumerate(table.names)}
        absent = [name for name in names if name not in place]
        unknown = [name for name in table.names if name not in set(names)]
        if absent or unknown:
            faults = [f"lacks {listed(absent)}"] if absent else []
            faults += [f"has the unknown {listed(unknown)}"] if unknown else []
            raise TableError(
                f"X {' and '.join(faults)}; pass the {len(names)} columns the model was fitted on"
            )
        return zip(self.columns, (place[name] for name in names), strict=True)

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
        names = {column.name for column in encoder.columns}
        check(names == {None} or len(names - {None}) == len(columns), "column names repeat")
        return encoder
