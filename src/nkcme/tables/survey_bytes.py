"""Surveys as bytes, which processes exchange: Arrow tables, and JSON for what they are about."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import numpy as np

from nkcme.tables.survey import Survey

if TYPE_CHECKING:
    import pyarrow

_LENGTHS = struct.Struct("<QQ")


def survey_to_bytes(survey: Survey) -> bytes:
    """The bytes of a survey."""
    from pyarrow import concat_tables

    found = list(survey.witnesses.items())
    about = {
        "rows": survey.rows.tolist(),
        "witnesses": [[list(key), rank, number] for key, (rank, number, _) in found],
        "missing": survey.missing,
    }
    tables = [survey.sample.slice(0, 0), *(table for _, (_, _, table) in found)]
    parts = [
        json.dumps(about).encode(),
        _table_to_bytes(survey.sample),
        _table_to_bytes(concat_tables(tables, promote_options="permissive")),
    ]
    return _LENGTHS.pack(len(parts[0]), len(parts[1])) + b"".join(parts)


def survey_from_bytes(data: bytes) -> Survey:
    """The reverse of `survey_to_bytes`."""
    n_about, n_sample = _LENGTHS.unpack_from(data)
    start = _LENGTHS.size
    about = json.loads(data[start : start + n_about])
    sample = _table_from_bytes(data[start + n_about : start + n_about + n_sample])
    witnesses = _table_from_bytes(data[start + n_about + n_sample :])
    return Survey(
        np.array(about["rows"], np.int64),
        sample,
        {
            tuple(key): (rank, number, witnesses.slice(i, 1))
            for i, (key, rank, number) in enumerate(about["witnesses"])
        },
        about["missing"],
    )


def _table_to_bytes(table: pyarrow.Table) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.unify_dictionaries())
    return bytes(sink.getvalue().to_pybytes())


def _table_from_bytes(data: bytes) -> pyarrow.Table:
    import pyarrow

    return pyarrow.ipc.open_stream(data).read_all()
