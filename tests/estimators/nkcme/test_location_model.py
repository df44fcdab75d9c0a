"""Centred embeddings, ensembles and recalibration: what theory says of them, and their files."""

import re
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import jax
import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

import nkcme
from nkcme import NKCME, presets
from nkcme.atoms import Atoms, closed_range
from nkcme.cli.info import describe_model
from nkcme.errors import ModelFileError, NkcmeError, TrainingError
from nkcme.estimators.base import Encoded, TrainingInterrupted
from nkcme.estimators.nkcme import estimator as neural
from nkcme.estimators.nkcme import location_fitting as center_fitting
from nkcme.estimators.nkcme import location_regressors as center_regressors
from nkcme.estimators.nkcme import selection as learning_task
from nkcme.estimators.nkcme.folds import Parts
from nkcme.estimators.nkcme.location_fitting import stacked
from nkcme.estimators.nkcme.location_model import Center
from nkcme.estimators.nkcme.location_networks import early_networks, late_networks
from nkcme.estimators.nkcme.location_regressors import default_boosting
from nkcme.estimators.nkcme.selection import is_clear, preferred
from nkcme.model_files import read_model, write_model
from nkcme.training import loop as training

RNG = np.random.default_rng(0)
SMALL = presets.QUICK | {
    "hidden": (16,),
    "n_atoms": 40,
    "epochs": 150,
    "random_state": 0,
    "batch_size": 64,
}
QUICK = SMALL | {"epochs": 2}


def small(**changes):
    return NKCME(**SMALL | changes)


def quick(**changes):
    return NKCME(**QUICK | changes)


def encoded(x, y, weight=None):
    x, y = np.asarray(x, np.float32), np.asarray(y, np.float32).reshape(len(x), -1)
    weight = np.ones(len(x)) if weight is None else weight
    return Encoded(x, y, weight, None, None, len(x), 0)


def cross_fitted(regressor, data, parts):
    return center_regressors.Fitting([regressor], [data], [parts]).collect()[0][0]


@pytest.fixture(scope="module")
def line():
    """y = 10 x_0 + N(0, 0.1^2): nearly certain given x, in units of its spread."""
    x = RNG.uniform(-1, 1, size=(600, 2))
    return x, 10 * x[:, 0] + 0.1 * RNG.normal(size=600)


# --- the centre alone -----------------------------------------------------------------------------


def test_a_centre_of_noise_is_next_to_nothing():
    """Who sees its own rows would explain them; out of part there is nothing to explain."""
    x, y = RNG.normal(size=(300, 5)), RNG.normal(size=300)
    data, parts = encoded(x, y), Parts.deal(300, 5, 1, seed=0)
    boosting = HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=2)
    assert np.std(y - boosting.fit(x, y).predict(x)) < 0.5 * np.std(y)
    base, said = cross_fitted(boosting, data, parts)
    fit = stacked(data, parts, {"base00": base}, [said])
    assert fit.center.weights[0, 0] < 0.3
    assert fit.center.scale[0] > 0.95 * np.std(y)


