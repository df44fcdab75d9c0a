"""Settings: defaults, files, and values that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.rl.settings import Settings


def test_settings_go_through_a_config_and_back():
    settings = Settings(hidden=[8, 9], n_step=3)
    assert settings.hidden == (8, 9)
    assert Settings(**settings.to_config()) == settings
    assert hash(Settings(**settings.to_config())) == hash(settings)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_steps": 0},
        {"n_steps": 150},  # not a multiple of eval_every
        {"eval_every": 101},  # not a multiple of update_every
        {"target_every": 3},
        {"buffer_size": 9_999},
        {"prefill": 20_000},
        {"prefill": 2, "n_step": 3},
        {"hidden": (0,)},
        {"hidden": 5},
        {"activation": "x"},
        {"schedule": "x"},
        {"learning_rate": 0.0},
        {"learning_rate": np.nan},
        {"gamma": 1.0},
        {"gamma": 0.0},
        {"epsilon": 1.5},
        {"eval_epsilon": -0.1},
        {"averaging": 1.0},
        {"reward_scale": 0.0},
        {"batch_size": 2.5},
        {"n_step": 0},
    ],
    ids=str,
)
def test_invalid_settings_are_refused_in_one_line(bad):
    with pytest.raises(NkcmeError) as error:
        replace(Settings(), **bad)
    text = str(error.value)
    assert "\n" not in text
    assert any(name in text for name in bad)
