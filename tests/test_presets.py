"""The paper's recipes, as its appendices C and D have them."""

from __future__ import annotations

import pytest

from nkcme import presets
from nkcme.errors import NkcmeError


@pytest.mark.parametrize(
    ("method", "dataset", "expected"),
    [
        ("df-median", "ring", {"hidden": (50, 50), "learning_rate": 1e-4, "batch_size": 50,
                               "epochs": 1000, "bandwidth": "median", "regularization": 0.1}),
        ("mdn", "bimodal", {"n_components": 10, "epochs": 1000, "standardize": False}),
        ("nsf", "skewed", {"n_layers": 5, "learning_rate": 1e-3, "batch_size": 256, "epochs": 100}),
        ("card", "ring", {"mean_epochs": 100, "epochs": 5000, "batch_size": 256,
                          "n_diffusion_steps": 1000, "noise_hidden": (128, 128, 128)}),
        ("nkcme-iterative", "year", {"batch_size": 512, "epochs": 50, "bandwidth_period": 4,
                                     "bandwidth_update": "iterative", "hidden": (100,) * 3}),
        ("nkcme-joint", "year", {"bandwidth_period": 1, "bandwidth_update": "joint"}),
        ("nkcme-joint", "kin8nm", {"hidden": (50,) * 3, "learning_rate": 5e-4, "batch_size": 100,
                                   "epochs": 500, "spectral_norm": (1, -1)}),
        ("nkcme-joint", "naval", {"batch_size": 256, "learning_rate": 1e-3}),
        ("df-0.1", "naval", {"batch_size": 100, "epochs": 500, "bandwidth": 0.1,
                             "spectral_norm": (-1,)}),
        ("df-0.1", "year", {"batch_size": 256, "epochs": 50}),
        ("mdn", "protein", {"batch_size": 256, "epochs": 250, "n_components": 5,
                            "spectral_norm": (2,)}),
        ("mdn", "power", {"batch_size": 100, "n_components": 10, "hidden": (100,) * 3}),
        ("nsf", "boston", {"hidden": (50, 50), "batch_size": 50, "epochs": 10,
                           "learning_rate": 1e-3}),
        ("nsf", "power", {"hidden": (50, 50, 50), "batch_size": 256}),
    ],
)  # fmt: skip
def test_recipes_follow_the_appendix(method, dataset, expected):
    found = presets.paper(method, dataset)
    assert {name: found[name] for name in expected} == expected
    assert (found["weight_decay"], found["beta2"], found["schedule"]) == (1e-4, 0.999, "constant")


def test_the_constants_are_the_same_recipes():
    assert presets.paper("nkcme-joint", "ring") == presets.PAPER_TOY | {"bandwidth_update": "joint"}
    for name, constant in (
        ("boston", presets.PAPER_UCI_SMALL),
        ("protein", presets.PAPER_UCI_LARGE),
    ):
        found = presets.paper("nkcme-joint", name)
        assert {k: found[k] for k in constant} == constant


@pytest.mark.parametrize(("method", "dataset"), [("nkcme", "ring"), ("mdn", "moon")])
def test_an_unknown_method_or_data_set_is_an_error(method, dataset):
    with pytest.raises(NkcmeError, match="there are"):
        presets.paper(method, dataset)
