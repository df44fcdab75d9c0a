"""Minibatches: the random numbers of each step, and the rows they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nkcme.training.minibatches import (
    DeviceMinibatches,
    HostMinibatches,
    device_random_words,
    random_words,
)
from nkcme.training.rows import Rows

KEYS = np.array([[1, 2], [3, 4], [1, 3]], np.uint32)


generators = pytest.mark.parametrize("words", [random_words, device_random_words])


@generators
@pytest.mark.parametrize("batch_size", [1, 6, 7, 128])
def test_the_numbers_of_a_step_do_not_depend_on_where_a_chunk_begins(batch_size, words):
    whole = words(KEYS, 0, 12, batch_size)
    later = words(KEYS[1:], 7, 5, batch_size)
    for ours, theirs in zip(later, whole, strict=True):
        np.testing.assert_array_equal(ours, theirs[7:, 1:])


@generators
def test_random_numbers_are_uniform_and_differ_between_steps_and_replicas(words):
    keys, bits = map(np.asarray, words(KEYS, 3, 50, 100))
    assert keys.shape == (50, 3, 2)
    assert len(np.unique(bits)) > 0.999 * bits.size
    assert stats.kstest(bits.ravel() / 2.0**32, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("kind", [HostMinibatches, DeviceMinibatches])
def test_minibatches_have_the_rows_of_their_replica(kind):
    table = {"x": np.arange(20.0, dtype=np.float32)[:, None], "number": np.arange(20)}
    minibatches = kind(table, 8)
    rows = Rows.of([np.arange(3), np.arange(5), np.arange(5, 20), np.array([7])])
    drawn, keys = minibatches.of_steps(4, KEYS, minibatches.rows(rows, slice(1, 4)), 0)
    assert drawn["x"].shape == (4, 3, 8, 1)
    assert keys.shape == (4, 3, 2)
    np.testing.assert_array_equal(drawn["x"][..., 0], drawn["number"])
    of_replicas = [set(np.unique(drawn["number"][:, i])) for i in range(3)]
    assert of_replicas[0] <= set(range(5))
    assert of_replicas[1] <= set(range(5, 20))
    assert of_replicas[2] == {7}
