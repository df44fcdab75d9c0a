"""Tables in files: what is read, what is refused and why, what is written."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme.tables.files import check_output, read_table, to_frame, write_table
from nkcme.tables.target_column import split_target
from support.permissions import directory_for_all, unprivileged
from support.refusals import refusal

FRAME = pd.DataFrame({"size": [0.1, 1 / 3, np.nan], "town": ["Ulm", None, 'Bern, "old"\ntown']})


@pytest.fixture
def csv_file(tmp_path: Path) -> Any:
    def write(content: str | bytes, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def locked_directory() -> Iterator[Path]:
    """A directory that may not be written, with a table that may not be read."""
    with directory_for_all() as directory:
        (directory / "table.csv").write_text("a\n1\n")
        (directory / "table.csv").chmod(0)
        directory.chmod(0o555)
        with unprivileged():
            yield directory


# ----------------------------------------------------------------------------------- reading


def test_csv_is_read_with_its_types_and_missing_values(csv_file: Any) -> None:
    frame = read_table(csv_file("n,flag,text\n1,True,a\n,False,\nNA,True,b\n"))
    assert frame["n"].isna().tolist() == [False, True, True]
    assert frame["flag"].tolist() == [True, False, True]
    assert frame["text"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_any_line_ending_is_read(csv_file: Any, end: str) -> None:
    separator = end or "\n"
    frame = read_table(str(csv_file(f"a,b{separator}1,2{separator}3,4{end}")))
    assert frame.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_blank_lines_and_quoted_line_breaks_are_allowed(csv_file: Any) -> None:
    frame = read_table(csv_file('\na,b\n \n1,"x\ny"\n\n2,"say ""hi"", you"\n\n'))
    assert frame["b"].tolist() == ["x\ny", 'say "hi", you']


@pytest.mark.parametrize("header", [b"a,b", b'"a",b'])
def test_a_byte_order_mark_is_stripped(csv_file: Any, header: bytes) -> None:
    frame = read_table(csv_file(b"\xef\xbb\xbf" + header + b"\n1,2\n"))
    assert frame.columns.tolist() == ["a", "b"]


def test_tab_separated_files_are_read(csv_file: Any) -> None:
    frame = read_table(csv_file("a\tb,c\n1\t2\n", "table.TSV"))
    assert frame.to_dict("list") == {"a": [1], "b,c": [2]}


def test_a_long_column_has_one_type(csv_file: Any) -> None:
    rows = "1,2\n" * 300_000
    frame = read_table(csv_file("a,b\n" + rows + "x,2\n"))
    assert {type(value) for value in frame["a"]} == {str}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz", "t.parquet"])
def test_reading_gives_the_table_that_was_written(tmp_path: Path, name: str) -> None:
    write_table(FRAME, tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), FRAME)
    assert os.listdir(tmp_path) == [name]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=5))
def test_numbers_keep_their_digits_in_csv_and_parquet(values: list[float]) -> None:
    frame = to_frame({"a": np.array(values)})
    with tempfile.TemporaryDirectory() as directory:
        for name in ("t.csv", "t.parquet"):
            path = Path(directory, name)
            write_table(frame, path)
            np.testing.assert_array_max_ulp(read_table(path)["a"].to_numpy(float), values, 1)


def test_a_parquet_path_that_looks_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    path = tmp_path / "year=2020" / "t.parquet"
    write_table(FRAME, path)
    assert read_table(path).columns.tolist() == ["size", "town"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["is empty"]),
        (b"\n\n", ["is empty"]),
        (b"\xef\xbb\xbf", ["is empty"]),
        (b"a,b\n", ["0 rows"]),
        (b"a,b\n1,2\n3\n5,6\n", ["line 3", "1 fields", "header has 2"]),
        (b"a,b\n1,2\n3,4,5\n", ["line 3", "3 fields", "header has 2"]),
        (b"a,b,c\n1,2,3\n4,5", ["line 3", "2 fields", "header has 3", "half-written"]),
        (b'a,b\n"x\ny",1\n\n2\n', ["line 5", "1 fields"]),
        (b'a,b\n1,2\n3,"x\n5,6\n', ["line 3", "quote"]),
        (b'a,b\n1,"' + b"x\n" * 100_000, ["line 2", "more than 131,072 characters", "quote"]),
        (b"a,b\n1,2\n3," + b"x" * 200_000 + b"\n", ["line 3", "more than 131,072 characters"]),
        (b'a,b\n1,"x"y\n', ["line 2", "quote"]),
        (b"a,b\n1,2\n3,\0\0\n", ["line 3", "NUL"]),
        (b"a,b\n1,2\n" + b"\0" * 100, ["line 3", "NUL"]),
        (b"a,b\n1,\xe9\n", ["byte 6", "UTF-8"]),
        (b"\xef\xbb\xbfa,b\n1,\xe9\n", ["byte 9", "UTF-8"]),
        (b"a,b\n1," + "é".encode()[:1], ["byte 6", "UTF-8"]),
        ("a,b\n1,2\n".encode("utf-16"), ["byte 0", "UTF-8"]),
        (b"a,b,a\n1,2,3\n", ["'a'", "own name"]),
        (b"a,,\n1,2,3\n", ["''", "own name"]),
        (b"a,b\n1,2\n\r,\n", ["2 rows of which 1", "line ending"]),
    ],
)
def test_damaged_csv_is_refused(csv_file: Any, content: bytes, words: list[str]) -> None:
    for path in (csv_file(content), csv_file(gzip.compress(content), "table.csv.gz")):
        message = refusal(read_table, path)
        for word in [str(path), *words]:
            assert word in message


def test_names_that_pandas_gives_to_repeated_columns_are_allowed(csv_file: Any) -> None:
    assert read_table(csv_file("a,a.1\n1,2\n")).columns.tolist() == ["a", "a.1"]


# Without a time stamp: parallel test processes must agree on the names of parametrised tests.
GZIPPED = gzip.compress(b"a,b\n1,2\n" * 999, mtime=0)


@pytest.mark.parametrize(
    "content",
    [
        GZIPPED[:-20],
        gzip.compress(b"a\xe9\n", mtime=0)[:-9],
        b"a,b\n1,2\n",
        b"\x1f\x8b",
        GZIPPED[:20] * 9,
    ],
)
def test_damaged_gzip_is_refused(csv_file: Any, content: bytes) -> None:
    assert "gzip" in refusal(read_table, csv_file(content, "table.csv.gz"))


@pytest.mark.parametrize("part", [slice(0), slice(4), slice(None, -10), slice(10, None)])
def test_damaged_parquet_is_refused(tmp_path: Path, csv_file: Any, part: slice) -> None:
    write_table(FRAME, tmp_path / "good.parquet")
    damaged = csv_file((tmp_path / "good.parquet").read_bytes()[part], "bad.parquet")
    message = refusal(read_table, damaged)
    assert "Parquet" in message
    assert str(damaged) in message


def test_parquet_with_an_altered_middle_is_refused(tmp_path: Path, csv_file: Any) -> None:
    write_table(FRAME, tmp_path / "good.parquet")
    content = bytearray((tmp_path / "good.parquet").read_bytes())
    content[4:60] = b"\xff" * 56
    assert "Parquet" in refusal(read_table, csv_file(bytes(content), "bad.parquet"))


def test_parquet_with_repeated_names_is_refused(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    assert "'a'" in refusal(read_table, tmp_path / "t.parquet")


def test_numbered_columns_of_parquet_get_text_names(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pandas(pd.DataFrame([[1.0, 2.0]])), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns.tolist() == ["0", "1"]


def test_parquet_without_rows_is_refused(tmp_path: Path) -> None:
    write_table(FRAME[:0], tmp_path / "t.parquet")
    assert "0 rows" in refusal(read_table, tmp_path / "t.parquet")


def test_parquet_without_pyarrow_names_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(FRAME, tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "nkcme[parquet]" in refusal(read_table, tmp_path / "t.parquet")
    assert "nkcme[parquet]" in refusal(write_table, FRAME, tmp_path / "new.parquet")
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_paths_without_a_table_are_refused(tmp_path: Path, csv_file: Any) -> None:
    assert "does not exist" in refusal(read_table, tmp_path / "none.csv")
    assert "does not exist" in refusal(read_table, tmp_path / "none.parquet")
    assert "directory" in refusal(read_table, tmp_path)
    assert "cannot be read" in refusal(read_table, csv_file("a\n1\n") / "more.csv")
    unknown = refusal(read_table, csv_file("a\n1\n", "table.ods"))
    assert ".csv" in unknown
    assert ".parquet" in unknown


def test_paths_without_permission_are_refused(locked_directory: Path) -> None:
    message = refusal(read_table, locked_directory / "table.csv")
    assert "cannot be read: Permission denied" in message
    message = refusal(write_table, FRAME, locked_directory / "out.csv")
    assert "cannot be written: Permission denied" in message


# ------------------------------------------------------------------------------------ target


def test_the_target_is_split_off() -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "y": [1, 2], "b": [True, False]}, index=[5, 9])
    features, y = split_target(frame, "y")
    assert features.columns.tolist() == ["a", "b"]
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, [1.0, 2.0])
    assert frame.columns.tolist() == ["a", "y", "b"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1", "2", "n/k"], ["text", "'n/k'", "data row 3"]),
        ([1.0, None, None], ["2 missing", "data row 2"]),
        ([1.0, 2.0, np.inf], ["infinite"]),
        (pd.to_datetime(["2020-01-01"] * 3), ["dates"]),
        (pd.Categorical(["u", "v", "u"]), ["text", "'u'"]),
    ],
)
def test_bad_targets_are_refused(values: Any, words: list[str]) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "goal": values}, index=[7, 8, 9])
    message = refusal(split_target, frame, "goal")
    for word in ["'goal'", *words]:
        assert word in message


def test_an_absent_target_is_refused_with_close_names() -> None:
    frame = pd.DataFrame({"price": [1], "prize": [2], "town": [3]})
    message = refusal(split_target, frame, "pice")
    assert "'price'" in message
    assert "'town'" not in message
    assert "'town'" in refusal(split_target, frame, "zzz")


def test_a_table_of_only_the_target_is_refused() -> None:
    assert "only column" in refusal(split_target, pd.DataFrame({"y": [1.0]}), "y")


# ----------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("path", [None, "-"])
def test_a_table_is_written_to_standard_output(
    path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdout = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stdout)
    write_table(to_frame({"a": np.array([1.5, 2.0]), "b": np.array(["x", "y"])}), path)
    assert stdout.getvalue() == "a,b\n1.5,x\n2.0,y\n"


def test_paths_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d.csv").mkdir()
    assert "directory" in refusal(write_table, FRAME, tmp_path / "d.csv")
    for path, why in (("none/t.csv", "no directory"), ("t.txt", "extension"), ("/", "extension")):
        assert why in refusal(write_table, FRAME, tmp_path / path)
        assert why in refusal(check_output, tmp_path / path)
    for path in (tmp_path / "t.csv", None, "-"):
        check_output(path)


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refusal(write_table, FRAME, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_a_table_that_parquet_cannot_hold_is_refused(tmp_path: Path) -> None:
    mixed = pd.DataFrame({"a": np.array([1, "x"], dtype=object)})
    assert "CSV" in refusal(write_table, mixed, tmp_path / "t.parquet")
    assert os.listdir(tmp_path) == []


def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_table(FRAME, tmp_path / "t.csv")
    (tmp_path / "plain").touch()
    assert (tmp_path / "t.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode
