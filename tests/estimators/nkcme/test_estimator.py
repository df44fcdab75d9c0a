"""What is special to NKCME; what it shares with other estimators is in the contracts."""

from __future__ import annotations

import inspect
import re
from functools import partial

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from nkcme import NKCME, presets
from nkcme.cli.info import describe_model
from nkcme.errors import NkcmeError
from nkcme.estimators.base import TrainingInterrupted
from nkcme.estimators.nkcme.recipe import DEFAULT
from nkcme.training import chunks
from support.nkcme_models import line, quick, small


def test_a_right_location_model_has_normal_residuals():
    """The residuals of a line are N(0, 0.1^2), whatever x."""
    model = small(center=LinearRegression(), atoms="quantile").fit(*line())
    x = np.array([[-0.9, 0.0], [0.0, 0.5], [0.9, -0.5]])
    dist = model.predict_dist(x)
    np.testing.assert_allclose(dist.mean(), 10 * x[:, 0], atol=0.05)
    np.testing.assert_allclose(dist.std(), 0.1, rtol=0.35)
    y = np.linspace(-1, 1, 4001)
    density = dist[1].pdf(y, grid=True)[0]
    assert np.trapezoid(density, y) == pytest.approx(1.0, abs=2e-3)


def test_a_nearly_determined_y_needs_a_location_model():
    x, y = line(n=200, seed=1)
    fixed, located = (small(center=c, atoms="quantile").fit(*line()) for c in ("none", "mean"))
    blunt, sharp = (model.predict_dist(x).crps(y).mean() for model in (fixed, located))
    assert sharp < 0.5 * blunt
    assert located.center_.scale[0] * np.std(y) < 0.4


def test_predictions_follow_the_units_of_y():
    x, y = line()
    one = quick(center=LinearRegression()).fit(x, y)
    column = quick(center=LinearRegression()).fit(x, 1000 - 7 * y[:, None])
    assert one.predict(x).shape == (600,)
    assert column.predict(x).shape == (600, 1)
    other = quick(center=LinearRegression()).fit(x, 3 + 2 * y)
    np.testing.assert_allclose(other.predict(x), 3 + 2 * one.predict(x), atol=0.01)


def test_the_papers_bandwidth_does_not_vanish_where_values_repeat_on_atoms():
    # y takes two values, both of them atoms: the narrower the kernel, the lower the loss, without
    # end. That is how the paper's recipe ends as NaN on Naval.
    x = np.linspace(-1, 1, 64)[:, None]
    y = np.sign(x[:, 0] + 1e-9)
    model = NKCME(**presets.PAPER_TOY | {"hidden": (16,), "learning_rate": 0.02, "epochs": 3000})
    model.set_params(random_state=1).fit(x, y)
    spacing = 2 / 99
    assert 1 < model.bandwidth_ / (DEFAULT.embedding.least_bandwidth * spacing) < 1.5
    assert np.isfinite(model.history_["loss"]).all()
    away = np.abs(x[:, 0]) > 0.1  # from the jump
    np.testing.assert_allclose(model.predict(x)[away], y[away], atol=0.2)


def test_fits_together_and_alone_agree():
    x, y = line()
    model = quick(center=["network"], n_members=2, recalibrate=True)
    together = model.fit_many([(x, y), (x, np.square(y))], random_states=[3, 4])
    for one, target in zip(together, (y, np.square(y)), strict=True):
        alone = clone(one).fit(x, target)
        np.testing.assert_allclose(
            one.predict_quantiles(x), alone.predict_quantiles(x), atol=0.02 * target.std()
        )


def test_an_interrupted_fit_resumes_in_any_stage(tmp_path):
    """Ctrl-C in every stage of training: the resumed run has the bits of an uninterrupted one."""

    class Pressed(chunks.Interrupts):
        requested = property(lambda self: True, lambda self, value: None)

    make = partial(quick, center=["network"], epochs=30)
    x, y = line()
    whole, messages = make().fit(x, y), []
    make = partial(make, checkpoint=tmp_path / "c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "Interrupts", Pressed)
        while len(messages) < 100:
            try:
                resumed = make().fit(x, y)
                break
            except TrainingInterrupted as stop:
                messages.append(str(stop))
    in_location = [bool(re.search("while the location model", text)) for text in messages]
    assert in_location == [True] + [False] * 2  # networks, then the embedding
    for ours, theirs in zip(*(jax.tree.leaves(m.model_) for m in (resumed, whole)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(resumed.predict(x), whole.predict(x))
    with pytest.raises(NkcmeError, match="another run"):
        make(random_state=1).fit(x, y)


def test_info_describes_the_location_model(tmp_path):
    x, _ = line()
    y = x[:, 0] + 0.5 * np.random.default_rng(12).normal(size=600)
    model = quick(center="mean", n_members=2).fit(x, y)
    model.save(tmp_path / "m")
    described = describe_model(tmp_path / "m")
    number = r"\d\.\d\d"
    stack = f"({number} regressor \\+ ){{1,2}}{number} network"
    assert re.fullmatch(stack, described["center"])
    assert (described["members"], described["recalibrated"]) == (10, False)
    scaled = model.center_._replace(log_scale=model.center_.bases["base00"])
    assert scaled.summary() == f"{described['center']}, with a scale"


def test_the_recipe_must_be_one():
    with pytest.raises(NkcmeError, match=r"recipe must be a nkcme\.Recipe"):
        quick(recipe={"n_folds": 3}).fit(*line())


def test_predict_dist_is_typed_as_an_embedding():
    assert inspect.signature(NKCME.predict_dist).return_annotation == "Embedding"
