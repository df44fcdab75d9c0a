"""The runtime predicts what the full library predicts, to 1e-5 of the scale of y."""

from pathlib import Path

import equinox as eqx
import numpy as np
import pandas as pd
import pytest

import nkcme
from nkcme import NKCME, runtime
from nkcme.errors import ModelFileError
from nkcme.estimators.nkcme.tree_ensemble import TreeEnsemble
from nkcme.runtime.loading import READERS
from support.tiny_estimators import TINY_RECIPE, small_recipe

MODELS = Path(__file__).parents[1] / "data" / "saved_models"
READABLE = sorted(
    path.stem
    for path in MODELS.glob("*.npz")
    if not path.stem.startswith(("card", "spline-flow"))  # of which READERS has none
)
LEVELS = [0.0, 0.001, 0.1, 0.5, 0.9, 0.999]


def assert_same(path, X, rows=None):
    """Both ways to load a model agree in every prediction."""
    full, light = nkcme.load(path), runtime.load(path)
    rows = X if rows is None else rows
    unit = full.scaler_.scale if full.y_ndim_ == 2 else full.scaler_.scale[0]
    wanted, found = full.predict_dist(X), light.predict_dist(rows)
    relative = 1e-6
    if getattr(full, "transform_", "none") == "log":  # 1e-5 of log y are as much of y
        unit, relative = float(np.median(wanted.std())), 1e-5

    def close(a, b, scale=unit):
        np.testing.assert_allclose(
            np.asarray(a) / scale, np.asarray(b) / scale, rtol=relative, atol=1e-5
        )

    close(light.predict(rows), full.predict(X))
    close(light.predict_var(rows), full.predict_var(X), np.square(unit))
    samples = (model.sample(X, 3, random_state=0) for model in (light, full))
    if full.n_outputs_ > 1:
        close(*samples)
        return
    discrete = full.predict_dist(X[:1]).point_masses()[0].size > 0
    quantiles = light.predict_quantiles(rows, LEVELS), full.predict_quantiles(X, LEVELS)
    if discrete:
        # Where the density is low a quantile says little of the probability; and rounding may move
        # a level over a jump.
        shares = [np.stack([wanted.cdf(q) for q in of_model.T]) for of_model in quantiles]
        difference = np.abs(quantiles[0] - quantiles[1]).T
        apart = difference > 1e-5 * unit
        assert np.mean(apart & (np.abs(shares[0] - shares[1]) > 1e-5)) < 0.01
    else:
        close(*quantiles)
        close(*samples)
        close(light.predict_interval(rows, 0.8), full.predict_interval(X, 0.8))
    points = wanted.mean() + 0.3 * wanted.std() + 1e-3 * unit
    close(found.cdf(points), wanted.cdf(points), 1.0)
    close(found.crps(points), wanted.crps(points))


@pytest.mark.parametrize("name", READABLE)
def test_a_model_of_an_earlier_version(name):
    X = pd.read_csv(MODELS / "X.csv")
    assert_same(MODELS / name, X)
    assert_same(MODELS / name, X, X.to_dict("list"))
    assert_same(MODELS / name, X[:1], X[:1].to_dict("records")[0])


def test_every_model_that_it_reads_is_compared():
    assert set(READERS) == {"NKCME", "MDN", "KernelCME", "DeepFeatureCME"}
    assert len(READABLE) == 14


@pytest.mark.parametrize("name", ["card", "spline-flow"])
def test_other_estimators_need_the_full_library(name):
    with pytest.raises(ModelFileError, match=r"needs the full library; load it with nkcme\.load"):
        runtime.load(MODELS / name)


def inputs(n=240):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, 3)), rng


def targets():
    x, rng = inputs()
    noise, signal = rng.normal(size=len(x)), 3 * x[:, 0] + x[:, 1]
    return {
        "continuous": signal + 0.2 * noise,
        "integer": rng.poisson(np.exp(1.0 + x[:, 0])).astype(float),
        "values": np.digitize(signal + noise, [-1.0, 0.5, 2.0]).astype(float),
        "bounds": 1.0 / (1.0 + np.exp(-signal - noise)),
        "reached": np.maximum(signal + 0.5 * noise, 0.0),
        "positive": np.exp(signal + 0.3 * noise),
        "two outputs": np.c_[signal + 0.2 * noise, x[:, 2] + 0.5 * rng.normal(size=len(x))],
    }


