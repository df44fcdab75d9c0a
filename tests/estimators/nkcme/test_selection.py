"""Which candidate is kept: by out-of-fold scores, and a simpler one unless clearly worse."""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from nkcme.errors import TrainingError
from nkcme.estimators.nkcme import estimator, selection
from nkcme.estimators.nkcme.boosted_trees import BoostedTrees
from nkcme.estimators.nkcme.candidate import Candidate
from nkcme.estimators.nkcme.ensemble import EnsembleTraining
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.location_fitting import stack_bases
from nkcme.estimators.nkcme.recipe import DEFAULT
from nkcme.estimators.nkcme.selection import best, is_clearly_positive, out_of_fold_scores
from support.nkcme_models import cross_fitted, encoded, line, quick, small
from support.tiny_estimators import small_recipe


def test_the_score_is_the_energy_score_of_atoms_around_the_location():
    """Atoms at m(x) + s(x) zeta_a, in units of standardised y, written out row by row; m and the
    weights are means over two repeats."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) * [1.0, 3.0]
    data, folds = encoded(x, y), Folds.assign(60, 5, 2, seed=0)
    base, predicted = cross_fitted(LinearRegression(), data, folds)
    location = stack_bases(data, folds, {"base00": base}, [predicted], DEFAULT.location)
    location = location._replace(relative_scale=rng.uniform(0.5, 2.0, size=(60, 1)))
    each, zeta = rng.dirichlet(np.ones(4), size=(2, 60)), rng.normal(size=(4, 2))
    fit = SimpleNamespace(
        candidate=Candidate(data, folds, location),
        out_of_fold_weights=each,
        ensemble=SimpleNamespace(atoms=zeta),
    )
    scores = out_of_fold_scores(fit)
    mean, weights = location.model.mean(predicted.mean(axis=0)[None]), each.mean(axis=0)
    for i in (0, 7, 59):
        eta = mean[i] + location.relative_scale[i] * location.unit() * zeta
        to_y = np.linalg.norm(eta - data.y[i], axis=1)
        between = np.linalg.norm(eta[:, None] - eta, axis=-1)
        expected = weights[i] @ to_y - 0.5 * weights[i] @ between @ weights[i]
        np.testing.assert_allclose(scores[i], expected, rtol=1e-5)


def fits_with(monkeypatch, **scores):
    """Fits whose scores are given."""
    data = SimpleNamespace(weight=np.ones(4), groups=None)
    fits = {name: SimpleNamespace(candidate=SimpleNamespace(data=data)) for name in scores}
    by_fit = {id(fits[name]): score for name, score in scores.items()}
    monkeypatch.setattr(selection, "out_of_fold_scores", lambda fit: by_fit[id(fit)])
    return fits


def test_a_simpler_candidate_is_kept_unless_another_is_clearly_better(monkeypatch):
    flat, noise = np.ones(4), np.array([1.0, -1.0, 1.0, -1.0])
    fits = fits_with(monkeypatch, simple=flat, noisy=flat + noise - 0.1, better=flat - 0.5)
    assert best(fits) is fits["better"]
    fits = fits_with(monkeypatch, simple=flat, noisy=flat + noise - 0.1, equal=flat)
    assert best(fits) is fits["simple"]
    fits = fits_with(monkeypatch, only=flat)
    assert best(fits) is fits["only"]


def test_a_gain_is_clear_beyond_its_standard_error():
    gain = np.array([1.0, -1.0, 1.0, -1.0])  # its standard error is 1 / 2
    assert is_clearly_positive(gain + 0.6, np.ones(4))
    assert not is_clearly_positive(gain + 0.4, np.ones(4))
    assert is_clearly_positive(gain, np.array([9.0, 1.0, 9.0, 1.0]))  # a mean of 0.8


def test_a_few_wild_rows_do_not_hide_a_clear_gain():
    """1,000 rows gain 0.1, and one loses 50: the mean is below its plain standard error."""
    gain = np.append(np.full(1000, 0.1) + np.tile([0.2, -0.2], 500), -50.0)
    assert gain.mean() < gain.std() / np.sqrt(len(gain))
    assert is_clearly_positive(gain, np.ones(1001))
    assert not is_clearly_positive(np.append(gain, -80.0), np.ones(1002))  # a mean below zero


@pytest.mark.parametrize("shape", ["line", "two branches"])
def test_the_default_has_a_location_model_where_it_helps(shape):
    """Between two branches the mean is nowhere near y: a location model only adds noise."""
    x, y = line()
    if shape == "two branches":
        rng = np.random.default_rng(7)
        y = np.where(rng.uniform(size=600) < 0.5, -1, 1) * (2 + x[:, 0])
    model = small(center="auto", recalibrate="auto", atoms="quantile").fit(x, y)
    assert (model.center_ is not None) == (shape == "line")
    assert model.recalibration_ is not None


def scored(monkeypatch, score):
    """Replaces the scores by ``score(location)``; gives the list of candidates that were scored."""
    compared = []

    def scores(fit):
        compared.append(fit.candidate)
        return np.full(600, score(fit.candidate.location)) + 0.1 * np.linspace(-1, 1, 600)

    monkeypatch.setattr(selection, "out_of_fold_scores", scores)
    return compared


@pytest.mark.parametrize("gain", [0.5, 0.0, -0.5])
def test_a_location_model_that_explains_little_must_be_clearly_better(gain, monkeypatch):
    """One that explains a third of y is compared with fixed atoms, and kept only if it pays."""
    x, _ = line()
    y = x[:, 0] + 0.8 * np.random.default_rng(10).normal(size=600)
    compared = scored(monkeypatch, lambda location: 1.0 if location is not None else 1.0 + gain)
    model = quick(center="auto").fit(x, y)
    assert {one.location is not None for one in compared} == {False, True}
    assert (model.center_ is not None) == (gain > 0)


@pytest.mark.parametrize("explains", [True, False])
def test_a_candidate_that_diverges_is_left_out(explains, monkeypatch):
    """With a location model that explains nothing too: it is worse than none, not useless."""
    x, y = line(noise=20.0)
    y = y if explains else np.random.default_rng(10).normal(size=600)
    fit = EnsembleTraining.fit

    def diverge(self, candidates, run, *others):
        if candidates[0].location is None:
            raise TrainingError("the loss of replica 3 is nan")
        return fit(self, candidates, run, *others)

    monkeypatch.setattr(EnsembleTraining, "fit", diverge)
    with pytest.warns(UserWarning, match="left out, fixed atoms: the loss of replica 3 is nan"):
        model = quick(center="auto").fit(x, y)
    assert model.center_ is not None
    assert np.isfinite(model.predict(x[:5])).all()


@pytest.mark.parametrize(("share", "is_compared"), [(0.5, False), (0.95, True)])
def test_a_location_model_that_explains_much_is_not_compared(share, is_compared, monkeypatch):
    """It explains four fifths of y here; the recipe says what share is enough."""
    x, _ = line()
    y = x[:, 0] + 0.25 * np.random.default_rng(11).normal(size=600)
    compared = scored(monkeypatch, lambda location: 1.0)
    quick(center="auto", recipe=replace(small_recipe(), surely_explained_small=share)).fit(x, y)
    assert bool(compared) == is_compared


@pytest.mark.parametrize(("scaled", "located"), [(0.5, 1.0), (1.0, 0.5), (1.0, 1.0)])
def test_several_outputs_get_a_scale_where_it_is_clearly_better(scaled, located, monkeypatch):
    x, _ = line()
    y = x[:, :1] + 0.8 * np.random.default_rng(10).normal(size=(600, 2))

    def score(location):
        if location is None:
            return 1.0
        return located if location.model.log_scale is None else scaled

    scored(monkeypatch, score)
    model = quick(center="auto").fit(x, y)
    if scaled == located:
        assert model.center_ is None
    else:
        assert (model.center_.log_scale is not None) == (scaled < located)


@pytest.mark.parametrize("kept", [True, False])
def test_trees_are_read_when_a_fit_is_done_and_only_those_of_a_kept_location_model(
    kept, monkeypatch
):
    read = []
    of_text = BoostedTrees.of_text
    monkeypatch.setattr(BoostedTrees, "of_text", lambda text: read.append(1) or of_text(text))
    monkeypatch.setattr(
        estimator, "select", lambda fits, *_: fits if kept else [without_location(fits[0])]
    )
    model = quick(center="auto", recalibrate=False).fit(*line(200, noise=3.0))
    n_members = model.model_.raw_bandwidth.shape[0]
    assert len(read) == (n_members if kept else 0)
    if kept:
        assert pickle.loads(pickle.dumps(model)).predict([[0.5, 0.0]]) == model.predict([[0.5, 0]])
        assert len(read) == n_members


def without_location(fit):
    return replace(fit, candidate=fit.candidate.at(None))
