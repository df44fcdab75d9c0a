"""The text of a fitted model is what was chosen, and never an array."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from nkcme import NKCME
from nkcme.estimators import ESTIMATORS
from support.predicted_distributions import fitted
from support.tiny_estimators import tiny


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fitted_estimator_says_what_was_chosen(name):
    model, _ = fitted(name, 1)
    parameters, chosen = repr(model).splitlines()[:-1], repr(model).splitlines()[-1]
    assert "\n".join(parameters) == repr(clone(model))
    assert chosen.startswith("  fitted to 2 columns")
    assert "array" not in repr(model)


def test_the_default_names_location_model_members_and_support():
    model, _ = fitted("NKCME", 1)
    chosen = repr(model).splitlines()[-1]
    assert f"location model {model.center_.summary() if model.center_ else 'none'}" in chosen
    assert f"{model.n_members_} members, {model.n_atoms_} atoms, bandwidth " in chosen
    assert f"y takes {model.support_}" in chosen


def test_a_log_model_and_its_target_are_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    model = tiny("NKCME", transform="log").fit(x, np.exp(x[:, 0]))
    model.target_name_ = "price"
    assert "fitted to 1 column, target price, " in repr(model)
    assert "log of y" in repr(model)


@pytest.mark.parametrize("attribute", ["center_", "law_", "recalibration_", "support_"])
def test_learned_attributes_print_as_one_line_without_arrays(attribute):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    model = tiny("NKCME", center="mean", recalibrate=True).fit(x, x[:, 0])
    text = str(getattr(model, attribute))
    assert text != "None"
    assert "\n" not in text
    assert "array" not in text
    assert len(text) < 120


def test_an_unfitted_estimator_prints_as_scikit_learn_has_it():
    assert repr(NKCME(random_state=0)) == "NKCME(random_state=0)"
    assert "NKCME(random_state=0)" in repr(Pipeline([("m", NKCME(random_state=0))]))