SUPPORTS = {
    "integer": {"integer": True, "bounds": (0, None)},
    "values": {"values": (0, 1, 2, 3)},
    "bounds": {"bounds": (0, 1)},
    "reached": {"bounds": (0, None)},
}


@pytest.mark.parametrize(
    ("target", "changes"),
    [
        *((target, {}) for target in targets()),
        *(("continuous", {"center": center}) for center in ("none", "mean", "mean-scale")),
        ("reached", {"center": "none"}),
        ("continuous", nkcme.presets.QUICK),
        *(("positive", {"transform": "log", "center": center}) for center in ("auto", "none")),
        ("positive", {"transform": "log", "bounds": (0, None)}),
        *((y, {"center": "none", "head": "components"}) for y in ("continuous", "reached")),
        ("continuous", {"center": "none", "head": "components", "spectral_norm": (0, -1)}),
        ("continuous", {"center": "none", "head": "signed", "kernel": "cauchy"}),
        ("continuous", {"center": "none", "activation": "gelu", "spectral_norm": (0, -1)}),
        ("continuous", {"center": "none", "activation": "silu", "recalibrate": False}),
    ],
    ids=str,
)
def test_a_model_that_was_just_fitted(target, changes, tmp_path):
    x, _ = inputs()
    settings = {"recipe": TINY_RECIPE, "random_state": 0, "n_atoms": 30, "epochs": 3}
    NKCME(**settings | SUPPORTS.get(target, {}) | changes).fit(x, targets()[target]).save(tmp_path)
    # Rows like those of training, and rows that are new.
    assert_same(tmp_path, np.concatenate([x[:40], 6.0 * x[:40]]))
    assert_same(tmp_path, 3.0 * x[:1])


def test_trees_with_more_leaves_than_a_word_has_bits(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (9000, 2))
    y = np.sin(9 * x[:, 0]) * x[:, 1] + 0.1 * rng.normal(size=len(x))
    recipe = small_recipe(network_steps=4, steps=2, n_trees=2, width=8, n_folds=2, n_repeats=1)
    NKCME(center="mean", recipe=recipe, random_state=0, n_atoms=30, epochs=1).fit(x, y).save(
        tmp_path
    )
    assert_same(tmp_path, x[:300])


def test_extra_trees_are_a_base(tmp_path):
    """With tables of ruled-out leaves, and by descending where tables would be too large."""
    x, rng = inputs(600)
    # Nearly a function of one input, with steps that few boosted trees do not follow.
    y = np.sin(40 * x[:, 0]) + 0.01 * rng.normal(size=len(x))
    model = NKCME(center="mean", recipe=TINY_RECIPE, random_state=0, n_atoms=30, epochs=3)
    model.fit(x, y).save(tmp_path)
    assert sum(isinstance(base, TreeEnsemble) for base in model.center_.bases.values()) == 2
    assert_same(tmp_path, np.concatenate([x[:40], 6.0 * x[:40]]))
    assert_same(tmp_path, x[:1])


def test_components_that_were_chosen_by_their_score_are_read(tmp_path):
    x, _ = inputs()
    settings = {"recipe": TINY_RECIPE, "random_state": 0, "n_atoms": 30, "epochs": 3}
    model = NKCME(center="none", head="components", **settings).fit(x, targets()["continuous"])
    model.set_params(head="simplex").save(tmp_path)
    assert_same(tmp_path, x[:40])


def test_damaged_components_are_refused(tmp_path):
    x, _ = inputs()
    settings = {"recipe": TINY_RECIPE, "random_state": 0, "n_atoms": 30, "epochs": 3}
    model = NKCME(center="none", head="components", **settings).fit(x, targets()["continuous"])
    negative = eqx.tree_at(lambda m: m.components.least_std, model.model_, replace_fn=lambda a: -a)
    model.model_ = negative
    model.save(tmp_path)
    with pytest.raises(ModelFileError, match="no positive standard deviations"):
        runtime.load(tmp_path)


def test_many_rows_on_several_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("nkcme.estimators.predicting_on_cores.available_cores", lambda: 2)
    monkeypatch.setattr("nkcme.estimators.predicting_on_cores.BLOCK_ROWS", 16)
    X = pd.read_csv(MODELS / "X.csv")
    assert_same(MODELS / "nkcme-auto", X)
