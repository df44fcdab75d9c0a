"""The progress bar of a fit: one for all stages."""

import pytest

from nkcme import NKCME
from nkcme.training.progress import time_left
from support.nkcme_models import line
from support.tiny_estimators import TINY_RECIPE


@pytest.mark.parametrize("atoms", ["auto", "learned"])
def test_all_stages_of_a_fit_share_one_bar(atoms, capsys):
    model = NKCME(recipe=TINY_RECIPE, atoms=atoms, verbose=True, random_state=0, epochs=1)
    model.fit(*line(60))
    shown = capsys.readouterr().err
    assert "fit: " in shown
    assert shown.count("100%") <= 1
    assert "fitted in" in shown


def test_the_time_left_is_that_of_the_whole_fit():
    assert time_left(3.0, 0.6, 1.0) == pytest.approx(2.0)
    assert time_left(3.0, 1.0, 1.0) == 0.0
    assert time_left(3.0, 0.0, 1.0) is None
    assert time_left(None, 0.5, 1.0) is None
