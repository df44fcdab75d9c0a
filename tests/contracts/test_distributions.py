"""What every predicted distribution does, whichever estimator predicts it.

test_laws.py compares the methods of one output with each other. Where a law does not hold for some
kind of distribution, `not_promised` says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from nkcme.distributions import blocks
from nkcme.distributions.base import Distribution
from nkcme.distributions.embedding import Embedding
from nkcme.distributions.flow import FlowDistribution
from nkcme.distributions.sample import SampleDistribution
from nkcme.errors import NkcmeError
from nkcme.number_text import written
from support.predicted_distributions import (
    CASES,
    ONE_OUTPUT,
    ROWS,
    SEVERAL_OUTPUTS,
    case,
    fitted,
    has_density,
    is_of_logarithms,
    is_signed,
    moved,
    shrunk,
)
from support.quadrature import plane
from support.tiny_estimators import every_estimator

every_distribution = pytest.mark.parametrize("name", CASES)
every_one_output = pytest.mark.parametrize("name", ONE_OUTPUT)
every_several_outputs = pytest.mark.parametrize("name", SEVERAL_OUTPUTS)

#: Few numbers of points, because a flow compiles a program for each.
FEW, MANY = 20, 2000

LEVELS = np.array([1e-6, 0.01, 0.2, 0.5, 0.77, 0.99, 1 - 1e-6])


def not_promised(dist: Distribution, law: str) -> str | None:
    """Why a law of several outputs, or of a kernel without moments, does not hold."""
    heavy = isinstance(dist, Embedding) and dist.kernel == "cauchy" and dist.reading == "smoothed"
    if is_signed(dist) and dist.n_outputs > 1:
        return "of several outputs, mean, CDF and density use signed weights, rvs positive ones"
    if heavy and law in ("mean", "variance"):
        return "the Cauchy kernel has no variance, and the sample mean does not converge"
    return None


def needs(dist: Distribution, law: str) -> None:
    reason = not_promised(dist, law)
    if reason is not None:
        pytest.skip(reason)


def rounding(dist: Distribution) -> float:
    """Relative differences between batches of other shapes: a joint flow is in single precision."""
    return 1e-4 if isinstance(dist, FlowDistribution) and dist.n_outputs > 1 else 1e-9


def everything(dist: Distribution) -> dict[str, np.ndarray]:
    """The result of every method, rows first."""
    points = dist.rvs(FEW, random_state=0)
    first = points[0]
    found = {name: getattr(dist, name)() for name in ("mean", "var", "std", "mode")}
    found |= {"cdf": dist.cdf(first), "rvs": np.moveaxis(points, 0, 1)}
    if has_density(dist):
        found |= {"pdf": dist.pdf(first), "logpdf": dist.logpdf(first)}
    if dist.n_outputs == 1:
        found |= {"ppf": dist.ppf(LEVELS), "interval": dist.interval(0.8), "crps": dist.crps(first)}
        found |= {"median": dist.median()}
    return found


# --- one output: density, CDF, quantiles ----------------------------------------------------------


@every_one_output
def test_quantiles_invert_the_cdf_and_rise_with_the_level(name):
    dist = case(name)
    y = dist.ppf(LEVELS)
    assert y.shape == (ROWS, len(LEVELS))
    np.testing.assert_allclose(dist.cdf(y), np.tile(LEVELS, (ROWS, 1)), atol=1e-8)
    assert np.all(np.diff(y, axis=1) > 0)
    np.testing.assert_array_equal(dist.ppf(LEVELS[::-1]), y[:, ::-1])
    np.testing.assert_array_equal(dist.ppf(0.2), y[:, 2])
    np.testing.assert_array_equal(dist.median(), y[:, 3])
    np.testing.assert_allclose(dist.interval(0.98), dist.ppf([0.01, 0.99]), rtol=1e-12)
    ends = dist.ppf([0.0, 1.0])
    assert np.all((ends[:, 0] <= y[:, 0]) & (y[:, -1] <= ends[:, 1]))


@every_one_output
def test_crps_of_a_point_mass_is_the_absolute_error(name):
    points = shrunk(case(name), 1e-10)
    middle = points.median()
    y = middle + np.array([3.0, -0.5, 20.0])
    np.testing.assert_allclose(points.crps(y), [3.0, 0.5, 20.0], rtol=1e-5)


# --- several outputs ------------------------------------------------------------------------------


@every_several_outputs
def test_the_joint_density_integrates_to_one_and_to_the_cdf(name):
    dist = case(name)
    if not has_density(dist):
        with pytest.raises(NkcmeError, match=r"no density; use \.read\('smoothed'\)"):
            dist.pdf(dist.mean())
        return
    for i in range(2):
        row = dist[i]
        z, weight = plane(np.linspace(-4.0, 4.0, 13), n=6)
        center, scale = row.mean()[0], _spread(row)
        values = row.pdf(center + scale * z, grid=True)[0] * np.prod(scale)
        assert values @ weight == pytest.approx(1.0, abs=0.01)
        if not_promised(row, "density of the CDF"):
            continue
        corner = np.array([2.0, -2.0]) / 3.0  # between two breaks
        below = np.all(z < corner, axis=1)
        expected = values[below] @ weight[below]
        assert row.cdf(center + scale * corner)[0] == pytest.approx(expected, abs=0.03)


def _spread(row: Distribution) -> np.ndarray:
    """The scale (d,) of most of a row's mass, also where it has no variance."""
    return 1e-9 + np.diff(np.quantile(row.rvs(MANY, 0)[:, 0], [0.16, 0.84], axis=0), axis=0)[0] / 2


