"""Distributions of flows against quadrature over y, and against the loss of training."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from nkcme.estimators.spline_flow.estimator import _make_task, _Spec
from nkcme.training.optimizers import Descent
from support.quadrature import line, plane


@pytest.fixture(scope="module")
def dist(one_output):
    return one_output.dist


def fine_line(one, *more):
    """Quadrature over y for a batch of one row, with the breaks of its density."""
    knots = one.ppf(stats.norm.cdf(one.transport.breaks(one.rows)[0]))[0]
    between = one.ppf(stats.norm.cdf(np.linspace(-6, 6, 60)))[0]
    return line([*knots, *between, *more], n=24)


@pytest.mark.parametrize("flow", ["one_output", "two_outputs"])
def test_the_loss_of_training_is_the_negative_log_density(flow, request):
    flow = request.getfixturevalue(flow)
    task = _make_task(_Spec(flow.architecture, Descent(1e-3, 0.0, 0.999, "constant", 1)))
    y = np.random.default_rng(2).normal(size=(len(flow.x), flow.architecture.n_out))
    z = ((y - flow.dist.location) / flow.dist.scale).astype(np.float32)
    losses = jax.jit(task.validation)(flow.model, (flow.x, z))
    in_units = losses + np.log(np.broadcast_to(flow.dist.scale, y.shape)).sum(axis=1)
    points = y if flow.architecture.n_out > 1 else y[:, 0]
    # The loss is in single precision.
    np.testing.assert_allclose(flow.dist.logpdf(points), -in_units, rtol=1e-4, atol=1e-4)


# --- one output ---------------------------------------------------------------------------------


def test_density_mean_and_variance_agree_with_quadrature_over_y(dist):
    for row in range(len(dist)):
        y, weight = fine_line(dist[row])
        density = dist[row].pdf(y, grid=True)[0]
        np.testing.assert_allclose(weight @ density, 1.0, atol=1e-10)
        mean = weight @ (density * y)
        np.testing.assert_allclose(dist[row].mean(), mean, atol=1e-6)
        variance = weight @ (density * np.square(y - mean))
        np.testing.assert_allclose(dist[row].var(), variance, rtol=2e-6)


def test_the_cdf_is_the_integral_of_the_density_and_the_inverse_of_the_quantiles(dist):
    levels = np.array([1e-9, 0.001, 0.1, 0.3, 0.5, 0.9, 0.999])
    quantiles = dist.ppf(levels)
    assert np.all(np.diff(quantiles, axis=1) > 0)
    np.testing.assert_allclose(dist.cdf(quantiles), np.tile(levels, (len(dist), 1)), rtol=1e-9)
    for row in range(len(dist)):
        y, weight = fine_line(dist[row], *quantiles[row])
        density = dist[row].pdf(y, grid=True)[0]
        below = [(weight * density)[y < cut].sum() for cut in quantiles[row]]
        np.testing.assert_allclose(below, levels, atol=1e-10)


def test_quantiles_in_any_order_and_at_the_ends_of_the_line(dist):
    np.testing.assert_array_equal(dist.ppf([0.9, 0.1])[:, ::-1], dist.ppf([0.1, 0.9]))
    np.testing.assert_array_equal(dist.ppf([0.0, 1.0]), np.tile([-np.inf, np.inf], (len(dist), 1)))
    np.testing.assert_array_equal(dist.cdf([-np.inf, np.inf], grid=True)[0], [0.0, 1.0])
    assert np.isfinite(dist.logpdf(1e6)).all()


def test_the_crps_agrees_with_its_definition(dist):
    observed = np.random.default_rng(3).normal(3.0, 2.0, size=len(dist))
    for row in range(len(dist)):
        t, weight = fine_line(dist[row], observed[row])
        cdf = dist[row].cdf(t, grid=True)[0]
        expected = weight @ np.square(cdf - (t >= observed[row]))
        np.testing.assert_allclose(dist[row].crps(observed[[row]]), expected, atol=1e-6)
    far = dist.crps(np.full(len(dist), 1e6))
    np.testing.assert_allclose(far, 1e6 - dist.mean(), rtol=1e-5)


def test_the_mode_has_the_highest_density(dist):
    highest = dist.pdf(np.linspace(-8, 14, 4001), grid=True).max(axis=1)
    assert np.all(dist.pdf(dist.mode()) > 0.98 * highest)


def test_samples_follow_the_cdf(dist):
    samples = dist.rvs(4000, random_state=0)
    for row in range(len(dist)):
        assert stats.kstest(dist[row].cdf(samples[:, [row]].T)[0], "uniform").pvalue > 1e-3


def test_memory_is_bounded_by_blocks_of_rows(one_output, monkeypatch):
    dist = one_output.dist[np.arange(30) % 6]
    y = np.random.default_rng(4).normal(3.0, 2.0, size=len(dist))
    expected = dist.mean(), dist.crps(y), dist.logpdf(y)
    monkeypatch.setattr("nkcme.distributions.blocks.MAX_MEMORY", 2**20)
    transport, sizes = dist.transport, []
    from_normal = type(transport).from_normal
    monkeypatch.setattr(
        type(transport),
        "from_normal",
        lambda self, rows, u: sizes.append(u.size) or from_normal(self, rows, u),
    )
    for whole, blocks in zip(expected, (dist.mean(), dist.crps(y), dist.logpdf(y)), strict=True):
        np.testing.assert_allclose(whole, blocks, rtol=1e-12)
    assert max(sizes) * transport.numbers_per_point * 8 <= 2 * 2**20


# --- several outputs ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_the_plane(two_outputs):
    """Points, their weights and the densities at them."""
    points, weight = plane(np.linspace(-4, 4, 21), n=6)
    return points, weight, two_outputs.dist.pdf(points, grid=True)


def test_the_joint_density_integrates_to_one_and_gives_the_moments(two_outputs, on_the_plane):
    dist = two_outputs.dist
    points, weight, density = on_the_plane
    np.testing.assert_allclose(density @ weight, 1.0, atol=5e-3)
    mean = density @ (weight[:, None] * points)
    np.testing.assert_allclose(dist.mean(), mean, atol=0.02)
    second = density @ (weight[:, None] * np.square(points))
    np.testing.assert_allclose(dist.std(), np.sqrt(second - mean**2), atol=0.03)
    below = np.all(points <= [0.5, 0.2], axis=1)
    expected = density[:, below] @ weight[below]
    np.testing.assert_allclose(dist.cdf([0.5, 0.2]), expected, atol=0.03)
    assert np.all(dist.pdf(dist.mode()) > 0.7 * density.max(axis=1))


def test_joint_samples_have_the_covariance_of_the_density(two_outputs, on_the_plane):
    dist, n = two_outputs.dist, 4000
    points, weight, density = on_the_plane
    samples = dist.rvs(n, random_state=0)
    for row in range(len(dist)):
        probability = weight * density[row]
        centered = points - probability @ points
        expected = centered.T @ (probability[:, None] * centered)
        found = np.cov(samples[:, row].T)
        np.testing.assert_allclose(found, expected, atol=5 * np.trace(expected) / np.sqrt(n))
        assert abs(expected[0, 1]) > 0.05
