"""Encoding Arrow tables fast: categories are looked up once per distinct value."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from nkcme.errors import UnknownCategoryWarning
from nkcme.tables.column_encoding import Column
from nkcme.tables.encoding import TableEncoder

if TYPE_CHECKING:
    import pyarrow


class ArrowEncoder:
    """Gives what `TableEncoder.transform` gives, for Arrow tables with the columns of training.

    Parameters
    ----------
    encoder : TableEncoder
        Of columns with names.
    """

    def __init__(self, encoder: TableEncoder):
        self.n_outputs = encoder.n_outputs
        standardize = encoder.standardize
        starts = np.cumsum([0, *(column.n_outputs for column in encoder.columns)]).tolist()
        places = [slice(a, b) for a, b in pairwise(starts)]
        pairs = list(zip(encoder.columns, places, strict=True))
        self._categories = [
            (str(column.name), TableEncoder((column,), standardize), place)
            for column, place in pairs
            if column.has_categories
        ]
        others: list[Column] = []
        outputs: list[int] = []
        for column, place in pairs:
            if not column.has_categories and column.n_outputs:
                others.append(column)
                outputs += range(place.start, place.stop)
        self._others = TableEncoder(tuple(others), standardize)
        self._other_names = [str(column.name) for column in others]
        self._other_outputs = np.array(outputs, np.intp)

    @property
    def names(self) -> list[str]:
        """The columns that are needed."""
        return self._other_names + [name for name, _, _ in self._categories]

    def transform(self, table: pyarrow.Table) -> np.ndarray:
        """The finite float32 matrix (rows, n_outputs) of a table."""
        outputs = np.zeros((table.num_rows, self.n_outputs), np.float32)
        if not table.num_rows:
            return outputs
        if self._other_names:
            outputs[:, self._other_outputs] = self._others.transform(
                table.select(self._other_names)
            )
        for name, encoder, place in self._categories:
            outputs[:, place] = _by_distinct_value(table, name, encoder)
        return outputs


def _by_distinct_value(table: pyarrow.Table, name: str, encoder: TableEncoder) -> np.ndarray:
    """The outputs (rows, k) of one column of categories."""
    import pyarrow

    column = table.column(name).combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # of no or one chunk, by the version of pyarrow
        column = pyarrow.concat_arrays(column.chunks)
    coded = column.dictionary_encode()
    codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
    missing = pyarrow.nulls(1, coded.dictionary.type)
    distinct = pyarrow.concat_arrays([coded.dictionary, missing])
    with warnings.catch_warnings():
        # Distinct values are no rows: most of them may be rare.
        warnings.simplefilter("ignore", UnknownCategoryWarning)
        return encoder.transform(pyarrow.table({name: distinct}))[codes]
