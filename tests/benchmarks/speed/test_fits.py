"""The measurements of fits, with fits that take no time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.experiments import peers
from benchmarks.speed import fits
from nkcme.errors import NkcmeError


@pytest.fixture
def fake_fits(monkeypatch):
    """Fits whose compilation takes a second with an empty cache; the shapes of their tables."""
    shapes, seen = [], set()

    def fit_seconds(table, parameters, cache, *, twice=False):
        shapes.append((*table[0].shape, len(parameters)))
        compilation = 0.0 if cache in seen else 1.0
        seen.add(cache)
        seconds = {"total": 2.0 + compilation, "compilation": compilation}
        return seconds | ({"second_fit": 1.0} if twice else {})

    def predict(cell, data, levels, seed):
        assert data.X.shape == (927, 8)
        return peers.Prediction(np.zeros(1), np.zeros(1), 3.0 + seed, 0.0, {})

    monkeypatch.delenv(fits.DATA_VARIABLE, raising=False)
    monkeypatch.setattr(fits, "fit_seconds", fit_seconds)
    monkeypatch.setattr(peers, "predict", predict)
    return shapes


def test_every_case_is_measured_with_an_empty_and_a_filled_cache(fake_fits, tmp_path, capsys):
    fits.main(["concrete", "ring", "wide", "unseen", "repeated"], 2, tmp_path)
    (file,) = tmp_path.iterdir()
    result = json.loads(file.read_text(encoding="utf-8"))
    assert file.name.startswith("fit-speed-")
    assert result["commit"]
    concrete = result["cases"]["concrete"]
    assert concrete["empty_cache"] == {"total": 3.0, "compilation": 1.0}
    assert concrete["filled_cache"] == {"total": 2.0, "compilation": 0.0}
    assert concrete["ngboost"] == {"total": 3.5}
    assert set(result["cases"]["ring"]) == {"default", "paper"}
    assert result["cases"]["unseen"]["wider"]["compilation"] == 0.0
    assert fake_fits[0] == (927, 8, 0)
    assert fake_fits[3][:2] == (5000, 1)
    assert (3700, 26, 0) in fake_fits
    assert result["cases"]["repeated"] == {"total": 3.0, "compilation": 1.0, "second_fit": 1.0}


def test_unknown_cases_are_refused(tmp_path):
    with pytest.raises(NkcmeError, match="no case 'tall'; there are concrete, ring"):
        fits.main(["tall"], 1, tmp_path)


def test_a_fit_in_a_new_process_says_how_long_it_took(tmp_path):
    quick = {"center": "none", "recalibrate": False, "n_members": 1, "epochs": 1, "hidden": [4]}
    seconds = fits.fit_seconds(fits.generated(60, 3), quick, str(tmp_path))
    assert 0.0 < seconds["compilation"] < seconds["total"]
    assert any((tmp_path / "nkcme" / "compiled").iterdir())


def test_a_fit_that_fails_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="kernel must be one of"):
        fits.fit_seconds(fits.generated(60, 3), {"kernel": "cubic"}, str(tmp_path))


def test_all_folds_of_each_uci_set_are_fitted_together(fake_fits, tmp_path, monkeypatch):
    with pytest.raises(NkcmeError, match="needs the UCI sets"):
        fits.main(["folds"], 1, tmp_path)
    asked = []

    def last_json(program, arguments, cache):
        asked.append((program, *arguments))
        return {"folds": 20, "total": 9.0, "compilation": 1.0}

    monkeypatch.setenv(fits.DATA_VARIABLE, str(tmp_path))
    monkeypatch.setattr(fits, "_last_json", last_json)
    assert fits.folds(1)["protein"]["total"] == 9.0
    assert len(asked) == 7
    assert all("fit_many" in program for program, _ in asked)
