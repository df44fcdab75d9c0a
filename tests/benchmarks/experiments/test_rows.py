"""Rows on the disk: whole, in order, and read with suspicion."""

from __future__ import annotations

import pytest

from benchmarks.experiments.rows import Rows
from support import fake_bench


def row(cell, run, **more):
    return {"run": run, "fingerprint": cell.fingerprint, "metrics": {"was1_x100": 1.5}} | more


@pytest.fixture
def cell():
    return fake_bench.cell()


def test_rows_come_back_as_they_were_put_by_run(tmp_path, cell):
    rows = Rows(tmp_path)
    for run in (2, 0, 1):
        rows.put(cell, row(cell, run, when=f"run {run}"))
    assert rows.of(cell) == [row(cell, run, when=f"run {run}") for run in range(3)]
    assert rows.path(cell) == tmp_path / "toy" / "ring--mdn.jsonl"
    assert [p.name for p in rows.path(cell).parent.iterdir()] == ["ring--mdn.jsonl"]


def test_a_row_takes_the_place_of_one_of_the_same_run(tmp_path, cell):
    rows = Rows(tmp_path)
    failed = {"run": 1, "fingerprint": cell.fingerprint, "error": "no"}
    rows.put(cell, failed)
    assert rows.of(cell) == [failed]
    assert rows.finished(cell) == []
    rows.put(cell, row(cell, 1))
    assert rows.of(cell) == [row(cell, 1)]
    assert rows.missing(cell) == [0, 2]


@pytest.mark.parametrize(
    "torn",
    [
        b'{"run": 1, "fingerprint": "ab',
        b"",
        b"null",
        b'{"run": 1}',
        b'{"run": "1", "fingerprint": "", "metrics": {}}',
        b'{"run": 1, "fingerprint": "x", "metrics": {"crps": NaN}}',
        b"\xff\xfe",
    ],
)
def test_a_torn_line_is_ignored_and_said(tmp_path, cell, torn):
    said = []
    rows = Rows(tmp_path, said.append)
    rows.put(cell, row(cell, 0))
    with open(rows.path(cell), "ab") as file:
        file.write(torn + b"\n")
    assert rows.of(cell) == [row(cell, 0)]
    assert said == [f"{rows.path(cell)}: line 2 is no whole row, and is ignored"]
    rows.put(cell, row(cell, 1))  # and does not come back
    said.clear()
    assert rows.of(cell) == [row(cell, 0), row(cell, 1)]
    assert said == []


def test_what_cannot_be_written_leaves_the_old_file(tmp_path, cell):
    rows = Rows(tmp_path)
    rows.put(cell, row(cell, 0))
    before = rows.path(cell).read_bytes()
    with pytest.raises(ValueError):
        rows.put(cell, row(cell, 1, metrics={"crps": float("nan")}))
    assert rows.path(cell).read_bytes() == before
    assert len(list(rows.path(cell).parent.iterdir())) == 1


def test_rows_beyond_the_runs_that_are_asked_for_are_left_out_and_left_alone(tmp_path, cell):
    rows = Rows(tmp_path)
    rows.put(cell, row(cell, 7))
    assert rows.of(cell) == []
    rows.put(cell, row(cell, 0))
    assert len(rows.path(cell).read_bytes().splitlines()) == 2
