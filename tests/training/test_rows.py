"""Rows: which are drawn, and how often."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from nkcme.errors import TrainingError
from nkcme.training.rows import RowLookup, Rows, drawn_rows, weights_of

drawn = jax.jit(drawn_rows)


def counts(rows, seed=0):
    """How often each of 12 rows is drawn, for each replica."""
    length = 12 - rows.index.shape[1]  # one shape, so one program
    padded = [np.pad(leaf, ((0, 0), (0, length)), "edge") for leaf in rows]
    bits = np.random.default_rng(seed).integers(2**32, size=10_000, dtype=np.uint32)
    found = [drawn(*row, bits) for row in zip(*padded, strict=True)]
    return np.stack([np.bincount(one, minlength=12) for one in found])


def test_each_replica_draws_its_own_rows_uniformly():
    folds = [np.arange(5), np.array([5, 9]), np.arange(6, 12), np.array([11])]
    for fold, row in zip(folds, counts(Rows.of(folds)), strict=True):
        assert set(np.flatnonzero(row)) == set(fold)
        if len(fold) > 1:
            assert stats.chisquare(row[fold]).pvalue > 1e-3


def test_rows_are_drawn_in_proportion_to_their_weights():
    weight = np.array([0.0, 1.0, 2.5, 0.0, 1e-2, 7.0, 0.0])
    found = counts(Rows.of([np.arange(7)], [weight]))[0, :7]
    positive = weight > 0
    assert not np.any(found[~positive])
    expected = weight[positive] / weight.sum() * found.sum()
    assert stats.chisquare(found[positive], expected).pvalue > 1e-3


def test_a_row_of_weight_two_is_drawn_as_two_copies_of_it():
    weight = np.array([2.0, 1.0, 0.0, 3.0, 0.0, 0.0, 1.0])
    weighted = counts(Rows.of([np.arange(7)], [weight]))
    copied = counts(Rows.of([np.array([0, 0, 1, 3, 3, 3, 6])]))
    np.testing.assert_array_equal(weighted, copied)


@given(hnp.arrays(int, st.integers(1, 60), elements=st.integers(0, 50)))
def test_integer_weights_have_exactly_the_totals_of_copies(weights):
    if not weights.any():
        weights[0] = 1
    ids = np.repeat(np.arange(len(weights)), weights)
    weighted, copied = Rows.of([np.arange(len(weights))], [weights]), Rows.of([ids])
    ends = np.cumsum(weights[weights > 0]) - 1
    np.testing.assert_array_equal(weighted.total[0, : len(ends)], copied.total[0, ends])
    assert weighted.total[0, len(ends) - 1] == copied.total[0, -1] == 2**32 - 1
    assert np.all(np.diff(copied.total[0].astype(np.int64)) >= 0)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=8))
def test_weights_may_have_any_magnitude(weights):
    total = Rows.of([np.arange(len(weights))], [np.array(weights)]).total[0].astype(np.float64)
    share = np.array(weights) / max(weights)
    np.testing.assert_allclose(total, np.cumsum(share) / share.sum() * 2.0**32, atol=2.0)


def test_the_smallest_and_largest_draws_stay_inside_the_replica():
    """Padding must lead neither to another replica's row nor to one of weight zero."""
    rows = Rows.of([np.arange(4), np.array([7, 8, 9])], [np.array([1, 1, 1, 0]), np.ones(3)])
    for bits, expected in ((2**32 - 1, [2, 9]), (0, [0, 7])):
        for index, total, row in zip(rows.index, rows.total, expected, strict=True):
            found = drawn(index, total, np.full(3, bits, np.uint32))
            np.testing.assert_array_equal(found, row)


@given(
    st.lists(st.sampled_from([0.0, 1e-9, 0.3, 1.0, 2.0, 1e6]), min_size=1, max_size=40),
    st.integers(0, 2**32 - 1),
)
def test_the_lookup_of_numpy_is_the_search_of_the_device(weights, seed):
    weights[-1] += 1.0  # at least one row has a weight
    rows = Rows.of([np.arange(len(weights))], [np.array(weights)])
    lookup = RowLookup.of(rows.index[0], rows.total[0])
    edges = rows.total[0].astype(np.int64)[:, None] + [-1, 0, 1]
    some = np.random.default_rng(seed).integers(2**32, size=64)
    bits = np.r_[0, 2**32 - 1, edges.ravel(), some].clip(0, 2**32 - 1).astype(np.uint32)
    padded = [np.pad(leaf[0], (0, 40 - len(leaf[0])), "edge") for leaf in rows]  # one program
    expected = drawn(*padded, np.resize(bits, 256))[: len(bits)]
    np.testing.assert_array_equal(lookup.drawn(bits.reshape(-1, 1))[:, 0], expected)


def test_shares_are_the_normalised_weights():
    weight = np.array([3.0, 0.0, 1.0, 4.0])
    rows = Rows.of([np.arange(4), np.arange(1)], [weight, np.ones(1)])
    shares = np.stack([weights_of(jnp.asarray(total)) for total in rows.total])
    np.testing.assert_allclose(shares, [[3 / 8, 1 / 8, 4 / 8, 0], [1, 0, 0, 0]], atol=1e-9)


def test_rows_without_weight_are_refused():
    with pytest.raises(TrainingError, match="replica 1 has no row of positive weight"):
        Rows.of([np.arange(2), np.arange(2)], [np.ones(2), np.zeros(2)])
