"""`nkcme demo`: every step with a short training, and the files that it writes."""

import json
from functools import partial

import pandas as pd
import pytest

import nkcme
from nkcme.cli import demo, display
from nkcme.cli import fit as fitting
from nkcme.cli.app import run

SHORT = {"epochs": 3, "hidden": (8,)}


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory):
    """The directory of a demo with a short training, and its JSON."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        printed: list = []
        patch.setattr(demo, "N_SEEDS", 1)
        patch.setattr(demo, "N_TRAIN", 500)
        patch.setattr(demo, "NKCME", partial(nkcme.NKCME, **SHORT))
        patch.setitem(fitting.PRESETS, "default", nkcme.presets.QUICK | SHORT)
        patch.setattr(display, "print", printed.append, raising=False)
        out.mkdir()
        demo.checkpoint_of(out / "diabetes-model").write_text("left by a demo that was killed")
        assert run(["demo", "--out", str(out), "--json"]) == 0
    return out, json.loads(printed[0])


def test_the_score_of_the_ring_is_worse_than_that_of_a_perfect_model(demonstrated):
    ring = demonstrated[1]["ring"]
    assert 15 < ring["floor_of_these_seeds"] < ring["mean"] < 200


def test_the_demo_writes_tables_model_and_report(demonstrated):
    out, result = demonstrated
    names = ["diabetes-model", "diabetes-test.csv", "diabetes-train.csv", "report.html"]
    assert sorted(path.name for path in out.iterdir()) == names
    train, test = (pd.read_csv(out / name) for name in (names[2], names[1]))
    assert len(train) + len(test) == 442
    assert result["diabetes"]["rows"] == len(train)
    assert result["diabetes"]["metrics"]["rows"] == len(test)
    model = nkcme.load(out / "diabetes-model")
    interval = model.predict_interval(test[:1].drop(columns="progression"))[0]
    shown = result["diabetes"]["intervals"][0]
    assert [shown["lower"], shown["upper"]] == pytest.approx(list(interval))
    assert shown["actual"] == test["progression"][0]


def test_the_demo_prints_scores_intervals_and_what_to_try_next(demonstrated, capsys):
    _, result = demonstrated
    display.show_ring(result["ring"])
    display.show_intervals(result["diabetes"]["intervals"], "progression")
    display.show_next(result["diabetes"]["paths"], "progression")
    printed = capsys.readouterr().out
    for text in ("21.10 +- 1.14", "17.57", "inside", "report.html", "nkcme predict"):
        assert text in printed


def test_a_path_that_cannot_be_written_is_refused_before_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "fit_ring", lambda seed: pytest.fail("refused too late"))
    (tmp_path / "file").write_text("")
    assert run(["demo", "--out", str(tmp_path / "file"), "--json"]) == 2
    assert "--out" in capsys.readouterr().err.splitlines()[-1]
