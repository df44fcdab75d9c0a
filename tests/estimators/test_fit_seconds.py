"""How long a fit took, and how much of it was compilation."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from nkcme import load
from support.tiny_estimators import tiny


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2))
    return x, x[:, 0] + rng.normal(size=40)


@pytest.mark.parametrize("name", ["KernelCME", "MDN"])
def test_fits_say_how_long_they_took(name, table, tmp_path):
    model = tiny(name).fit(*table)
    seconds = model.fit_seconds_
    assert 0.0 <= seconds["compilation"] <= seconds["total"]
    assert pickle.loads(pickle.dumps(model)).fit_seconds_ == seconds
    model.save(tmp_path / "model")
    assert not hasattr(load(tmp_path / "model"), "fit_seconds_")


def test_models_that_were_fitted_together_have_the_time_of_all(table):
    first, second = tiny("MDN").fit_many([table, table])
    assert first.fit_seconds_["compilation"] == second.fit_seconds_["compilation"]


@pytest.mark.parametrize("verbose", [True, False])
def test_a_fit_with_a_progress_bar_ends_with_the_seconds(verbose, table, capsys):
    tiny("MDN", verbose=verbose).fit(*table)
    line = re.compile(r"fitted in \d+\.\d s, of which \d+\.\d s compilation\n")
    assert bool(line.search(capsys.readouterr().err)) == verbose
