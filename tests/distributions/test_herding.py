"""Super-samples: every step of herding, their rate of convergence, and their memory."""

from __future__ import annotations

import numpy as np
import pytest

from nkcme.distributions import herding
from nkcme.distributions.embedding import Embedding
from nkcme.kernels import KERNELS


def embeddings(kernel="gaussian", rows=4, atoms=30, seed=0, **options):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(atoms, 0.3), rows)
    options = {"bandwidth": 0.25} | options
    return Embedding(np.linspace(-2.0, 2.0, atoms), weights, kernel, **options)


def slow_scores(dist, candidates, picked):
    """mu(y) - 1/(t+1) sum_s k(y, y_s) on the candidates (in standard units) before pick t."""
    mu = dist.pdf(candidates, grid=True)[0]
    one = Embedding([0.0], [[1.0]], dist.kernel, dist.bandwidth)
    crowd = sum((one.pdf(candidates - p, grid=True)[0] for p in picked), np.zeros(len(candidates)))
    return mu - crowd / (len(picked) + 1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_pick_is_the_argmax_of_the_herding_rule(kernel):
    dist = embeddings(kernel)
    candidates = np.linspace(-2.0, 2.0, 101)
    herd = dist.herd(12, candidates=101)
    assert herd.shape == (12, 4)
    for i in range(4):
        picked = []
        for pick in herd[:, i]:
            scores = slow_scores(dist[i], candidates, picked)
            here = scores[np.argmin(np.abs(candidates - pick))]
            assert scores.max() - here < 2e-6 * max(1.0, scores.max())  # in single precision
            picked.append(pick)
    mode = candidates[dist.pdf(candidates, grid=True).argmax(axis=1)]
    np.testing.assert_allclose(herd[0], mode, atol=1e-12)


def test_candidates_units_and_repeats():
    dist = embeddings(location=[[0.0], [1.0], [2.0], [3.0]], scale=[[1.0], [2.0], [3.0], [4.0]])
    standard = embeddings().herd(6)
    np.testing.assert_allclose(dist.herd(6), np.arange(4.0) + np.arange(1.0, 5.0) * standard)
    grid = np.linspace(-2.0, 2.0, 1000)
    assert np.min(np.abs(standard[..., None] - grid), axis=-1).max() < 1e-12
    chosen = embeddings().herd(5, candidates=[-1.0, 0.5])
    assert set(np.unique(chosen)) <= {-1.0, 0.5}
    spike = Embedding([0.0, 1.0], [[1.0, 0.0]], bandwidth=0.01)
    np.testing.assert_array_equal(spike.herd(7, candidates=[0.0, 1.0]), 0.0)  # repeats are allowed
    assert embeddings().herd(0).shape == (0, 4)


def test_super_samples_of_several_outputs_are_atoms():
    rng = np.random.default_rng(0)
    atoms, weights = rng.normal(size=(20, 2)), rng.dirichlet(np.ones(20), 3)
    dist = Embedding(atoms, weights, bandwidth=0.6, location=[1.0, 2.0], scale=[3.0, 4.0])
    herd = dist.herd(400)
    assert herd.shape == (400, 3, 2)
    # The share of each atom tends to its weight, and so do the moments.
    np.testing.assert_allclose(herd.mean(axis=0), dist.mean(), atol=0.03)


def herding_error(dist, samples):
    """||mu - mu_n|| of the first row for equally weighted samples."""
    n = len(samples)
    other = Embedding(samples, np.full((1, n), 1.0 / n), dist.kernel, dist.bandwidth)
    return float(dist.mmd(other)[0])


SIZES = np.array([4, 8, 16, 32, 64, 128, 256])


def herded_and_independent_errors(dist):
    # Candidates at the atoms too, so that the error can go to zero.
    candidates = np.union1d(np.linspace(-2.0, 2.0, 601), dist.atoms[:, 0])
    herd = dist.herd(256, candidates=candidates)[:, 0]
    rng = np.random.default_rng(0)
    positive = np.maximum(dist.weights[0], 0)
    draws = rng.choice(dist.atoms[:, 0], 256, p=positive / positive.sum())
    return (
        np.array([herding_error(dist, samples[:n]) for n in SIZES]) for samples in (herd, draws)
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_super_samples_converge_faster_than_independent_ones(kernel):
    """||mu - mu_n|| falls about as 1/n, where independent draws fall as 1/sqrt(n)."""
    for seed in range(2):
        dist = embeddings(kernel, rows=1, seed=seed, bandwidth=0.5)
        herded, independent = herded_and_independent_errors(dist)
        slope = np.polyfit(np.log(SIZES), np.log(herded), 1)[0]
        assert slope < -0.75
        assert np.all(herded[-3:] < 0.5 * independent[-3:])


def test_the_error_of_signed_weights_falls_but_not_to_zero():
    """A limit: a measure with negative parts has no samples, so the error does not go to zero; it
    still falls, and below that of draws from the positive part."""
    plain = embeddings(rows=1, bandwidth=0.5)
    weights = plain.weights - 0.2 * np.roll(plain.weights, 1, axis=1)
    herded, independent = herded_and_independent_errors(
        Embedding(plain.atoms, weights / weights.sum(), "gaussian", 0.5)
    )
    assert np.all(np.diff(herded) < 0)
    assert np.all(herded[-3:] < 0.5 * independent[-3:])


def test_blocks_of_rows_give_the_same_picks_in_one_program():
    dist = embeddings(rows=11)
    whole = dist.herd(20, candidates=50)
    before = herding._herd_block._cache_size()
    blocked = dist.herd(20, candidates=50, max_memory=8 * 50 * 50 + 4 * 1000)
    assert herding._herd_block._cache_size() <= before + 1  # the last block is padded
    np.testing.assert_array_equal(blocked, whole)


def test_the_working_arrays_stay_within_the_given_memory(monkeypatch):
    shapes = []
    original = herding._herd_block

    def watch(weights, cross, gram, n):
        shapes.append((weights.shape, cross.shape, gram.shape, n))
        return original(weights, cross, gram, n)

    monkeypatch.setattr(herding, "_herd_block", watch)
    dist, bound = embeddings(rows=300), 200_000
    dist.herd(40, candidates=100, max_memory=bound)
    assert len(shapes) > 1
    for (rows, atoms), _, (c, _), n in shapes:
        assert 4 * rows * (3 * c + atoms + n) + 8 * c * c <= bound
    # With too little memory for one row, it works on one row at a time.
    assert dist[:3].herd(2, candidates=100, max_memory=1).shape == (2, 3)