@every_several_outputs
def test_what_is_defined_for_one_output_only_is_refused(name):
    dist = case(name)
    for call in (lambda: dist.ppf(0.5), lambda: dist.crps(np.zeros(ROWS)), dist.interval):
        with pytest.raises(NkcmeError, match="one output only"):
            call()


# --- moments, mode, samples -----------------------------------------------------------------------


@every_distribution
def test_samples_have_the_mean_and_the_variance(name):
    dist = case(name)
    samples = dist.rvs(MANY, random_state=2)
    assert samples.shape == (MANY, *dist.mean().shape)
    std = dist.std()
    # The moments of a flow of several outputs are those of 1024 fixed points.
    n = 500 if isinstance(dist, FlowDistribution) and dist.n_outputs > 1 else MANY
    if not not_promised(dist, "mean"):
        error = np.abs(samples.mean(axis=0) - dist.mean())
        assert np.all(error <= 5 * std / np.sqrt(n))
    needs(dist, "variance")
    fourth = np.mean((samples - samples.mean(axis=0)) ** 4, axis=0)
    error = np.sqrt(np.maximum(fourth - std**4, 0.0) / n)
    assert np.all(np.abs(samples.var(axis=0) - dist.var()) <= 6 * error + 1e-12)


@every_distribution
def test_the_variance_is_the_square_of_the_standard_deviation(name):
    np.testing.assert_allclose(case(name).var(), np.square(case(name).std()))


@every_distribution
def test_samples_follow_the_cdf_and_rows_are_independent(name):
    dist = case(name)
    needs(dist, "samples")
    samples = dist.rvs(MANY, random_state=1)
    if dist.n_outputs == 1:
        uniform = dist.cdf(samples.T.copy())
        for row in uniform:
            assert stats.kstest(row, "uniform").pvalue > 1e-3
        assert abs(np.corrcoef(uniform)[0, 1]) < 0.09
    else:
        corner = np.quantile(samples, 0.6, axis=0)
        share = np.all(samples <= corner, axis=2).mean(axis=0)
        np.testing.assert_allclose(dist.cdf(corner), share, atol=0.06)


@every_distribution
def test_samples_are_reproducible(name):
    dist = case(name)
    same = [dist.rvs(FEW, seed) for seed in (3, 3, np.random.RandomState(3))]
    np.testing.assert_array_equal(same[0], same[1])
    np.testing.assert_array_equal(same[0], same[2])
    assert not np.array_equal(same[0], dist.rvs(FEW, 4))
    assert dist.rvs(0).shape == (0, *dist.mean().shape)
    assert dist.rvs(np.int64(FEW)).shape == (FEW, *dist.mean().shape)


@every_distribution
def test_the_mode_is_where_the_density_is_high(name):
    dist = case(name)
    mode = dist.mode()
    assert mode.shape == dist.mean().shape
    if has_density(dist):
        samples = np.moveaxis(dist.rvs(MANY, 0), 0, 1)
        # Between draws the density is highest wherever two happen to be close.
        drawn = dist.smoothed() if isinstance(dist, SampleDistribution) else dist
        assert np.all(drawn.pdf(mode) >= 0.9 * drawn.pdf(samples).max(axis=1))


