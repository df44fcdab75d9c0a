"""A survey: the sample, counts, and rows that show what the sample may miss."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nkcme.errors import TableError
from nkcme.tables.parquet_folder import ParquetFolder
from nkcme.tables.survey import Survey, need_target, survey

N = 20_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(1, 50, N).astype(float)
    y[7_001], y[13_500], y[15_000] = -3.0, 99.0, 0.5
    x, level = rng.normal(size=N), np.array(["a", "b"], object)[rng.integers(0, 2, N)]
    x[12_345], level[17_000] = np.nan, "rare"
    table = pa.table({"x": x, "level": level, "row": np.arange(N), "y": y})
    path = tmp_path_factory.mktemp("table")
    for i in range(4):
        pq.write_table(table.slice(5000 * i, 5000), path / f"{i}.parquet", row_group_size=1500)
    return path


def test_the_sample_has_about_its_share_and_witnesses_show_what_is_rare(folder):
    found = survey(ParquetFolder.open(folder), "y", 0.05, seed=1)
    assert abs(found.sample.num_rows - 0.05 * N) < 4 * np.sqrt(0.05 * N)
    np.testing.assert_array_equal(found.sample.column("row"), found.rows)
    witnesses = found.witness_table().column("row").to_pylist()
    assert {7_001, 13_500, 15_000, 12_345, 17_000} <= set(witnesses)
    assert found.missing == {"x": 1}


def test_processes_that_survey_some_groups_each_find_the_same(folder):
    table = ParquetFolder.open(folder)
    whole = survey(table, "y", 0.05, seed=1)
    parts = [survey(table, "y", 0.05, seed=1, groups=table.groups[i::3]) for i in range(3)]
    joined = Survey.joined(parts)
    assert joined.sample.equals(whole.sample)
    assert joined.witness_table()["row"].equals(whole.witness_table()["row"])
    assert joined.missing == whole.missing
    assert joined.in_order(5)[1].equals(whole.in_order(5)[1])


def test_a_target_must_be_a_column_of_complete_numbers(folder, tmp_path):
    table = ParquetFolder.open(folder)
    with pytest.raises(TableError, match="no column 'z' to be the target"):
        need_target(table, "z")
    with pytest.raises(TableError, match="'level' holds text, expected numbers"):
        need_target(table, "level")
    with pytest.raises(TableError, match=r"2.parquet: the target 'x' is missing in row 845 of row"):
        survey(table, "x", 0.05, seed=1)
    pq.write_table(pa.table({"y": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="only column"):
        need_target(ParquetFolder.open(tmp_path), "y")
