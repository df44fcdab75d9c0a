"""`nkcme predict` of a folder: what it prints and refuses; tests/prediction has the rest."""

import pandas as pd
import pytest

from support.prediction_folders import COLUMNS, MODEL, write_folder

OPTIONS = ("--quantiles", "0.1,0.5,0.9", "--interval", 0.8, "--keep", "key")


def test_a_folder_and_its_files_have_the_same_predictions(tmp_path, call):
    folder, out = write_folder(tmp_path / "in"), tmp_path / "out"
    command = ("predict", MODEL, folder, "--out", out, *OPTIONS)
    printed, notes = call(*command)
    assert printed == f"Wrote 900 rows in 3 files to {out}\n"
    assert notes == "nkcme: ignored column 'other', which the model was not fitted on\n"
    assert call(*command)[0].endswith(f"to {out}; 3 were finished before\n")
    call("predict", MODEL, folder / "part-1.parquet", "-o", tmp_path / "alone.parquet", *OPTIONS)
    found = pd.read_parquet(out / "part-1.parquet")
    assert list(found) == ["key", *COLUMNS]
    alone = pd.read_parquet(tmp_path / "alone.parquet")
    pd.testing.assert_frame_equal(found, alone, check_exact=True)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "--out must name a folder"),
        (("--out", "out", "--samples", 3), "--samples is for single tables"),
        (("--out", "out", "--json"), "--json is for single tables"),
        (("--out", "out", "--sep", ";"), "--sep is for single tables"),
        (("--out", "out", "--shard", "3/2"), "--shard must be I/N"),
        (("--out", "out", "--shard", "half"), "--shard must be I/N"),
        (("--out", "out", "--workers", 2, "--cluster", "auto"), "--workers are processes"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, why, tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    assert why in refuse("predict", MODEL, write_folder(tmp_path / "in"), *options)
    assert not (tmp_path / "out").exists()


def test_workers_need_a_folder_and_a_cluster_must_answer(tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    file = write_folder(tmp_path / "in") / "part-0.parquet"
    assert "are for folders" in refuse("predict", MODEL, file, "--workers", 2)
    monkeypatch.setattr("nkcme.prediction.folder._needed_columns", lambda table, *_: table)
    line = refuse("predict", MODEL, tmp_path / "in", "--out", "out", "--cluster", "127.0.0.1:1")
    assert "no Ray cluster answers at 127.0.0.1:1" in line
    assert not (tmp_path / "out").exists()
