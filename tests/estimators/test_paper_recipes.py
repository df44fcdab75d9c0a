"""The paper's recipes are parameters that their estimators accept."""

from __future__ import annotations

import pytest

from nkcme import CARD, MDN, NKCME, DeepFeatureCME, SplineFlow, presets

ESTIMATOR_OF = {
    "nkcme-joint": NKCME,
    "nkcme-iterative": NKCME,
    "df-median": DeepFeatureCME,
    "df-0.1": DeepFeatureCME,
    "mdn": MDN,
    "nsf": SplineFlow,
    "card": CARD,
}


@pytest.mark.parametrize("method", presets.PAPER_METHODS)
@pytest.mark.parametrize("dataset", ["bimodal", "ring", "boston", "protein", "year"])
def test_recipes_are_valid_parameters(method, dataset):
    ESTIMATOR_OF[method](**presets.paper(method, dataset))._check_parameters()
