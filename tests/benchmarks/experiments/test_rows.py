"""Rows on disk: complete, ordered by run, and robust to damaged lines."""

from __future__ import annotations

import pytest

from benchmarks.experiments.rows import Rows
from support import fake_bench


def row(cell, run, **more):
    return {"run": run, "fingerprint": cell.fingerprint, "metrics": {"was1_x100": 1.5}} | more


@pytest.fixture
def cell():
    return fake_bench.cell()


def test_rows_are_read_back_ordered_by_run(tmp_path, cell):
    rows = Rows(tmp_path)
    for run in (2, 0, 1):
        rows.put(cell, row(cell, run, when=f"run {run}"))
    assert rows.of(cell) == [row(cell, run, when=f"run {run}") for run in range(3)]
    assert rows.path(cell) == tmp_path / "toy" / "ring--mdn.jsonl"
    assert [p.name for p in rows.path(cell).parent.iterdir()] == ["ring--mdn.jsonl"]


def test_a_row_replaces_the_row_of_the_same_run(tmp_path, cell):
    rows = Rows(tmp_path)
    failed = {"run": 1, "fingerprint": cell.fingerprint, "error": "no"}
    rows.put(cell, failed)
    assert rows.of(cell) == [failed]
    assert rows.finished(cell) == []
    rows.put(cell, row(cell, 1))
    assert rows.of(cell) == [row(cell, 1)]
    assert rows.missing(cell) == [0, 2]


@pytest.mark.parametrize(
    "damaged",
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
def test_a_damaged_line_is_ignored_with_a_note_and_removed_by_the_next_row(tmp_path, cell, damaged):
    notes = []
    rows = Rows(tmp_path, notes.append)
    rows.put(cell, row(cell, 0))
    with open(rows.path(cell), "ab") as file:
        file.write(damaged + b"\n")
    assert rows.of(cell) == [row(cell, 0)]
    assert notes == [f"{rows.path(cell)}: line 2 is not a complete row and is ignored"]
    rows.put(cell, row(cell, 1))
    notes.clear()
    assert rows.of(cell) == [row(cell, 0), row(cell, 1)]
    assert notes == []


def test_a_row_that_cannot_be_written_leaves_the_old_file(tmp_path, cell):
    rows = Rows(tmp_path)
    rows.put(cell, row(cell, 0))
    before = rows.path(cell).read_bytes()
    with pytest.raises(ValueError):
        rows.put(cell, row(cell, 1, metrics={"crps": float("nan")}))
    assert rows.path(cell).read_bytes() == before
    assert len(list(rows.path(cell).parent.iterdir())) == 1


def test_rows_of_runs_beyond_the_cell_are_not_read_and_not_removed(tmp_path, cell):
    rows = Rows(tmp_path)
    rows.put(cell, row(cell, 7))
    assert rows.of(cell) == []
    rows.put(cell, row(cell, 0))
    assert len(rows.path(cell).read_bytes().splitlines()) == 2