@every_distribution
def test_the_log_density_is_the_logarithm_of_the_density(name):
    dist = case(name)
    if has_density(dist):
        y = np.moveaxis(dist.rvs(FEW, 0), 0, 1)
        with np.errstate(divide="ignore"):
            expected = np.log(np.maximum(dist.pdf(y), 0.0))
        np.testing.assert_allclose(dist.logpdf(y), expected, rtol=1e-9, atol=1e-9)


# --- points, rows, units --------------------------------------------------------------------------


def _functions(dist: Distribution) -> list[Any]:
    return [dist.pdf, dist.logpdf, dist.cdf] if has_density(dist) else [dist.cdf]


@every_distribution
def test_points_are_one_per_row_several_per_row_shared_or_a_grid(name):
    dist = case(name)
    points = dist.rvs(FEW, 0)[:, 0]  # of the first row: (FEW[, d])
    for f in _functions(dist):
        grid = f(points, grid=True)
        assert grid.shape == (ROWS, FEW)
        np.testing.assert_allclose(f(points[:ROWS]), np.diag(grid), rtol=rounding(dist))
        np.testing.assert_allclose(
            f(np.tile(points, (ROWS, *[1] * points.ndim))), grid, rtol=rounding(dist)
        )
        np.testing.assert_allclose(f(points[1]), grid[:, 1], rtol=rounding(dist))
        assert f(points[:0], grid=True).shape == (ROWS, 0)


@every_distribution
def test_nan_points_have_nan_results(name):
    dist = case(name)
    points = dist.rvs(FEW, 0)[:ROWS, 0]
    spoiled = points.copy()
    spoiled.reshape(ROWS, -1)[1, -1] = np.nan  # one output of one point
    for f in _functions(dist):
        np.testing.assert_array_equal(np.isnan(f(spoiled)), [False, True, False])
        whole, with_nan = f(points, grid=True), f(spoiled, grid=True)
        np.testing.assert_array_equal(with_nan[:, [0, 2]], whole[:, [0, 2]])
        assert np.isnan(with_nan[:, 1]).all()
        assert np.isnan(f(np.full(points.shape[1:], np.nan))).all()
    if dist.n_outputs == 1:
        scores = dist.crps(spoiled)
        np.testing.assert_array_equal(scores[[0, 2]], dist.crps(points)[[0, 2]])
        assert np.isnan(scores[1])


@every_distribution
def test_rows_are_selected_as_in_numpy(name):
    dist = case(name)
    whole = everything(dist)
    fresh = {"rvs"}  # depends on the number of rows
    for rows in (1, -1, slice(1, None), [2, 0, 0], np.array([True, False, True]), slice(0, 0)):
        chosen = [rows] if isinstance(rows, int) else rows
        part = dist[rows]
        assert type(part) is type(dist)
        points = dist.rvs(FEW, random_state=0)[0][chosen]
        assert len(part) == len(points)
        found = {"cdf": part.cdf(points), "mean": part.mean(), "std": part.std()}
        found["mode"] = part.mode()
        if has_density(dist):
            found |= {"pdf": part.pdf(points), "logpdf": part.logpdf(points)}
        if dist.n_outputs == 1:
            found |= {"ppf": part.ppf(LEVELS), "crps": part.crps(points)}
        for method, values in found.items():
            if method not in fresh:
                np.testing.assert_allclose(
                    values, whole[method][chosen], rounding(dist), 1e-12, err_msg=method
                )
        assert part.rvs(FEW, 0).shape == (FEW, *part.mean().shape)
    with pytest.raises(IndexError):
        dist[ROWS]


@every_distribution
def test_location_and_scale_move_everything(name):
    dist = case(name)
    shift, factor = 0.0 if is_of_logarithms(dist) else 8.0, 4.0
    other, d = moved(dist, shift, factor), dist.n_outputs
    points = dist.rvs(FEW, 0)
    np.testing.assert_allclose(other.rvs(FEW, 0), shift + factor * points, rtol=rounding(dist))
    y = np.moveaxis(points, 0, 1) + 0.01  # off the atoms, at which a CDF may jump
    np.testing.assert_allclose(
        other.cdf(shift + factor * y), dist.cdf(y), rtol=1e-7 + rounding(dist), atol=1e-12
    )
    if has_density(dist):
        np.testing.assert_allclose(
            other.pdf(shift + factor * y) * factor**d,
            dist.pdf(y),
            rtol=1e-7 + rounding(dist),
            atol=1e-12,
        )
    for method in ("mean", "mode"):
        expected = shift + factor * getattr(dist, method)()
        np.testing.assert_allclose(
            getattr(other, method)(), expected, rtol=1e-7 + rounding(dist), atol=1e-7
        )
    np.testing.assert_allclose(other.std(), factor * dist.std(), rtol=1e-7)
    if d == 1:
        np.testing.assert_allclose(other.ppf(LEVELS), shift + factor * dist.ppf(LEVELS), rtol=1e-7)
        expected = factor * dist.crps(points[0])
        np.testing.assert_allclose(other.crps(shift + factor * points[0]), expected, rtol=1e-6)


