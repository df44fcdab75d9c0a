"""A new estimator in one file: the template, filled in, passes the estimators' contract."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import contracts.test_estimators as contract
from nkcme import MDN, NkcmeError, load
from nkcme.cli.app import run
from nkcme.errors import ModelFileError
from nkcme.estimators import ESTIMATORS, register_estimator
from support import tiny_estimators

TEMPLATE = Path(__file__).parents[2] / "docs" / "templates" / "estimator.py"

BLANK = re.compile(r'raise NotImplementedError\("(\w+)"\)')

#: Gaussian regression: a network gives the mean and the log of the standard deviation.
FILLED_IN = {
    "network_width": "return 2 * spec.n_out",
    "row_loss": """mean, log_std = jnp.split(output, 2)
    std = spec.least_std + jnp.exp(log_std)
    return jnp.sum(0.5 * jnp.square((y - mean) / std) + jnp.log(std))""",
    "_from_output": """mean, log_std = np.split(output[:, None], 2, axis=2)
        std = self.least_std + np.exp(log_std)
        return GaussianMixture(np.zeros(mean.shape[:2]), mean, std, **units)""",
}
RENAMED = {
    "MyEstimator": "GaussianRegression",
    "my_parameter": "least_std",
    "= 1.0,": "= 1e-3,",
    "from nkcme.distributions.base import Distribution": (
        "from nkcme.distributions.base import Distribution\n"
        "from nkcme.distributions.gaussian_mixture import GaussianMixture"
    ),
}
NAME = RENAMED["MyEstimator"]


def filled_in() -> str:
    text = TEMPLATE.read_text(encoding="utf-8")
    assert set(BLANK.findall(text)) == set(FILLED_IN)
    for old, new in RENAMED.items():
        assert old in text
        text = text.replace(old, new)
    return BLANK.sub(lambda blank: FILLED_IN[blank[1]], text)


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
    """The registered class of a file that is the template with its blanks filled in."""
    path = tmp_path_factory.mktemp("estimator") / "gaussian_regression.py"
    path.write_text(filled_in(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("gaussian_regression", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "gaussian_regression", module)
        patch.setitem(tiny_estimators.TINY, NAME, {"hidden": (8,), "epochs": 1, "random_state": 0})
        trained = {"epochs": 200, "learning_rate": 0.01, "validation_fraction": 0.0}
        patch.setitem(contract.TRAINED, NAME, trained)
        try:
            spec.loader.exec_module(module)
            yield getattr(module, NAME)
        finally:
            ESTIMATORS.pop(NAME, None)


def checks():
    """The tests of the contract that need an estimator's name and nothing but pytest's fixtures."""
    tests = {name: test for name, test in vars(contract).items() if name.startswith("test_")}
    return [
        pytest.param(test, id=name.removeprefix("test_"))
        for name, test in tests.items()
        if set(inspect.signature(test).parameters) <= {"name", "tmp_path", "monkeypatch"}
    ]


@pytest.mark.parametrize("check", checks())
def test_the_filled_in_template_keeps_the_contract(check, estimator, request):
    fixtures = [name for name in inspect.signature(check).parameters if name != "name"]
    check(NAME, **{name: request.getfixturevalue(name) for name in fixtures})


@pytest.mark.parametrize(("target", "n_outputs"), [("flat", 1), ("both", 2)])
def test_its_predictions_have_the_shape_of_the_target(estimator, target, n_outputs, tmp_path):
    shape = (contract.N,) if n_outputs == 1 else (contract.N, n_outputs)
    contract.test_predictions_have_the_shape_of_the_target(NAME, target, shape, n_outputs)
    contract.test_a_saved_model_predicts_the_same(NAME, target, tmp_path)


def test_it_learns_a_gaussian(estimator):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(2000, 1))
    y = 3 + 2 * x[:, 0] + (0.6 + 0.4 * x[:, 0]) * rng.normal(size=2000)
    model = estimator(hidden=(16,), epochs=60, learning_rate=1e-2, random_state=0).fit(x, y)
    new = np.linspace(-0.8, 0.8, 5)[:, None]
    dist = model.predict_dist(new)
    np.testing.assert_allclose(dist.mean(), 3 + 2 * new[:, 0], atol=0.15)
    np.testing.assert_allclose(dist.std(), 0.6 + 0.4 * new[:, 0], rtol=0.2)


def test_the_command_line_knows_it(estimator, tmp_path):
    rng = np.random.default_rng(0)
    table = np.c_[rng.normal(size=(60, 2)), rng.normal(size=60)]
    path, out = tmp_path / "table.csv", tmp_path / "model"
    np.savetxt(path, table, delimiter=",", header="a,b,y", comments="")
    arguments = ["fit", str(path), "--target", "y", "--out", str(out)]
    assert run([*arguments, "--estimator", NAME, "--epochs", "2"]) == 0
    assert isinstance(load(out), estimator)


def test_without_its_class_a_file_is_an_error(estimator, tmp_path, monkeypatch):
    contract.fitted(NAME).save(tmp_path / "model")
    monkeypatch.delitem(ESTIMATORS, NAME)
    with pytest.raises(ModelFileError, match=NAME):
        load(tmp_path / "model")


@pytest.mark.parametrize("given", [dict, MDN(), "MDN"])
def test_only_classes_of_conditional_estimators_are_registered(given):
    with pytest.raises(NkcmeError, match="only a subclass of ConditionalEstimator"):
        register_estimator(given)


def test_a_name_that_is_taken_is_an_error():
    with pytest.raises(NkcmeError, match="'MDN' is registered already"):
        register_estimator(type("MDN", (MDN,), {}))
    assert ESTIMATORS["MDN"] is MDN
