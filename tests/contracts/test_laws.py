"""One predicted distribution, one law: of one output, every method is a view of it.

For every estimator and reading, and for distributions built by hand, hypothesis draws rows, levels
and points. Each method is compared with integrals of the density and sums over the point masses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme import presets
from nkcme.distributions.base import Distribution
from nkcme.distributions.embedding import Embedding
from support.predicted_distributions import ONE_OUTPUT, ROWS, breaks_of, case, fitted
from support.quadrature import line
from support.tiny_estimators import tiny

#: Relative to a probability of one, or to the width of the distribution.
TOLERANCE = 1e-3

#: For samples, a bound that one in a million of correct samplers of a distribution exceeds.
N_SAMPLES = 20_000
SAMPLING = np.sqrt(np.log(2e6) / (2 * N_SAMPLES))


# --- what is tested -------------------------------------------------------------------------------

rng = np.random.default_rng(2)
X = rng.normal(size=(300, 2))  # with fewer rows no support is found
NOISY = X[:, 0] + 0.3 * rng.normal(size=300)

#: Targets of NKCME on supports that it finds or is given.
TARGETS = {
    "counts": (np.floor(np.exp(1.0 + NOISY)), {"integer": True, "bounds": (0, None)}),
    "zero-inflated": (np.maximum(NOISY, 0.0), {"bounds": (0, None)}),
    "five values": (np.clip(np.round(2 * NOISY), -2, 2) / 2, {"values": [-1, -0.5, 0, 0.5, 1]}),
    "capped": (np.minimum(NOISY, 0.5), {}),
    "shares": (1 / (1 + np.exp(-NOISY)), {"bounds": (0, 1)}),
    "log": (np.exp(NOISY), {"transform": "log"}),
    "log, capped": (np.minimum(np.exp(NOISY), 1.5), {"transform": "log"}),
}


@cache
def nkcme_on(target: str):
    y, options = TARGETS[target]
    return tiny("NKCME", **options).fit(X, y)


@cache
def signed_nkcme(reading: str):
    """The paper's: signed weights, of which a few training steps leave many negative."""
    recipe = presets.QUICK | {"head": "signed", "reading": reading, "epochs": 30}
    return tiny("NKCME", **recipe).fit(X[:60], NOISY[:60])


def rows_of_estimators() -> dict[str, Callable[[np.ndarray], Distribution]]:
    """Maps a name to the distribution of one row, for inputs (2,)."""
    found: dict[str, Callable[[np.ndarray], Distribution]] = {}

    def estimated(name: str, reading: str | None):
        def predict(x: np.ndarray) -> Distribution:
            dist = fitted(name, 1)[0].predict_dist(x[None])
            return dist if reading is None else dist.read(reading)

        return predict

    for name in ONE_OUTPUT:
        parts = name.split(" ")
        if parts[0] in ("CARD", "DeepFeatureCME", "KernelCME", "MDN", "NKCME", "SplineFlow"):
            found[name] = estimated(parts[0], parts[1] if len(parts) > 1 else None)
            if parts[0] == "CARD":
                found["CARD smoothed"] = lambda x: (
                    fitted("CARD", 1)[0].predict_dist(x[None]).smoothed()
                )
        else:
            found[name] = lambda x, name=name: case(name)[int(10 * abs(x[0])) % ROWS]
    for reading in ("atomic", "smoothed"):
        found[f"NKCME signed {reading}"] = lambda x, r=reading: signed_nkcme(r).predict_dist(
            x[None]
        )
    for target in TARGETS:
        found[f"NKCME {target}"] = lambda x, t=target: nkcme_on(t).predict_dist(x[None])
    return found


LAWS = rows_of_estimators()
every_law = pytest.mark.parametrize("name", LAWS)

inputs = st.tuples(st.floats(-2, 2), st.floats(-2, 2)).map(np.array)
levels = st.floats(0.002, 0.998)


class Law:
    """Integrals over one row, by its density and its point masses."""

    def __init__(self, row: Distribution, *more: float):
        self.row = row
        low, high = row.ppf([0.05, 0.95])[0]
        self.width = max(high - low, 1e-9)
        self.y, self.weight = line([*breaks_of(row), *more], n=8, tail=self.width)
        self.values, masses = row.point_masses()
        self.masses = masses[0]
        self.density = row.pdf(self.y, grid=True)[0]
        assert np.all(self.density >= 0)

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> float:
        """E[f(y)]."""
        with np.errstate(over="ignore", invalid="ignore"):
            each = np.where(self.density > 0, self.density * f(self.y), 0.0)
        return float(each @ self.weight + self.masses @ f(self.values))


# --- the laws -------------------------------------------------------------------------------------


