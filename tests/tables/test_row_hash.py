"""Hashes of row numbers: the same everywhere, even, and unrelated between seeds."""

import numpy as np

from nkcme.tables.row_hash import hash_limit, row_hash

ROWS = np.arange(100_000)


def test_a_hash_depends_on_the_row_and_the_seed_alone():
    np.testing.assert_array_equal(row_hash(ROWS, 3)[500:], row_hash(ROWS[500:], 3))
    assert np.mean(row_hash(ROWS, 3) == row_hash(ROWS, 4)) == 0


def test_a_share_of_rows_is_below_its_limit():
    chosen = row_hash(ROWS, 0) < hash_limit(0.2)
    assert abs(chosen.mean() - 0.2) < 4 * np.sqrt(0.16 / len(ROWS))
    # Neighbouring rows, and the choices of two seeds, are independent.
    other = row_hash(ROWS, 1) < hash_limit(0.2)
    for a, b in ((chosen[1:], chosen[:-1]), (chosen, other)):
        assert abs(np.mean(a & b) - 0.04) < 4 * np.sqrt(0.04 / len(ROWS))


def test_limits_of_all_and_of_none():
    assert (row_hash(ROWS, 0) < hash_limit(1.0)).all()
    assert not (row_hash(ROWS, 0) < hash_limit(0.0)).any()