@every_distribution
def test_blocks_of_rows_and_points_give_the_same_results(name, monkeypatch):
    dist = case(name)[:]  # without cached tables
    whole = everything(dist)
    monkeypatch.setattr(blocks, "MAX_MEMORY", 2000)
    for method, values in everything(dist[:]).items():
        np.testing.assert_allclose(values, whole[method], rounding(dist), 1e-12, err_msg=method)


@every_distribution
def test_repr_has_the_number_of_rows_and_the_first_of_them_in_numbers(name):
    dist = case(name)
    first, *rows = repr(dist).splitlines()
    assert first.startswith(f"{type(dist).__name__}({ROWS} rows, ")
    assert len(rows) == ROWS
    assert "array" not in repr(dist)
    for i, row in enumerate(rows):
        assert row.startswith(f"  row {i}: mean ")
        if dist.n_outputs == 1:
            low, high = dist.interval(0.9)[i]
            assert row.endswith(
                f"mean {written(dist.mean()[i])}, 90 % interval {written(low)} to {written(high)}"
            )
    many = dist[[0] * 1200]
    assert repr(many).splitlines()[0].startswith(f"{type(dist).__name__}(1,200 rows, ")
    assert repr(many).splitlines()[-1] == "  and 1,197 more"
    assert repr(dist[[]]).splitlines()[0] == repr(dist[[]])


# --- errors ---------------------------------------------------------------------------------------


@every_distribution
def test_a_number_of_samples_that_is_no_whole_number_is_refused(name):
    for size in (1.5, True, -1, "3", None, [2], np.float64(2.0)):
        with pytest.raises(NkcmeError, match="must be a whole number of at least 0; got") as caught:
            case(name).rvs(size)
        assert "\n" not in str(caught.value)


@every_one_output
def test_a_coverage_that_is_not_between_zero_and_one_is_refused(name):
    expected = "coverage must be one number between 0 and 1, such as 0.9; got"
    for coverage in (0.0, 1.5, np.nan, True, "0.9", [0.8, 1.9], np.full((2, 2), 0.5), None):
        with pytest.raises(NkcmeError, match=expected) as caught:
            case(name).interval(coverage)
        assert "\n" not in str(caught.value)


@every_estimator
def test_estimators_refuse_what_their_distributions_refuse(name):
    model, x = fitted(name, 1)
    for size in (1.5, True, -1):
        with pytest.raises(NkcmeError, match="must be a whole number of at least 0; got"):
            model.sample(x, n_samples=size)
    with pytest.raises(NkcmeError, match=r"coverage must be one number .* got a list of 2"):
        model.predict_interval(x, coverage=[0.8, 0.9])


@every_distribution
def test_points_of_another_shape_are_refused(name):
    dist = case(name)
    point = np.zeros(dist.n_outputs) if dist.n_outputs > 1 else np.zeros(())
    for y, options, message in (
        (np.stack([point] * (ROWS + 1)), {}, rf"one y for each of {ROWS} rows.*pass grid=True"),
        (np.zeros((2, ROWS, *point.shape)), {"grid": True}, "a grid is one list of points"),
        ("far away", {}, "y must be numbers; got a str"),
    ):
        with pytest.raises(NkcmeError, match=message):
            dist.cdf(y, **options)
    if dist.n_outputs > 1:
        with pytest.raises(NkcmeError, match="2 outputs in its last axis"):
            dist.cdf(np.zeros((ROWS, 3)))
        return
    for q in ([0.5, 1.5], np.nan, [[0.5]], "median"):
        with pytest.raises(NkcmeError, match="quantile levels must be numbers"):
            dist.ppf(q)
    with pytest.raises(NkcmeError, match=rf"one y for each of {ROWS} rows; got \(1,\)"):
        dist.crps([1.0])
