"""From a table of any kind to a matrix of standardised floats.

`nkcme.tables.columns` reads the table; `nkcme.tables.column_encoding` has what each column becomes.

Rows of weight zero count as absent and whole weights as repetition, to the last bit. The order of
rows makes no difference. Outputs are always finite.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkcme.errors import TableError, UnknownCategoryWarning
from nkcme.tables.column_encoding import Column, UnknownCategories
from nkcme.tables.columns import MAX_COLUMNS, Table, listed
from nkcme.tables.config_checks import check, check_keys
from nkcme.tables.sample_weights import checked_weight


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
        table = Table.read(X, "X")
        outputs = np.zeros((table.n_rows, self.n_outputs), dtype=np.float32)
        start = 0
        for column, position in self._matched(table):
            of_column = outputs[:, start : start + column.n_outputs]
            start += column.n_outputs
            if column.kind == "empty":  # the model does not use it
                continue
            unknown = column.encode(table.column(position), of_column, self.standardize)
            if unknown is not None and unknown.is_surprising:
                warnings.warn(str(unknown), UnknownCategoryWarning, stacklevel=2)
        return outputs

    def unknown_categories(self, X: Any) -> Iterator[UnknownCategories]:
        """For each column with categories that the model does not know, how many rows hold them."""
        table = Table.read(X, "X")
        for column, position in self._matched(table):
            if column.kind == "category":
                outputs = np.zeros((table.n_rows, column.n_outputs), dtype=np.float32)
                unknown = column.encode(table.column(position), outputs, self.standardize)
                if unknown is not None:
                    yield unknown

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
