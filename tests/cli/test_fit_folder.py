"""`nkcme fit FOLDER`: what it prints and saves, and what it refuses with nothing written."""

import json
import shutil

import pandas as pd
import pytest

import nkcme
from nkcme.cli import fit
from support.large_folder import N_ROWS, SMALL, make, write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("table"))


@pytest.fixture(autouse=True)
def small_streams(monkeypatch):
    """A folder of 8,000 rows is read as a stream."""
    make_model = fit._make
    monkeypatch.setattr(
        fit, "_make", lambda name, chosen, file: make_model(name, {**chosen, "recipe": SMALL}, file)
    )
    monkeypatch.setattr("nkcme.cli.fit_folder.StreamRecipe", lambda: SMALL.stream)


def test_a_folder_is_fitted_saved_and_scored_on_rows_that_were_held_out(folder, tmp_path, call):
    out = tmp_path / "model"
    printed = call("fit", f"{folder}/*.parquet", "--target", "y", "--out", out, "--json")[0]
    result = json.loads(printed)
    assert (result["rows"], result["columns"], result["metrics"]["rows"]) == (N_ROWS, 2, 400)
    assert result["metrics"]["crps"] < 0.7  # of the truth: 0.56
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert nkcme.load(out).target_name_ == "y"


def test_a_folder_of_few_rows_is_read_whole(tmp_path, call):
    frame = make(60, 0)[0]
    (tmp_path / "few").mkdir()
    for i in range(2):
        frame[30 * i : 30 * i + 30].to_parquet(tmp_path / "few" / f"{i}.parquet", index=False)
    command = ("fit", tmp_path / "few", "--target", "y", "--out", tmp_path / "m", "--epochs", 1)
    assert json.loads(call(*command, "--preset", "quick", "--json")[0])["rows"] == 54


def damaged(change):
    """A folder in which one file was changed."""

    def make_folder(folder, tmp_path):
        copy = shutil.copytree(folder, tmp_path / "copy")
        change(copy / "2.parquet")
        return copy

    return make_folder


def rewritten(change):
    def write(file):
        change(pd.read_parquet(file)).to_parquet(file, index=False)

    return damaged(write)


@pytest.mark.parametrize(
    ("make_folder", "words"),
    [
        (damaged(lambda f: f.write_bytes(f.read_bytes()[:-9])), "2.parquet is no whole Parquet"),
        (rewritten(lambda t: t.drop(columns="x")), "2.parquet lacks column 'x'"),
        (rewritten(lambda t: t.assign(z=1)), "2.parquet has column 'z'"),
        (rewritten(lambda t: t.assign(x="a")), "2.parquet holds text in column 'x'"),
        (rewritten(lambda t: t.assign(y=None)), "2.parquet: the target 'y' is missing in row 0"),
        (lambda folder, tmp_path: tmp_path, "has no .parquet file"),
    ],
    ids=["truncated", "column missing", "column more", "other type", "no target", "empty"],
)
def test_damaged_folders_are_refused_and_nothing_is_written(
    folder, tmp_path, refuse, make_folder, words
):
    table = make_folder(folder, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert words in refuse("fit", table, "--target", "y", "--out", tmp_path / "m")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--weights", "x"), "--weights: not for a folder"),
        (("--estimator", "MDN"), "is for NKCME, not for MDN"),
        (("--epochs", 3), "epochs=3 is for tables in memory"),
        (("--coordinator", "localhost:1"), "need --processes"),
        (("--processes", 2, "--process-id", 1), "give coordinator and process_id together"),
        (("--processes", 2, "--process-id", 2, "--coordinator", "a:1"), "process_id must be from"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, tmp_path, refuse, options, words):
    command = ("fit", folder, "--target", "y", "--out", tmp_path / "m", *options)
    assert words in refuse(*command)
    assert not list(tmp_path.iterdir())


def test_processes_are_for_folders_that_are_streams(tmp_path, refuse):
    frame = make(60, 0)[0]
    (tmp_path / "few").mkdir()
    frame.to_parquet(tmp_path / "few" / "0.parquet", index=False)
    end = ("--target", "y", "--out", tmp_path / "m", "--processes", 2)
    assert "one process fits in memory" in refuse("fit", tmp_path / "few", *end)
    assert "is one file" in refuse("fit", tmp_path / "few" / "0.parquet", *end)
