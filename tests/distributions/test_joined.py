"""Rows of several batches: each is as in its own batch, in every method."""

import numpy as np
import pytest

from nkcme.distributions.embedding import Embedding
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.distributions.joined import JoinedDistribution
from nkcme.distributions.sample import SampleDistribution
from nkcme.distributions.support import Support
from nkcme.errors import NkcmeError

PLACES = ([4, 0], [1, 5, 2], [3])


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    atoms = Embedding(
        [0.0, 1.0, 2.0],
        rng.dirichlet(np.ones(3), 2),
        reading="law",
        support=Support(lower=0.0, reached=(0.0,)),
    )
    mixture = GaussianMixture(np.zeros((3, 2)), rng.normal(size=(3, 2)), np.full((3, 2), 0.7))
    return [atoms, mixture, SampleDistribution(rng.normal(size=(30, 1)))]


@pytest.fixture(scope="module")
def joined(parts):
    return JoinedDistribution(parts, PLACES)


def rows_of(parts, ask):
    """What ``ask`` gives for each batch and its places, in the order of the joined rows."""
    found = {}
    for part, places in zip(parts, PLACES, strict=True):
        found |= dict(zip(places, ask(part, places), strict=True))
    return np.array([found[i] for i in range(6)])


@pytest.mark.parametrize(
    "ask",
    [
        lambda dist, y: dist.pdf(y),
        lambda dist, y: dist.smoothed().logpdf(y),
        lambda dist, y: dist.cdf(y),
        lambda dist, y: dist.sf(y),
        lambda dist, y: dist.pmf(y),
        lambda dist, y: dist.crps(y),
        lambda dist, y: dist.without_support().cdf(y),
        lambda dist, y: dist.cdf([-1.0, 0.0, 3.0], grid=True),
        lambda dist, y: dist.ppf([0.9, 0.1]),
        lambda dist, y: dist.isf(1e-3),
        lambda dist, y: dist.interval([0.5, 0.9]),
        lambda dist, y: dist.mean(),
        lambda dist, y: dist.var(),
        lambda dist, y: dist.mode(),
        lambda dist, y: dist.entropy(),
    ],
)
def test_every_method_gives_the_rows_of_the_batches(ask, parts, joined):
    y = np.array([0.0, 0.3, -0.5, 1.5, 0.8, 2.0])
    expected = rows_of(parts, lambda part, places: ask(part, y[places]))
    np.testing.assert_array_equal(ask(joined, y), expected)


def test_point_masses_samples_and_missing_points(joined):
    values, masses = joined.point_masses()
    np.testing.assert_array_equal(values, [0.0])
    np.testing.assert_array_equal(masses[:, 0] > 0, np.isin(np.arange(6), PLACES[0]))
    drawn = joined.rvs(4000, random_state=0)
    assert drawn.shape == (4000, 6)
    np.testing.assert_allclose(drawn.mean(axis=0), joined.mean(), atol=0.1)
    assert np.isnan(joined.cdf(np.nan)).all()


def test_rows_are_chosen_as_in_every_distribution(joined):
    for rows in (slice(1, 4), [5, 0, 0], np.arange(6) > 3, 2, -1, []):
        chosen = np.atleast_1d(np.arange(6)[rows])
        np.testing.assert_array_equal(joined[rows].mean(), joined.mean()[chosen])
        assert len(joined[rows]) == len(chosen)
    assert repr(joined).startswith("JoinedDistribution(6 rows, in 3 batches, 1 output)\n  row 0")


def test_places_that_are_not_all_rows_are_refused(parts):
    for places in ([[0, 0], [1, 5, 2], [3]], [[4, 0], [1, 5], [3]], [[9, 0], [1, 5, 2], [3]]):
        with pytest.raises(NkcmeError, match="place"):
            JoinedDistribution(parts, places)
    with pytest.raises(NkcmeError, match="at least one batch"):
        JoinedDistribution([], [])
