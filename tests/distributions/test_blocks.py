"""Blocks cover all rows once and in order."""

import numpy as np
import pytest

from nkcme.distributions import blocks
from nkcme.distributions.blocks import count_that_fits, map_points, map_rows, row_slices


@pytest.mark.parametrize("n_rows", [0, 1, 5, 6, 7])
def test_row_slices_cover_all_rows_in_order(n_rows):
    rows = np.arange(n_rows)
    slices = list(row_slices(n_rows, 3))
    np.testing.assert_array_equal(np.concatenate([rows[:0], *(rows[s] for s in slices)]), rows)
    assert all(0 < s.stop - s.start <= 3 for s in slices)


def test_map_rows_concatenates_the_blocks_along_the_given_axis():
    a, b = np.arange(7.0), np.arange(14.0).reshape(7, 2)
    seen = []

    def f(a, b):
        seen.append(len(a))
        return a[:, None] + b

    np.testing.assert_array_equal(map_rows(f, a, b, block_rows=3), a[:, None] + b)
    assert seen == [3, 3, 1]
    across = map_rows(lambda a: np.stack([a, 2 * a]), a, block_rows=2, axis=1)
    np.testing.assert_array_equal(across, [a, 2 * a])
    assert map_rows(lambda a: a[:, None], a[:0], block_rows=3).shape == (0, 1)


def test_map_points_works_in_blocks_of_points():
    points = np.arange(10.0).reshape(1, 5, 2)
    result = map_points(lambda p: np.tile(p.sum(axis=2), (3, 1)), points, block_points=2)
    np.testing.assert_array_equal(result, np.tile(points.sum(axis=2), (3, 1)))


def test_a_block_holds_at_least_one_row_and_at_most_the_memory(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_MEMORY", 800)
    assert count_that_fits(10) == 10
    assert count_that_fits(0) == 100
    assert count_that_fits(10**9) == 1