def test_what_is_said_out_of_part_is_what_a_stranger_says():
    x, y = RNG.normal(size=(60, 2)), RNG.normal(size=60)
    data, parts = encoded(x, y), Parts.deal(60, 5, 2, seed=0)
    base, said = cross_fitted(LinearRegression(), data, parts)
    for member in range(10):
        rows, held = parts.rows_of(member), parts.left_out_by(member)
        stranger = LinearRegression().fit(data.x[rows], data.y[rows, 0])
        np.testing.assert_allclose(
            said[member // 5, held, 0], stranger.predict(data.x[held]), rtol=1e-4
        )
    all_say = [one.predict(data.x) for of_part in base.models for one in of_part]
    np.testing.assert_allclose(base.members(data.x)[..., 0], all_say, rtol=1e-6)


def test_fits_in_other_processes_are_the_same(monkeypatch):
    x, y = RNG.normal(size=(60, 2)), RNG.normal(size=60)
    data, parts = encoded(x, y), Parts.deal(60, 2, 1, seed=0)
    boosting = HistGradientBoostingRegressor(max_iter=5, max_features=0.5)
    base, said = cross_fitted(boosting, data, parts)
    monkeypatch.setattr(center_regressors, "_WORTH_PROCESSES", 1)
    monkeypatch.setattr(center_regressors.os, "cpu_count", lambda: 4)
    elsewhere, also_said = cross_fitted(boosting, data, parts)
    np.testing.assert_array_equal(also_said, said)
    np.testing.assert_array_equal(elsewhere.members(data.x), base.members(data.x))


@pytest.mark.parametrize("cores", [1, 4])
def test_fits_that_nobody_wants_any_more_are_not_begun(cores, monkeypatch):
    begun = []

    class Counted(LinearRegression):
        def fit(self, x, y):
            begun.append(1)
            return super().fit(x, y)

    monkeypatch.setattr(center_regressors, "_WORTH_PROCESSES", 1)
    monkeypatch.setattr(center_regressors.os, "cpu_count", lambda: cores)
    data, parts = encoded(RNG.normal(size=(60, 2)), RNG.normal(size=60)), Parts.deal(60, 30, 1, 0)
    with parallel_backend("threading"):
        fitting = center_regressors.Fitting([Counted()], [data], [parts])
        fitting.abandon()
    assert len(begun) <= max(2 * (cores - 2), 0)  # of thirty, what was handed out at once


def test_a_centre_that_fails_leaves_no_fits_behind(line, monkeypatch):
    def diverges(*_, **__):
        raise TrainingError("the loss is nan")

    abandoned = []
    monkeypatch.setattr(center_fitting, "fit_networks", diverges)
    monkeypatch.setattr(center_fitting.Fitting, "abandon", lambda self: abandoned.append(self))
    with pytest.raises(TrainingError):
        quick(center="mean").fit(*line)
    assert len(abandoned) == 1


@pytest.mark.parametrize(
    ("enough", "share", "n_averaged"), [(20_001, 0.1, 10), (20_000, 0.1, 2), (20_000, 0.9, 10)]
)
def test_a_centre_is_as_sharp_as_all_its_members_will_be(enough, share, n_averaged, monkeypatch):
    """Members that err each for itself: the mean of two deals has v / 2, that of all ten v / 10,
    and the scale of new rows is that of all, or is made so row by row where there are enough of
    them and the members' own part is large."""
    monkeypatch.setattr(center_fitting, "ROWS_TO_TELL_SPREAD", enough)
    monkeypatch.setattr(center_fitting, "OWN_SHARE", share)
    truth = RNG.normal(size=20_000)
    data = encoded(RNG.normal(size=(20_000, 1)), truth + 0.5 * RNG.normal(size=20_000))
    parts = Parts.deal(20_000, 5, 2, seed=0)
    said = truth[:, None] + RNG.normal(size=(2, 20_000, 1))
    fit = stacked(data, parts, {"base00": None}, [said])
    w = fit.center.weights[0, 0]
    error = lambda k: np.sqrt(0.25 + (1 - w) ** 2 + w**2 / k)  # noqa: E731
    assert fit.center.n_averaged == n_averaged
    assert fit.center.scale[0] == pytest.approx(error(n_averaged), rel=0.02)
    assert fit.unit()[0] == pytest.approx(error(2), rel=0.02)
    assert np.std(fit.residuals(data.y)) == pytest.approx(1.0, rel=0.02)


def test_where_members_differ_the_mean_of_all_is_known_to_err_less():
    """Of a squared error s^2 by one member a deal v / 2 is the members' own, and of it v / 10 is
    left when all ten speak; it cannot be more than all of s^2."""
    own = np.array([0.0, 0.1, 1.0, 100.0])
    apart = np.tile([-1.0, 1.0], 5)[:, None, None] * np.sqrt(0.9)  # of variance one
    base = Told(7.0 + apart * np.sqrt(own)[:, None])
    variance = np.full((4, 1), 0.5)
    placed = Center({"base00": base}, np.ones((1, 1)), np.array([2.0]), 2, None).at(
        np.zeros((4, 3))
    )
    np.testing.assert_allclose(placed.mean, 7.0)
    left = np.square(placed.narrowed(variance)) * variance
    np.testing.assert_allclose(left[:, 0], [2.0, 2.0 - 0.04, 2.0 - 0.4, 2.0 * 2 / 10])


class Told(NamedTuple):
    """A base that says what it was told to, whatever it is asked."""

    said: np.ndarray

    def members(self, _):
        return self.said


def test_whole_weights_are_repetitions_to_a_regressor():
    x, y = RNG.normal(size=(40, 2)), RNG.normal(size=40)
    weight = np.where(np.arange(40) < 10, 5.0, 1.0)
    parts = Parts.deal(40, 5, 1, seed=0)
    _, weighted = cross_fitted(LinearRegression(), encoded(x, y, weight), parts)
    _, plain = cross_fitted(LinearRegression(), encoded(x, y), parts)
    assert np.abs(weighted - plain).max() > 1e-3
    with pytest.raises(NkcmeError, match="KNeighborsRegressor as a centre does not take"):
        cross_fitted(KNeighborsRegressor(), encoded(x, y, weight), parts)


@pytest.mark.parametrize("n_rows", [20, 300, 1000, 10_000, 500_000])
def test_recipes_follow_the_number_of_rows(n_rows):
    early, late = early_networks(n_rows), late_networks(n_rows)
    assert 600 <= early.descent.n_steps <= 6000
    assert early.descent.n_steps < late.descent.n_steps <= 20_000
    assert max(early.batch_size, late.batch_size) <= max(n_rows // 4, 1)
    more = late_networks(2 * n_rows)
    assert more.descent.n_steps >= late.descent.n_steps
    assert default_boosting(n_rows).max_leaf_nodes <= default_boosting(2 * n_rows).max_leaf_nodes


# --- the estimator --------------------------------------------------------------------------------


def test_a_linear_centre_on_a_line_gives_the_normal_that_is_there(line):
    """The residual of a right centre is N(0, 0.1^2) whatever x."""
    model = small(center=LinearRegression(), atoms="quantile").fit(*line)
    x = np.array([[-0.9, 0.0], [0.0, 0.5], [0.9, -0.5]])
    dist = model.predict_dist(x)
    np.testing.assert_allclose(dist.mean(), 10 * x[:, 0], atol=0.05)
    np.testing.assert_allclose(dist.std(), 0.1, rtol=0.35)
    assert model.center_.at(model._encode(x)).mean.shape == (3, 1)
    y = np.linspace(-1, 1, 4001)
    density = dist[1].pdf(y, grid=True)[0]
    assert np.trapezoid(density, y) == pytest.approx(1.0, abs=2e-3)


def test_what_is_nearly_certain_needs_a_centre(line):
    fixed, moving = (small(center=c, atoms="quantile") for c in ("none", "mean"))
    x = RNG.uniform(-1, 1, size=(200, 2))
    y = 10 * x[:, 0] + 0.1 * RNG.normal(size=200)
    blunt, sharp = (m.fit(*line).predict_dist(x).crps(y).mean() for m in (fixed, moving))
    assert sharp < 0.5 * blunt
    assert moving.center_.scale[0] * np.std(line[1]) < 0.4


@pytest.mark.parametrize(("noise", "bases"), [(0.01, 2), (0.5, 3)])
def test_networks_that_leave_nothing_need_no_trees(noise, bases, line, monkeypatch):
    """A straight line is a network's; trees would be steps beside it."""
    monkeypatch.setattr(center_fitting, "_ALL_BUT", 0.1)
    x, _ = line
    y = x[:, 0] + noise * np.random.default_rng(12).normal(size=600)
    model = quick(center="mean").fit(x, y)
    assert len(model.center_.bases) == bases


def test_a_centre_moves_with_the_units_of_y(line):
    x, y = line
    one = quick(center=LinearRegression()).fit(x, y)
    other = quick(center=LinearRegression()).fit(x, 1000 - 7 * y[:, None])
    assert one.predict(x).shape == (600,)
    assert other.predict(x).shape == (600, 1)
    same = quick(center=LinearRegression()).fit(x, 3 + 2 * y)
    np.testing.assert_allclose(same.predict(x), 3 + 2 * one.predict(x), atol=0.01)


def test_several_outputs_have_centres_of_their_own(line):
    x, y = line
    pair = np.stack([y, -x[:, 1]], axis=1)
    model = quick(center=[LinearRegression(), "network"]).fit(x, pair)
    assert model.center_.weights.shape == (3, 2)  # two kinds of networks
    np.testing.assert_allclose(model.predict(x), pair, atol=1.5)


def test_a_centre_that_knows_its_rows_by_heart_fools_nobody(line):
    """The nearest neighbour of a row in its own table is itself, and leaves nothing; but residuals
    are those of strangers, and so intervals hold rows that are new."""
    x = np.random.default_rng(2).uniform(-1, 1, size=(600, 2))
    y = 10 * x[:, 0] + np.random.default_rng(3).normal(size=600)
    new = np.random.default_rng(4).uniform(-1, 1, size=(500, 2))
    truth = 10 * new[:, 0] + np.random.default_rng(5).normal(size=500)
    model = small(center=KNeighborsRegressor(1), n_members=2, recalibrate=True).fit(x, y)
    low, high = model.predict_interval(new, coverage=0.9).T
    assert 0.82 < np.mean((low <= truth) & (truth <= high)) < 0.96


def test_a_scale_that_depends_on_x_is_found():
    """y = N(0, s(x)^2) with s from 0.1 to 3: log s by boosting is near it, up to a constant that
    the units take up."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, size=(2000, 1))
    s = np.exp(1.7 * x[:, 0])
    model = small(center="mean-scale", epochs=20).fit(x, s * rng.normal(size=2000))
    at = np.array([[-0.9], [0.0], [0.9]])
    placed = model.center_.at(model._encode(at))
    ratio = placed.scale[:, 0] / placed.scale[1, 0]
    np.testing.assert_allclose(ratio, np.exp(1.7 * at[:, 0]), rtol=0.35)
    np.testing.assert_allclose(
        model.predict_dist(at).std() / np.exp(1.7 * at[:, 0]), 1.0, rtol=0.35
    )


def test_several_outputs_have_one_scale():
    """(y1, y2) = s(x) (cos t, 0.2 sin t), t uniform: at any x the length of y is known far better
    than either of its outputs, whose unlike units the scale leaves alone."""
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, size=(1000, 1))
    t = rng.uniform(0, 2 * np.pi, 1000)
    y = np.exp(x) * np.stack([np.cos(t), 0.2 * np.sin(t)], axis=1)
    model = small(center="mean-scale", epochs=20).fit(x, y)
    at = np.linspace(-0.9, 0.9, 19)[:, None]
    scale = model.center_.at(model._encode(at)).scale
    np.testing.assert_allclose(scale / scale[9], np.exp(at) * np.ones(2), rtol=0.15)


@pytest.mark.parametrize(("scaled", "centred"), [(0.5, 1.0), (1.0, 0.5), (1.0, 1.0)])
def test_several_outputs_have_the_scale_that_is_clearly_better(scaled, centred, line, monkeypatch):
    """No centre has a score of one; what is not better than something simpler is left alone."""
    x, _ = line
    y = x[:, :1] + 0.8 * np.random.default_rng(10).normal(size=(600, 2))

    def energy(model, task):
        if task.center is None:
            return np.ones(600)
        return np.full(600, centred if task.center.center.log_scale is None else scaled)

    monkeypatch.setattr(neural, "energy_out_of_part", energy)
    model = quick(center="auto").fit(x, y)
    if scaled == centred:
        assert model.center_ is None
    else:
        assert (model.center_.log_scale is not None) == (scaled < centred)


def test_the_score_out_of_part_is_that_of_atoms_where_they_lie(monkeypatch):
    """Atoms at m(x) + s(x) zeta_a, in units of standardised y, written out row by row: m by the
    mean of two deals, and the weights too."""
    x, y = RNG.normal(size=(60, 2)), RNG.normal(size=(60, 2)) * [1.0, 3.0]
    data, parts = encoded(x, y), Parts.deal(60, 5, 2, seed=0)
    base, said = cross_fitted(LinearRegression(), data, parts)
    fit = stacked(data, parts, {"base00": base}, [said])
    fit = fit._replace(relative=RNG.uniform(0.5, 2.0, size=(60, 1)))
    of_deal, zeta = RNG.dirichlet(np.ones(4), size=(2, 60)), RNG.normal(size=(4, 2))
    weights = of_deal.mean(axis=0)
    monkeypatch.setattr(
        learning_task, "weights_out_of_part", lambda model, x, parts, deal: of_deal[deal]
    )
    model = SimpleNamespace(atoms=SimpleNamespace(locations=zeta[None]))
    task = learning_task.LearningTask(data, parts, fit)
    ours = learning_task.energy_out_of_part(model, task)
    mean = fit.center.mean(said.mean(axis=0)[None])
    for i in (0, 7, 59):
        eta = mean[i] + fit.relative[i] * fit.unit() * zeta
        to_y = np.linalg.norm(eta - data.y[i], axis=1)
        between = np.linalg.norm(eta[:, None] - eta, axis=-1)
        expected = weights[i] @ to_y - 0.5 * weights[i] @ between @ weights[i]
        np.testing.assert_allclose(ours[i], expected, rtol=1e-5)


@pytest.mark.parametrize("outcome", ["line", "two branches"])
def test_the_default_has_a_centre_where_it_helps(outcome, line):
    """Of two branches the mean is nowhere near y: a centre only adds the noise of its estimate."""
    x, y = line
    if outcome == "two branches":
        rng = np.random.default_rng(7)
        y = np.where(rng.uniform(size=600) < 0.5, -1, 1) * (2 + x[:, 0])
    model = small(center="auto", recalibrate="auto", atoms="quantile").fit(x, y)
    assert (model.center_ is not None) == (outcome == "line")
    assert model.recalibration_ is not None


@pytest.mark.parametrize("gain", [0.5, 0.0, -0.5])
def test_a_centre_that_explains_little_must_be_clearly_better(gain, line, monkeypatch):
    """A mean that explains a third of y is tried against none, and kept only if that pays."""
    x, _ = line
    rng = np.random.default_rng(10)
    y = x[:, 0] + 0.8 * rng.normal(size=600)
    asked = []

    def energy(model, task):
        asked.append(task.center is not None)
        return np.full(600, 1.0 if task.center is not None else 1.0 + gain) + 0.1 * x[:, 1]

    monkeypatch.setattr(neural, "energy_out_of_part", energy)
    model = quick(center="auto").fit(x, y)
    assert sorted(asked) == [False, True]
    assert (model.center_ is not None) == (gain > 0)


@pytest.mark.parametrize(("bound", "compared"), [(None, False), (0.95, True)])
def test_with_few_rows_a_centre_that_explains_much_is_not_compared(
    bound, compared, line, monkeypatch
):
    """It explains some four fifths of y in 600 rows; of a long table that would not be enough."""
    x, _ = line
    y = x[:, 0] + 0.25 * np.random.default_rng(11).normal(size=600)
    assert neural.beyond_doubt(5000) == 0.95
    if bound is not None:
        monkeypatch.setattr(neural, "beyond_doubt", lambda n_rows: bound)
    asked = []
    monkeypatch.setattr(
        neural, "energy_out_of_part", lambda *_: (asked.append(1), np.zeros(600))[1]
    )
    quick(center="auto").fit(x, y)
    assert bool(asked) == compared


def test_the_simplest_is_left_only_for_what_is_clearly_better():
    flat, noise = np.ones(4), np.array([1.0, -1.0, 1.0, -1.0])
    scores = {"simple": flat, "no better": flat + noise - 0.1, "better": flat - 0.5}
    assert preferred(scores, flat) == "better"
    assert preferred(scores | {"better": flat}, flat) == "simple"
    assert preferred({"only": flat}, flat) == "only"


def test_a_gain_is_clear_beyond_its_standard_error():
    gain = np.array([1.0, -1.0, 1.0, -1.0])  # its standard error is 1 / 2
    assert is_clear(gain + 0.6, np.ones(4))
    assert not is_clear(gain + 0.4, np.ones(4))
    assert is_clear(gain, np.array([9.0, 1.0, 9.0, 1.0]))  # 0.8, of which one row in ten is against


@pytest.mark.parametrize("n", [2, 19, 20])
def test_few_rows_are_not_dealt(n):
    x, y = RNG.normal(size=(n, 1)), RNG.normal(size=n)
    model = quick(center="auto", recalibrate="auto", n_members=None, epochs=1).fit(x, y)
    assert (model.recalibration_ is not None) == (n == 20)
    assert np.isfinite(model.predict(x)).all()
    if n < 20:
        with pytest.raises(NkcmeError, match=f"at least 20 different rows .* got {n}"):
            quick(center="mean").fit(x, y)


def test_members_are_averaged_in_the_hilbert_space(line):
    x, y = line
    model = quick(n_members=3).fit(x, y)
    assert len(model.model_.raw_bandwidth) == 3
    alone = quick().fit(x, y)
    first = jax.tree.map(lambda leaf: leaf[:1], model.model_)
    for ours, theirs in zip(jax.tree.leaves(first), jax.tree.leaves(alone.model_), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    members = []
    for j in range(3):
        one = clone(alone)
        one.__dict__ |= alone.__dict__ | {
            "model_": jax.tree.map(lambda leaf, j=j: leaf[j : j + 1], model.model_)
        }
        members.append(one.predict_dist(x).weights)
    np.testing.assert_allclose(model.predict_dist(x).weights, np.mean(members, axis=0), atol=1e-6)
    assert np.abs(members[0] - members[1]).max() > 1e-4


def test_recalibration_puts_a_wrong_spread_right():
    """A network that was hardly trained predicts next to the whole range for every x; mapped, its
    intervals hold what they should of rows it has never seen."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8000, 1))
    y = rng.standard_t(3, size=8000)
    train, test = slice(0, 6000), slice(6000, None)
    raw, mapped = (
        quick(recalibrate=r, epochs=1, learning_rate=1e-3).fit(x[train], y[train])
        for r in (False, True)
    )
    pits = [m.predict_dist(x[test]).cdf(y[test]) for m in (raw, mapped)]
    off = [np.abs(np.mean(pit[:, None] < np.linspace(0.1, 0.9, 9), axis=0)
                  - np.linspace(0.1, 0.9, 9)).max() for pit in pits]  # fmt: skip
    assert off[0] > 0.1
    assert off[1] < 0.05  # four deviations of a share of 2,000 rows
    assert raw.recalibration_ is None
    quantiles = mapped.predict_quantiles(x[test], np.linspace(0, 1, 50))
    assert np.all(np.diff(quantiles, axis=1) >= 0)


def test_quantile_atoms_are_dense_where_y_is_and_reach_beyond_it():
    y = np.concatenate([RNG.normal(size=2000), [30.0]])
    model = quick(atoms="quantile").fit(RNG.normal(size=(2001, 1)), y)
    z = (y - y.mean()) / y.std()
    atoms = np.asarray(model.model_.atoms.locations)[0, :, 0]
    assert np.all(np.diff(atoms) > 0)
    assert atoms[0] < z.min() < z.max() < atoms[-1]
    assert np.mean(atoms < 3 / y.std()) > 0.5  # an even grid would have a fifth of them there


@pytest.mark.parametrize(("furthest", "even"), [(3.0, True), (300.0, False)])
def test_atoms_are_even_unless_a_long_tail_would_make_them_coarse(furthest, even):
    y = np.append(RNG.normal(size=1000), furthest)
    model = quick(atoms="auto").fit(RNG.normal(size=(1001, 1)), y)
    gaps = np.diff(np.asarray(model.model_.atoms.locations[0])[:, 0])
    assert (np.ptp(gaps) < 1e-4) == even


def test_learned_atoms_gather_but_leave_no_gaps(tmp_path):
    """y is one of two values at each x. Left alone atoms would all go there; half of them stay
    even over the range of y and a twentieth of it more at either end."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(400, 1))
    y = np.sign(rng.normal(size=400)) + 0.05 * rng.normal(size=400)
    model = small(atoms="learned", n_members=2, n_atoms=40, epochs=300).fit(x, y)
    learned = np.asarray(model.model_.atoms.locations[0])[:, 0]
    z = (y - model.scaler_.location) / model.scaler_.scale
    assert learned[0] < z.min()
    assert learned[-1] > z.max()
    gaps = np.diff(learned)
    assert np.all(gaps > 0)
    even = 2 * (learned[-1] - learned[0]) / 39
    assert 0.9 * even < gaps.max() < 1.01 * even
    # They did move: unmoved ones would be where those of the quantiles are, spread once more.
    start = np.asarray(Atoms.at_quantiles(z, np.ones(400), 40).locations)[:, 0]
    points = np.append(start, closed_range(z))
    unmoved = np.asarray(Atoms.at_quantiles(points, np.ones(42), 40).locations)[:, 0]
    assert np.abs(learned - unmoved).max() > 0.05
    np.testing.assert_array_equal(*model.model_.atoms.locations)  # members share them
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(nkcme.load(tmp_path / "m").predict(x), model.predict(x))


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"center": ["tree"]}, "'tree'"),
        ({"recalibrate": True, "head": "signed"}, "weights that are probabilities"),
        ({"recalibrate": True, "reading": "smoothed"}, "the atomic reading"),
    ],
)
def test_what_cannot_be_is_refused(parameters, told, line):
    with pytest.raises(NkcmeError, match=told):
        quick(**parameters).fit(*line)


@pytest.mark.parametrize("yes", [True, np.True_])
def test_recalibration_is_for_one_output(yes, line):
    x, y = line
    with pytest.raises(NkcmeError, match="one output"):
        quick(recalibrate=yes).fit(x, np.stack([y, y], axis=1))


def test_many_fits_at_once_and_alone_agree(line):
    x, y = line
    model = quick(center=["network"], n_members=2, recalibrate=True)
    together = model.fit_many([(x, y), (x, np.square(y))], random_states=[3, 4])
    for one, target in zip(together, (y, np.square(y)), strict=True):
        alone = clone(one).fit(x, target)
        np.testing.assert_allclose(
            one.predict_quantiles(x), alone.predict_quantiles(x), atol=0.02 * target.std()
        )


@pytest.mark.parametrize("center", ["none", LinearRegression()])
def test_what_y_leaves_open_and_what_the_model_does_are_apart(center):
    """Noise of 0.1 on the left and 1 on the right, and nothing to be seen beyond 1."""
    rng = np.random.default_rng(8)
    x = rng.uniform(-1, 1, size=(600, 1))
    y = np.where(x[:, 0] < 0, 0.1, 1.0) * rng.normal(size=600)
    model = small(center=center, n_members=2 if center != "none" else 6).fit(x, y)
    left, right, far = (model.predict_uncertainty([[v]]) for v in (-0.5, 0.5, 8.0))
    assert right.aleatoric[0] == pytest.approx(1.0, rel=0.3)
    assert left.aleatoric[0] < 0.5 * right.aleatoric[0]
    assert far.epistemic[0] > 1.5 * max(left.epistemic[0], right.epistemic[0])
    many = model.predict_uncertainty(x)
    assert many.aleatoric.shape == many.epistemic.shape == (600,)
    alone = small(epochs=2).fit(x, y).predict_uncertainty(x)
    np.testing.assert_array_equal(alone.epistemic, 0.0)


def test_uncertainty_is_in_units_of_y(line):
    x, y = line
    one, other = (quick(n_members=2).fit(x, unit * y) for unit in (1.0, 100.0))
    ours, theirs = one.predict_uncertainty(x), other.predict_uncertainty(x)
    np.testing.assert_allclose(theirs.aleatoric, 100 * ours.aleatoric, rtol=1e-3)
    np.testing.assert_allclose(theirs.epistemic, ours.epistemic, atol=1e-3)


# --- stopping, and files --------------------------------------------------------------------------


def test_a_stopped_fit_goes_on_in_whichever_phase(line, tmp_path):
    """Ctrl-C while the centre is learned, again, then while the embedding is, again: the bits of a
    run that nobody stopped."""

    class Pressed(training.Interrupts):
        requested = property(lambda self: True, lambda self, value: None)

    make = partial(quick, center=["network"], epochs=30)
    whole, told = make().fit(*line), []
    make = partial(make, checkpoint=tmp_path / "c")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "Interrupts", Pressed)
        while len(told) < 100:
            try:
                resumed = make().fit(*line)
                break
            except TrainingInterrupted as stop:
                told.append(str(stop))
    in_center = [bool(re.search("while the centre", line)) for line in told]
    assert in_center == [True] * 4 + [False] * 2  # two kinds of networks, then the embedding
    for ours, theirs in zip(*(jax.tree.leaves(m.model_) for m in (resumed, whole)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(resumed.predict(line[0]), whole.predict(line[0]))
    with pytest.raises(NkcmeError, match="another run"):
        make(random_state=1).fit(*line)


@pytest.mark.parametrize(
    "parameters", [{"center": "mean-scale", "n_members": 2}, {"center": "auto"}]
)
def test_models_are_saved_and_read(parameters, line, tmp_path):
    model = quick(recalibrate=True, atoms="quantile", **parameters).fit(*line)
    model.save(tmp_path / "m")
    again = nkcme.load(tmp_path / "m")
    x = line[0][:50]
    np.testing.assert_array_equal(again.predict_quantiles(x), model.predict_quantiles(x))
    assert again.get_params() == model.get_params()


def test_a_model_says_what_it_is_centred_on(line, tmp_path):
    x, _ = line
    y = x[:, 0] + 0.5 * np.random.default_rng(12).normal(size=600)
    model = quick(center="mean", n_members=2).fit(x, y)
    model.save(tmp_path / "m")
    described = describe_model(tmp_path / "m")
    number = r"\d\.\d\d"
    stack = f"{number} regressor \\+ {number} early \\+ {number} late"
    assert re.fullmatch(stack, described["center"])
    assert (described["members"], described["recalibrated"]) == (10, False)
    scaled = model.center_._replace(log_scale=model.center_.bases["base00"])
    assert scaled.summary() == f"{described['center']}, with a scale"


def test_a_regressor_of_ones_own_is_not_saved(line, tmp_path):
    model = quick(center=KNeighborsRegressor()).fit(*line)
    with pytest.raises(NkcmeError, match="cannot be saved"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_files_of_the_version_before_are_read(line, tmp_path):
    """They knew one member, without an axis for it, and none of the parameters of this page."""
    model = quick().fit(*line)
    model.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    arrays = {k: v[0] if k.startswith("model") else v for k, v in arrays.items()}
    del config["learned"]["n_members"]
    for name in ("center", "n_members", "recalibrate", "atoms"):
        del config["parameters"][name]
    write_model(tmp_path / "m", config, arrays)
    again = nkcme.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(line[0]), model.predict(line[0]))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a | {"solution/center/scale": -a["solution/center/scale"]},
        lambda a: a | {"solution/center/weights": a["solution/center/weights"][:1]},
        lambda a: a | {"solution/recalibration": a["solution/recalibration"][::-1].copy()},
        lambda a: {k: v for k, v in a.items() if k != "solution/recalibration"},
        lambda a: {k: v for k, v in a.items() if "/early/" not in k},
        lambda a: {k: v for k, v in a.items() if "/base00/" not in k},
        lambda a: {k: v for k, v in a.items() if "/base00/0/" not in k},
        lambda a: {k: v for k, v in a.items() if "/late/" not in k or "bias" not in k},
        lambda a: {k: v for k, v in a.items() if "/center/" not in k},
        lambda a: a | {"solution/center/base9/x": np.zeros(1)},
    ],
)
def test_damaged_files_are_refused(change, line, tmp_path):
    model = quick(center="mean", recalibrate=True).fit(*line)
    model.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    write_model(tmp_path / "m", config, change(arrays))
    with pytest.raises(ModelFileError):
        nkcme.load(tmp_path / "m")
