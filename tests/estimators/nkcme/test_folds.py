"""Parts, and what an ensemble's mean gains over the mean out of part."""

import numpy as np
import pytest

from nkcme.estimators.nkcme.folds import Parts


@pytest.mark.parametrize(("n_rows", "n_parts", "n_deals"), [(17, 5, 3), (4, 5, 2), (1, 5, 1)])
def test_every_row_is_left_out_once_a_deal(n_rows, n_parts, n_deals):
    parts = Parts.deal(n_rows, n_parts, n_deals, seed=0)
    assert parts.n_parts == min(n_parts, n_rows)
    assert parts.n_members == parts.n_deals * parts.n_parts
    for deal in range(n_deals):
        members = range(deal * parts.n_parts, (deal + 1) * parts.n_parts)
        left_out = [parts.left_out_by(member) for member in members]
        assert sorted(np.concatenate(left_out)) == list(range(n_rows))
        assert max(map(len, left_out)) - min(map(len, left_out)) <= 1
        for member, rows in zip(members, left_out, strict=True):
            assert sorted([*rows, *parts.rows_of(member)]) == list(range(n_rows))


def test_deals_differ_and_follow_the_seed():
    one, same, other = (Parts.deal(50, 5, 2, seed).part for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert (one[0] != one[1]).any()


def test_out_of_part_is_what_the_one_said_who_had_not_seen_it():
    parts = Parts.deal(23, 4, 3, seed=0)
    for deal in range(3):
        told = parts.out_of_part(deal, lambda j, rows: np.stack([np.full(len(rows), j), rows], 1))
        np.testing.assert_array_equal(told[:, 1], np.arange(23))
        np.testing.assert_array_equal(told[:, 0], deal * 4 + parts.part[deal])
        assert all(row not in parts.rows_of(member) for member, row in told)
