"""What a table on disk may be given as."""

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from nkcme.errors import TableError
from nkcme.tables.stream_source import is_stream, parquet_of

FRAME = pd.DataFrame({"x": range(10), "k": list("abcdefghij"), "y": 0.5})
HALVES = [FRAME[:5], FRAME[5:].reset_index(drop=True)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i, half in enumerate(HALVES):
        half.to_parquet(tmp_path / f"{i}.parquet", index=False)
    return tmp_path


def read(source) -> pd.DataFrame:
    assert is_stream(source)
    with parquet_of(source) as table:
        return table.read().to_pandas()


@pytest.mark.parametrize(
    "source_of",
    [
        lambda folder: folder,
        lambda folder: f"{folder}/*.parquet",
        lambda folder: sorted(folder.glob("*.parquet")),
        lambda folder: ds.dataset(folder),
        lambda folder: ds.dataset(pa.Table.from_pandas(FRAME)),
        lambda folder: pl.scan_parquet(folder / "*.parquet"),
        lambda folder: iter(HALVES),
        lambda folder: lambda: (pl.from_pandas(half) for half in HALVES),
        lambda folder: iter(pa.Table.from_pandas(FRAME).to_batches(3)),
    ],
)
def test_every_source_gives_the_same_rows(folder, source_of):
    pd.testing.assert_frame_equal(read(source_of(folder)), FRAME, check_dtype=False)


def test_a_filtered_dataset_has_the_rows_that_are_left(folder):
    filtered = ds.dataset(folder).filter(pa.compute.field("x") > 6)
    assert read(filtered)["x"].tolist() == [7, 8, 9]


def test_a_table_in_memory_is_no_stream():
    for table in (FRAME, pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME), FRAME.to_numpy()):
        assert not is_stream(table)


def test_frames_of_another_schema_and_other_things_are_refused():
    with pytest.raises(TableError, match=r"frame-000000001.parquet lacks column 'k'"):
        read(iter([HALVES[0], HALVES[1].drop(columns="k")]))
    with pytest.raises(TableError, match=r"frame 1 .* is no pandas, polars or pyarrow frame"):
        read(iter([HALVES[0], 3]))
    with pytest.raises(TableError, match="no frames"):
        read(iter([]))
    with pytest.raises(TableError, match="got int"):
        read(lambda: 3)
