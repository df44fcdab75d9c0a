"""The spline flow against quadrature, a Gaussian whose entropy is known, and flowjax itself."""

from __future__ import annotations

import builtins
import os
import signal

import jax
import numpy as np
import pytest
from scipy import stats

from nkcme import NkcmeError, TrainingInterrupted, load, presets
from nkcme.estimators import spline_flow as flow_module
from nkcme.estimators.spline_flow import SplineFlow
from support.quadrature import line, plane


def linear_gaussian(n, seed):
    """y of standard deviation 1 about a mean that moves by 1.4, and that distribution."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    truth = stats.norm(3.0 + x[:, 0] - x[:, 1], 1.0)
    return x, truth.rvs(random_state=rng), truth


def two_humps(n, seed):
    """Two narrow humps whose distance grows with x: splines that bend hard."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 2))
    side = rng.choice([-1.0, 1.0], n)
    return x, side * (1.0 + x[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def humps():
    return SplineFlow(n_layers=3, hidden=(16,), learning_rate=1e-2, epochs=30, random_state=0).fit(
        *two_humps(2000, 0)
    )


@pytest.fixture(scope="module")
def dist(humps):
    return humps.predict_dist(two_humps(6, 1)[0])


@pytest.fixture(scope="module")
def pair():
    """A trained flow of two dependent outputs."""
    x, y = two_humps(2000, 2)
    both = np.c_[y, y + 0.3 * np.random.default_rng(3).normal(size=len(y))]
    return SplineFlow(n_layers=2, hidden=(16,), learning_rate=1e-2, epochs=30, random_state=0).fit(
        x, both
    )


def fine_line(one, *more):
    """Quadrature over y for a batch of one row, its knots among the breaks."""
    knots = one.ppf(stats.norm.cdf(one.transport.breaks(one.rows)[0]))[0]
    between = one.ppf(stats.norm.cdf(np.linspace(-6, 6, 60)))[0]
    return line([*knots, *between, *more], n=24)


# ------------------------------------------------------------------------------- one output


def test_density_mean_and_variance_agree_with_quadrature_over_y(dist):
    for row in range(len(dist)):
        y, weight = fine_line(dist[row])
        density = dist[row].pdf(y, grid=True)[0]
        np.testing.assert_allclose(weight @ density, 1.0, atol=1e-10)
        mean = weight @ (density * y)
        np.testing.assert_allclose(dist[row].mean(), mean, atol=1e-6)
        variance = weight @ (density * np.square(y - mean))
        np.testing.assert_allclose(dist[row].var(), variance, rtol=2e-6)


def test_cdf_and_quantiles_are_each_others_inverse_and_the_integral_of_the_density(dist):
    levels = np.array([1e-9, 0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
    quantiles = dist.ppf(levels)
    assert np.all(np.diff(quantiles, axis=1) > 0)
    np.testing.assert_allclose(dist.cdf(quantiles), np.tile(levels, (len(dist), 1)), rtol=1e-9)
    for row in range(len(dist)):
        for level, cut in zip(levels, quantiles[row], strict=True):
            y, weight = fine_line(dist[row], cut)
            density = dist[row].pdf(y, grid=True)[0]
            np.testing.assert_allclose(weight[y < cut] @ density[y < cut], level, atol=1e-10)


def test_levels_in_any_order_and_the_ends_of_the_line(dist):
    np.testing.assert_array_equal(dist.ppf([0.9, 0.1])[:, ::-1], dist.ppf([0.1, 0.9]))
    np.testing.assert_array_equal(dist.ppf([0.0, 1.0]), np.tile([-np.inf, np.inf], (len(dist), 1)))
    np.testing.assert_array_equal(dist.cdf([-np.inf, np.inf], grid=True)[0], [0.0, 1.0])
    assert np.isfinite(dist.logpdf(1e6)).all()


def test_crps_agrees_with_its_definition(dist):
    _, y = two_humps(6, 1)
    for row in range(len(dist)):
        t, weight = fine_line(dist[row], y[row])
        cdf = dist[row].cdf(t, grid=True)[0]
        expected = weight @ np.square(cdf - (t >= y[row]))
        np.testing.assert_allclose(dist[row].crps(y[[row]]), expected, atol=1e-6)
    far = dist.crps(np.full(len(dist), 1e6))
    np.testing.assert_allclose(far, 1e6 - dist.mean(), rtol=1e-5)


def test_the_mode_is_where_the_density_is_highest(dist):
    grid = np.linspace(-4, 4, 4001)
    highest = dist.pdf(grid, grid=True).max(axis=1)
    at_mode = dist.pdf(dist.mode())
    assert np.all(at_mode > 0.98 * highest)


def test_draws_follow_the_cdf(dist):
    draws = dist.rvs(4000, random_state=0)
    for row in range(len(dist)):
        assert stats.kstest(dist[row].cdf(draws[:, [row]].T)[0], "uniform").pvalue > 1e-3


def test_a_gaussian_is_learned_to_its_entropy():
    x, y, _ = linear_gaussian(4000, 0)
    model = SplineFlow(n_layers=3, hidden=(16,), learning_rate=5e-3, epochs=60, random_state=0).fit(
        x, y
    )
    x, y, truth = linear_gaussian(4000, 1)
    dist = model.predict_dist(x)
    excess = np.mean(truth.logpdf(y) - dist.logpdf(y))
    assert -0.01 < excess < 0.06  # nats; to know nothing of x costs log(3) / 2 = 0.55
    width = np.diff(dist.interval(0.8), axis=1).mean()
    np.testing.assert_allclose(width, np.diff(stats.norm.interval(0.8))[0], rtol=0.05)
    assert np.sqrt(np.mean(np.square(dist.median() - truth.mean()))) < 0.2


@pytest.mark.parametrize("name", ["humps", "pair"])
def test_the_likelihood_is_flowjaxs(name, request):
    from flowjax import bijections, distributions

    model = request.getfixturevalue(name)
    x, y = two_humps(50, 4)
    y = y if name == "humps" else np.c_[y, y]
    encoded = model.encoder_.transform(x)
    z = model.scaler_.transform(y.reshape(len(y), -1))
    parts = flow_module._parts(model._architecture(2, z.shape[1]))
    base = distributions.StandardNormal((z.shape[1],))
    theirs = distributions.Transformed(base, bijections.Invert(parts.flow(model.model_)))
    expected = jax.jit(jax.vmap(theirs.log_prob))(z, encoded) - np.log(model.scaler_.scale).sum()
    np.testing.assert_allclose(model.predict_dist(x).logpdf(y), expected, rtol=1e-3, atol=2e-3)


# --------------------------------------------------------------------------- several outputs


def test_the_joint_density_integrates_to_one_and_gives_the_means_of_the_fixed_points(pair):
    dist = pair.predict_dist(two_humps(2, 5)[0])
    points, weight = plane(np.linspace(-4, 4, 41), n=6)
    density = dist.pdf(points, grid=True)
    np.testing.assert_allclose(density @ weight, 1.0, atol=5e-3)
    spread = dist.std()
    np.testing.assert_allclose(dist.mean(), density @ (weight[:, None] * points), atol=0.02)
    second = density @ (weight[:, None] * np.square(points))
    np.testing.assert_allclose(spread, np.sqrt(second - dist.mean() ** 2), atol=0.03)
    below = np.all(points <= [0.5, 0.2], axis=1)
    expected = density[:, below] @ weight[below]
    np.testing.assert_allclose(dist.cdf([0.5, 0.2]), expected, atol=0.03)
    assert np.all(dist.pdf(dist.mode()) > 0.7 * density.max(axis=1))


def test_joint_draws_keep_the_dependence(pair):
    draws = pair.sample(two_humps(3, 6)[0], 2000, random_state=0)
    difference = draws[..., 1] - draws[..., 0]
    np.testing.assert_allclose(difference.std(axis=0), 0.3, atol=0.15)


def test_what_is_fixed_stays_fixed_and_what_is_learned_moves(pair):
    """The base is N(0, 1) and has no parameters; U's shift is L's business."""
    import paramax

    architecture = pair._architecture(2, 2)
    parts = flow_module._parts(architecture)
    names = [
        jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(pair.model_)
    ]
    assert not [name for name in names if name.endswith("loc.tree")]
    whole = parts.flow(pair.model_)
    upper = whole.bijection.bijections[0].bijections[1]
    assert isinstance(upper.loc, paramax.NonTrainable)
    np.testing.assert_array_equal(upper.loc.tree, 0.0)
    lower = paramax.unwrap(whole).bijection.bijections[0].bijections[2].triangular
    np.testing.assert_array_equal(np.diagonal(lower, axis1=1, axis2=2), 1.0)
    start = jax.jit(parts.start)(jax.random.key(0))
    for before, after in zip(jax.tree.leaves(start), jax.tree.leaves(pair.model_), strict=True):
        assert before.dtype == after.dtype == np.float32
        assert not np.array_equal(before, after)


# ---------------------------------------------------------------------------------- the rest


def test_spline_ends_have_slope_one_so_that_the_density_is_continuous(dist):
    slopes = dist.rows[2]
    assert slopes.shape == (len(dist), 3, 9)  # 8 bins
    np.testing.assert_array_equal(slopes[..., [0, -1]], 1.0)


def test_networks_start_as_equinox_starts_them():
    architecture = flow_module._Architecture(3, 1, 5, 8, 3.0, (50, 50), "relu")
    start = jax.jit(flow_module._parts(architecture).start)(jax.random.key(1))
    layers = start.bijection.bijections[1].masked_autoregressive_mlp.layers
    for layer, n_inputs in zip(layers, (4, 50, 50), strict=True):
        for array in (layer.weight.args[1], layer.bias):
            assert np.abs(array).max() <= 1 / np.sqrt(n_inputs)
        np.testing.assert_allclose(
            np.std(layer.weight.args[1]), 1 / np.sqrt(3 * n_inputs), rtol=0.1
        )


def test_files_give_the_same_bits(humps, tmp_path):
    x, y = two_humps(20, 7)
    humps.save(tmp_path / "model")
    again = load(tmp_path / "model").predict_dist(x)
    for question in ("mean", "mode"):
        np.testing.assert_array_equal(
            getattr(again, question)(), getattr(humps.predict_dist(x), question)()
        )
    np.testing.assert_array_equal(again.logpdf(y), humps.predict_dist(x).logpdf(y))


def test_an_interrupted_fit_resumes_to_the_same_bits(tmp_path, monkeypatch):
    x, y = two_humps(100, 8)
    recipe = {"n_layers": 2, "n_bins": 4, "hidden": (8,), "epochs": 300}
    recipe |= {"validation_fraction": 0.0, "random_state": 0}
    whole = SplineFlow(**recipe).fit(x, y)
    resumed = SplineFlow(**recipe, checkpoint=tmp_path / "state")
    from nkcme.model_files import CheckpointFile

    save = CheckpointFile.save

    def save_and_press_ctrl_c(self, *arguments):
        save(self, *arguments)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFile, "save", save_and_press_ctrl_c)
        with pytest.raises(TrainingInterrupted):
            resumed.fit(x, y)
    assert 0 < resumed.n_steps_ < 300
    resumed.fit(x, y)
    assert resumed.n_steps_ == 300
    for ours, theirs in zip(
        jax.tree.leaves(resumed.model_), jax.tree.leaves(whole.model_), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_the_papers_recipe_trains():
    x, y = two_humps(600, 9)
    model = SplineFlow(**presets.paper("nsf", "ring") | {"epochs": 2}, random_state=0).fit(x, y)
    assert model.n_steps_ == 4
    assert model.predict_dist(x).rows[0].shape == (600, 5, 9)  # rows, layers, knots
    assert np.isfinite(model.predict_dist(x).logpdf(y)).all()


def test_memory_is_bounded_by_blocks_of_rows(humps, monkeypatch):
    x, y = two_humps(30, 10)
    whole = humps.predict_dist(x)
    expected = whole.mean(), whole.crps(y), whole.logpdf(y)
    monkeypatch.setattr("nkcme.distributions.flow.MAX_MEMORY", 2**20)
    seen = []
    transport = whole.transport
    from_normal = type(transport).from_normal
    monkeypatch.setattr(
        type(transport),
        "from_normal",
        lambda self, rows, u: seen.append(u.size) or from_normal(self, rows, u),
    )
    for ours, theirs in zip(expected, (whole.mean(), whole.crps(y), whole.logpdf(y)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert max(seen) * transport.numbers_a_point * 8 <= 2 * 2**20


def test_without_flowjax_one_line_names_the_extra(monkeypatch):
    real = builtins.__import__

    def no_flowjax(name, *arguments, **options):
        if name.startswith("flowjax"):
            raise ModuleNotFoundError("No module named 'flowjax'")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", no_flowjax)
    x, y = two_humps(20, 11)
    with pytest.raises(NkcmeError, match=r"pip install 'nkcme\[flows\]'") as caught:
        SplineFlow(hidden=(7,), epochs=1).fit(x, y)
    assert "\n" not in str(caught.value)
