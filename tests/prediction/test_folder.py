"""A folder of Parquet files: the same bytes by any workers, restarts, and bad input."""

import os

import pandas as pd
import pyarrow.parquet as pq
import pytest

import nkcme
from nkcme.errors import NkcmeError, TableError
from nkcme.prediction.folder import Placement, Tally, predict_folder
from nkcme.prediction.processes import MAX_DEATHS, run_in_processes
from nkcme.tables import parquet_folder
from support.prediction_folders import (
    COLUMNS,
    MODEL,
    OPTIONS,
    DyingPredictor,
    always_die,
    contents,
    refuse_odd,
    rows,
    write_folder,
)

ROWS = 300
PREDICTOR = nkcme.Predictor(MODEL, **OPTIONS, keep=["key"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("folder"), n_rows=ROWS)


@pytest.fixture(scope="module")
def plain(folder, tmp_path_factory):
    """The folder predicted by this process; each file in two units."""
    out = tmp_path_factory.mktemp("plain") / "out"
    notes = []
    assert predict(folder, out, note=notes.append) == Tally(6, 3 * ROWS, 0)
    assert notes == ["ignored column 'other', which the model was not fitted on"]
    return out


def predict(folder, out, predictor=PREDICTOR, note=lambda _: None, unit_rows=ROWS // 2, **placed):
    return predict_folder(predictor, folder, out, Placement(**placed), note, unit_rows=unit_rows)


def test_each_row_has_its_prediction_in_order(folder, plain):
    names = [f"part-{i}-000{k}-of-0002.parquet" for i in range(3) for k in (1, 2)]
    places = [f"later/{name}" if "part-2" in name else name for name in names]
    assert set(contents(plain)) == set(places)
    found = pd.concat([pd.read_parquet(plain / place) for place in places], ignore_index=True)
    table = pd.concat([rows(ROWS, seed=i) for i in range(3)], ignore_index=True)
    assert list(found) == ["key", *COLUMNS]
    pd.testing.assert_frame_equal(found, PREDICTOR(table), check_exact=True)


def test_a_small_file_is_one_unit_and_batches_make_no_difference(
    folder, plain, tmp_path, monkeypatch
):
    monkeypatch.setattr(parquet_folder.ParquetFolder.batches, "__defaults__", (None, 64))
    assert predict(folder, tmp_path, unit_rows=10**6) == Tally(3, 3 * ROWS, 0)
    whole = pd.read_parquet(tmp_path / "later" / "part-2.parquet")
    parts = [pd.read_parquet(plain / f"later/part-2-000{k}-of-0002.parquet") for k in (1, 2)]
    pd.testing.assert_frame_equal(whole, pd.concat(parts, ignore_index=True), check_exact=True)


def test_shards_write_the_same_bytes(folder, plain, tmp_path):
    tallies = [predict(folder, tmp_path, shard=(i, 2)) for i in (2, 1)]
    assert tallies == [Tally(3, 450, 0)] * 2
    assert contents(tmp_path) == contents(plain)


def test_finished_files_are_not_written_again(folder, plain, tmp_path):
    predict(folder, tmp_path, shard=(1, 3))
    first = {path: path.stat().st_ino for path in tmp_path.rglob("*.parquet")}
    assert len(first) == 2
    assert predict(folder, tmp_path) == Tally(4, 2 * ROWS, 2)
    assert {path: path.stat().st_ino for path in first} == first
    assert contents(tmp_path) == contents(plain)


def test_a_worker_that_is_killed_loses_and_doubles_no_row(folder, plain, tmp_path):
    died, out = tmp_path / "died", tmp_path / "out"
    dying = DyingPredictor(MODEL, died, **OPTIONS, keep=["key"])
    assert predict(folder, out, dying, workers=2) == Tally(6, 3 * ROWS, 0)
    assert died.exists()
    assert contents(out) == contents(plain)  # and no file half-written


def test_half_written_files_of_a_killed_command_are_removed(folder, plain, tmp_path):
    (tmp_path / ".part-0-0001-of-0002.parquet.host-123.partial").write_bytes(b"PAR1")
    predict(folder, tmp_path)
    assert contents(tmp_path) == contents(plain)


def test_predictions_of_something_else_are_not_mixed_in(folder, plain, tmp_path):
    predict(folder, tmp_path, shard=(1, 6))
    (only,) = contents(tmp_path)
    others = [nkcme.Predictor(MODEL, keep=["key"]), nkcme.Predictor(MODEL.parent / "mdn")]
    for other in others:
        with pytest.raises(TableError, match=f"{only} holds something other"):
            predict(folder, tmp_path, other)
    changed = write_folder(tmp_path / "changed", n_rows=ROWS)
    table = rows(ROWS, seed=5)
    table.to_parquet(changed / "later/part-2.parquet", row_group_size=ROWS // 2, index=False)
    with pytest.raises(TableError, match=f"{only} holds something other"):
        predict(changed, tmp_path)
    (tmp_path / only).write_bytes(b"else")
    with pytest.raises(TableError, match=f"{only} holds something other"):
        predict(folder, tmp_path)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-100])


def other_type(path):
    rows(ROWS).assign(a="text").to_parquet(path, index=False)


def missing_column(path):
    rows(ROWS).drop(columns="c").to_parquet(path, index=False)


def other_schema(path):
    pd.DataFrame({"u": [1.0]}).to_parquet(path, index=False)


@pytest.mark.parametrize("damage", [truncated, other_type, missing_column, other_schema])
def test_a_bad_file_is_named_and_nothing_is_written(damage, tmp_path):
    folder, out = write_folder(tmp_path / "in"), tmp_path / "out"
    damage(folder / "part-1.parquet")
    with pytest.raises(TableError, match=r"part-1\.parquet") as error:
        predict(folder, out)
    assert "\n" not in str(error.value)
    assert not out.exists()


def test_an_empty_folder_and_one_that_does_not_fit_are_refused(tmp_path):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    with pytest.raises(TableError, match=r"has no \.parquet file"):
        predict(folder, out)
    rows(ROWS).drop(columns="a").to_parquet(folder / "p.parquet", index=False)
    with pytest.raises(TableError, match=r"p\.parquet.*lacks column 'a'"):
        predict(folder, out)
    rows(ROWS).assign(a="tall").to_parquet(folder / "p.parquet", index=False)
    with pytest.raises(TableError, match=r"p\.parquet.*column 'a' .*'tall'"):
        predict(folder, out)
    rows(ROWS).to_parquet(folder / "p.parquet", index=False)
    with pytest.raises(TableError, match="lacks column 'id', which must be kept"):
        predict(folder, out, nkcme.Predictor(MODEL, keep=["id"]))
    with pytest.raises(TableError, match="lies in the folder that is read"):
        predict(folder, folder / "out")
    assert not out.exists()


def test_damaged_rows_leave_no_file(folder, tmp_path):
    path = write_folder(tmp_path / "in", n_files=2) / "part-0.parquet"
    column = pq.ParquetFile(path).metadata.row_group(1).column(3)
    data = bytearray(path.read_bytes())
    start = column.data_page_offset
    data[start : start + column.total_compressed_size] = os.urandom(column.total_compressed_size)
    path.write_bytes(data)
    with pytest.raises(TableError, match=r"part-0\.parquet is no whole Parquet file"):
        predict(tmp_path / "in", tmp_path / "out", unit_rows=10**6)
    assert not contents(tmp_path / "out")


def test_unknown_categories_are_noted_with_their_file(tmp_path):
    rows(40).assign(b="new").to_parquet(tmp_path / "p.parquet", index=False)
    notes = []
    predict(tmp_path, tmp_path.with_name("out"), note=notes.append, unit_rows=10**6)
    assert f"{tmp_path / 'p.parquet'}: " in notes[1]
    assert "'b'" in notes[1]


def test_an_error_of_a_worker_is_raised_as_it_is():
    with pytest.raises(TableError, match=r"^number 1 is odd$"):
        list(run_in_processes(refuse_odd, [0, 1], 1))


def test_workers_that_always_die_end_in_one_line(monkeypatch):
    monkeypatch.setattr("nkcme.prediction.processes.MAX_DEATHS", 1)
    assert MAX_DEATHS > 1
    with pytest.raises(NkcmeError, match=r"died 2 times.*1 units left"):
        list(run_in_processes(always_die, [0], 1))
