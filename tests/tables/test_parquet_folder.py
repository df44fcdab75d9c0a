"""Parquet folders: what is read, and what is refused by the name of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nkcme.errors import TableError
from nkcme.tables.parquet_folder import ParquetFolder, parquet_files


def frame(start: int, n: int = 10) -> pd.DataFrame:
    numbers = np.arange(start, start + n)
    return pd.DataFrame({"x": numbers / 2, "k": [f"k{i % 3}" for i in numbers], "y": numbers})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        frame(10 * i).to_parquet(tmp_path / f"part-{i}.parquet", row_group_size=4, index=False)
    return tmp_path


def test_a_folder_is_one_table_in_the_order_of_names(folder: Path) -> None:
    (folder / "_SUCCESS").touch()
    table = ParquetFolder.open(folder)
    assert (table.n_rows, len(table.groups)) == (30, 9)
    assert [group.first_row for group in table.groups] == [0, 4, 8, 10, 14, 18, 20, 24, 28]
    assert table.kinds == ("number", "text", "number")
    assert table.read(["y", "x"]).column("y").to_pylist() == list(range(30))
    batches = list(table.batches(table.groups[3], ["y"], batch_rows=3))
    assert [batch.column("y").to_pylist() for batch in batches] == [[10, 11, 12], [13]]


def test_a_pattern_a_file_and_a_list_name_files(folder: Path) -> None:
    assert len(parquet_files(f"{folder}/part-[01].parquet")) == 2
    assert ParquetFolder.open(folder / "part-1.parquet").n_rows == 10
    assert ParquetFolder.open([folder / "part-2.parquet", folder / "part-0.parquet"]).n_rows == 20


def test_the_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    frame(0).iloc[::2].to_parquet(tmp_path / "a.parquet")
    assert ParquetFolder.open(tmp_path).names == ("x", "k", "y")


def test_widths_may_differ_and_empty_columns_have_any_kind(folder: Path) -> None:
    first = frame(30).astype({"y": "float32"}).assign(k=None)
    first.to_parquet(folder / "a.parquet", index=False)
    table = ParquetFolder.open(folder)
    assert table.kinds == ("number", "text", "number")
    assert table.read().column("k").null_count == 10


def refusal(source: Path, *words: str) -> None:
    """Opening or reading ``source`` raises one line with all of these words."""
    with pytest.raises(TableError) as caught:
        ParquetFolder.open(source).read()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    refusal(tmp_path, str(tmp_path), "no .parquet file")
    refusal(tmp_path / "*.parquet", "no .parquet file")
    frame(0, 0).to_parquet(tmp_path / "a.parquet", index=False)
    refusal(tmp_path, str(tmp_path), "no rows")


def test_a_truncated_file_is_named(folder: Path) -> None:
    file = folder / "part-1.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    refusal(folder, str(file), "no whole Parquet file")


def test_a_file_with_damaged_rows_is_named(folder: Path) -> None:
    file = folder / "part-1.parquet"
    content = bytearray(file.read_bytes())
    content[4:200] = bytes(196)
    file.write_bytes(content)
    refusal(folder, str(file), "no whole Parquet file")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns="x"), ("lacks column 'x'",)),
        (lambda f: f.assign(z=1), ("has column 'z' beside",)),
        (lambda f: f.assign(x=f.x.astype(str)), ("holds text in column 'x'", "holds number")),
        (lambda f: f.assign(y=pd.Timestamp(0)), ("holds date in column 'y'", "holds number")),
    ],
)
def test_a_file_with_another_schema_is_named(folder: Path, change, words) -> None:
    file = folder / "part-2.parquet"
    change(frame(0)).to_parquet(file, index=False)
    refusal(folder, str(file), "part-0.parquet", *words)


def test_a_file_that_changes_while_it_is_read_is_named(folder: Path) -> None:
    table = ParquetFolder.open(folder)
    file = folder / "part-0.parquet"
    pq.write_table(pa.Table.from_pandas(frame(0, 3), preserve_index=False), file)
    with pytest.raises(TableError, match=r"part-0.parquet changed while it was read"):
        list(table.batches(table.groups[0]))