@every_law
@settings(max_examples=6, deadline=None)
@given(x=inputs, level=levels, other=levels, offset=st.floats(-1, 1))
def test_every_method_describes_the_same_law(name, x, level, other, offset):
    row = LAWS[name](x)
    low, high = row.ppf([0.05, 0.95])[0]
    point = row.ppf(level)[0]
    points = np.array([point, point + offset * (high - low)])
    law = Law(row, *points)

    # Probabilities: one in total, and the CDF is the integral of the density plus point masses.
    assert law.expect(np.ones_like) == pytest.approx(1.0, abs=TOLERANCE)
    for y, below in zip(points, row.cdf(points, grid=True)[0], strict=True):
        assert below == pytest.approx(law.expect(lambda t, y=y: t <= y), abs=TOLERANCE)
    np.testing.assert_allclose(row.sf(points, grid=True), 1 - row.cdf(points, grid=True))
    np.testing.assert_allclose(row.pmf(law.values, grid=True)[0], law.masses, atol=1e-9)
    with np.errstate(divide="ignore"):
        log_density = np.log(row.pdf(points, grid=True))
    np.testing.assert_allclose(row.logpdf(points, grid=True), log_density, rtol=1e-9, atol=1e-9)

    # Quantiles invert the CDF, jumps included.
    quantiles = row.ppf([level, other])[0]
    upto = row.cdf(quantiles, grid=True)[0]
    before = upto - row.pmf(quantiles, grid=True)[0]
    assert np.all((before - TOLERANCE <= [level, other]) & ([level, other] <= upto + TOLERANCE))
    beyond = 1 - np.array([level, other])
    np.testing.assert_allclose(row.isf(beyond), row.ppf(1 - beyond), rtol=1e-12)
    coverages = [abs(1 - 2 * level) + 1e-3, 0.9]
    ends = row.ppf([(1 - c) / 2 for c in coverages] + [(1 + c) / 2 for c in coverages])[0]
    np.testing.assert_allclose(row.interval(coverages)[0], ends.reshape(2, 2).T, rtol=1e-9)
    np.testing.assert_allclose(row.interval(0.9)[0], ends[[1, 3]], rtol=1e-9)
    assert row.median()[0] == row.ppf(0.5)[0]

    # Moments; a Cauchy kernel has none.
    if np.isfinite(row.std()[0]):
        mean = law.expect(lambda t: t)
        assert row.mean()[0] == pytest.approx(mean, abs=TOLERANCE * law.width)
        second = law.expect(lambda t: np.square((t - mean) / law.width))
        expected = law.width * np.sqrt(second)
        assert row.std()[0] == pytest.approx(expected, TOLERANCE, TOLERANCE * law.width)
        assert row.var()[0] == pytest.approx(row.std()[0] ** 2)

    # The score is the integral of its definition.
    gap = row.cdf(law.y, grid=True)[0] - (law.y >= points[1])
    known = np.square(gap) @ law.weight
    assert row.crps(points[1:])[0] == pytest.approx(known, TOLERANCE, TOLERANCE * law.width)


@every_law
def test_entropy_is_the_expected_negative_log_density(name):
    row = LAWS[name](np.array([0.3, -0.2]))
    law = Law(row)
    with np.errstate(divide="ignore", invalid="ignore"):
        known = law.expect(lambda t: -np.nan_to_num(row.logpdf(t, grid=True)[0], neginf=0.0))
    # By 4,096 quantiles, which miss the ends of bins by a little.
    assert row.entropy()[0] == pytest.approx(known, abs=0.01)


@every_law
def test_samples_have_the_cdf(name):
    row = LAWS[name](np.array([-0.4, 0.7]))
    samples = row.rvs(N_SAMPLES, random_state=0)[:, 0]
    points = row.ppf(np.linspace(0.01, 0.99, 50))[0]
    share = np.mean(samples[:, None] <= points, axis=0)
    np.testing.assert_allclose(share, row.cdf(points, grid=True)[0], atol=SAMPLING)
    before = row.cdf(points, grid=True)[0] - row.pmf(points, grid=True)[0]
    np.testing.assert_allclose(np.mean(samples[:, None] < points, axis=0), before, atol=SAMPLING)


@every_law
def test_the_cdf_rises_from_zero_to_one_and_quantiles_do_not_cross(name):
    row = LAWS[name](np.array([1.2, 0.1]))
    levels = np.concatenate([[1e-6], np.linspace(0.01, 0.99, 50), [1 - 1e-6]])
    quantiles = row.ppf(levels)[0]
    assert np.all(np.diff(quantiles) >= 0)
    np.testing.assert_array_equal(row.ppf(levels[::-1])[0], quantiles[::-1])
    ends = row.ppf([0.0, 1.0])[0]
    assert ends[0] <= quantiles[0] <= quantiles[-1] <= ends[1]
    grid = np.sort([*quantiles, *np.linspace(quantiles[0] - 1.0, quantiles[-1] + 1.0, 80)])
    cdf = row.cdf(grid, grid=True)[0]
    assert np.all((cdf >= 0) & (cdf <= 1) & (np.diff(cdf, prepend=0.0) >= -1e-15))
    np.testing.assert_allclose(row.cdf([-1e14, 1e14], grid=True)[0], [0.0, 1.0], atol=1e-10)


def test_a_mean_by_the_weights_is_kept_beside_that_of_the_law():
    """Signed weights: the two differ, and the first is linear in the weights."""
    dist = signed_nkcme("smoothed").predict_dist(X)
    assert isinstance(dist, Embedding)
    assert np.any(dist.weights < 0)
    expected = dist.location[:, 0] + dist.scale[:, 0] * (dist.weights @ dist.atoms)[:, 0]
    np.testing.assert_allclose(dist.embedding_mean(), expected)
    assert not np.allclose(dist.embedding_mean(), dist.mean(), rtol=1e-3)
