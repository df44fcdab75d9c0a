"""A saved model before it is an estimator: the same facts, and the same refusals."""

from pathlib import Path

import numpy as np
import pytest

import nkcme
from nkcme.errors import ModelFileError
from nkcme.estimators.saved_model import SavedModel
from nkcme.estimators.saving import describe
from nkcme.model_files import read_model, write_model
from support.tiny_estimators import every_estimator, tiny

EARLIER = Path(__file__).parents[1] / "data" / "saved_models"


def table(n=40):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return x, x[:, 0] + rng.normal(size=n)


@every_estimator
def test_the_file_describes_the_model_as_its_estimator_does(name, tmp_path):
    model = tiny(name).fit(*table())
    model.save(tmp_path / "m")
    saved = SavedModel.read(tmp_path / "m")
    assert saved.description == describe(model) == describe(nkcme.load(tmp_path / "m"))
    parameters = nkcme.load(tmp_path / "m").get_params(deep=False)
    if isinstance(parameters.get("recipe"), nkcme.Recipe):
        parameters["recipe"] = read_model(tmp_path / "m")[0]["parameters"]["recipe"]
    assert saved.parameters == parameters
    assert (saved.n_outputs, saved.target_name) == (1, None)
    assert saved.encoder.to_config() == model.encoder_.to_config()


def test_the_estimator_describes_a_file_of_an_earlier_version():
    saved = SavedModel.read(EARLIER / "nkcme-mean")
    assert "description" not in saved.config
    assert saved.description == describe(saved.estimator())
    assert "regressor" in saved.description["center"]


@pytest.mark.parametrize(
    ("changes", "read", "why"),
    [
        ({"estimator": "Oracle"}, lambda saved: saved, "expected a model of NKCME, KernelCME"),
        ({"encoder": []}, lambda saved: saved.encoder, "table encoder"),
        ({"scaler": None}, lambda saved: saved.n_outputs, "target scaler"),
        ({"target_name": 3}, lambda saved: saved.target_name, "name of the target"),
        ({"parameters": [1]}, lambda saved: saved.parameters, "not those of KernelCME"),
        ({"description": ["a"]}, lambda saved: saved.description, "description"),
        ({"description": {"atoms": [1]}}, lambda saved: saved.description, "description"),
        ({"learned": None}, lambda saved: saved.estimator(), "learned state"),
    ],
)
def test_a_forged_file_is_refused_in_one_line_with_its_path(changes, read, why, tmp_path):
    tiny("KernelCME").fit(*table()).save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    write_model(tmp_path / "m", config | changes, arrays)
    with pytest.raises(ModelFileError, match=why) as caught:
        read(SavedModel.read(tmp_path / "m"))
    assert str(caught.value).startswith(f"{tmp_path / 'm'}: ")
    assert "\n" not in str(caught.value)
