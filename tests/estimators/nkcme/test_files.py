"""Model files of NKCME: they keep everything, old versions load, damage is refused."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

import nkcme
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.model_files import read_model, write_model
from support.nkcme_models import line, quick


@pytest.fixture(scope="module")
def located():
    return quick(center="mean", recalibrate=True).fit(*line())


@pytest.mark.parametrize(
    "parameters", [{"center": "mean-scale", "n_members": 2}, {"center": "auto"}]
)
def test_a_saved_model_predicts_the_same(parameters, tmp_path):
    x, y = line()
    model = quick(recalibrate=True, atoms="quantile", **parameters).fit(x, y)
    model.save(tmp_path / "m")
    again = nkcme.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_quantiles(x), model.predict_quantiles(x))
    assert again.get_params() == model.get_params()  # the recipe included


def test_a_model_with_a_spectral_first_layer_loads(tmp_path):
    x, y = line()
    model = quick(spectral_norm=(0,)).fit(x, y)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(nkcme.load(tmp_path / "m").predict(x), model.predict(x))


def test_a_model_with_the_users_regressor_is_not_saved(tmp_path):
    model = quick(center=KNeighborsRegressor()).fit(*line())
    with pytest.raises(NkcmeError, match="cannot be saved"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_files_of_the_first_version_load(tmp_path):
    """They had one member, without an axis for it, and none of the later parameters."""
    x, y = line()
    model = quick().fit(x, y)
    model.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    arrays = {k: v[0] if k.startswith("model") else v for k, v in arrays.items()}
    del config["learned"]["n_members"]
    del config["learned"]["law"]
    later = ("center", "n_members", "recalibrate", "atoms", "recipe")
    for name in (*later, "support", "bounds", "integer", "values"):
        del config["parameters"][name]
    write_model(tmp_path / "m", config, arrays)
    again = nkcme.load(tmp_path / "m")
    np.testing.assert_allclose(again.predict(x), model.predict(x), rtol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a | {"solution/center/scale": -a["solution/center/scale"]},
        lambda a: a | {"solution/center/weights": a["solution/center/weights"][:1]},
        lambda a: a | {"solution/recalibration": a["solution/recalibration"][::-1].copy()},
        lambda a: a | {"solution/average_weights": -a["solution/average_weights"]},
        lambda a: {k: v for k, v in a.items() if "/network/" not in k},
        lambda a: {k: v for k, v in a.items() if "/base00/" not in k},
        lambda a: {k: v for k, v in a.items() if "/base00/0/" not in k},
        lambda a: {k: v for k, v in a.items() if "/network/" not in k or "bias" not in k},
        lambda a: {k: v for k, v in a.items() if "/center/" not in k},
        lambda a: a | {"solution/center/base9/x": np.zeros(1)},
    ],
)
def test_damaged_files_are_refused(change, located, tmp_path):
    located.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    write_model(tmp_path / "m", config, change(arrays))
    with pytest.raises(ModelFileError):
        nkcme.load(tmp_path / "m")


def test_a_damaged_recipe_is_refused(located, tmp_path):
    located.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    config["parameters"]["recipe"]["n_folds"] = "five"
    write_model(tmp_path / "m", config, arrays)
    with pytest.raises(ModelFileError, match="n_folds"):
        nkcme.load(tmp_path / "m")
