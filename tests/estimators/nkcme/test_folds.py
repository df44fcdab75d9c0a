"""Folds: every row is held out once per repeat, and predicted by the member that held it out."""

import numpy as np
import pytest

from nkcme.estimators.nkcme.folds import Folds


@pytest.mark.parametrize(("n_rows", "n_folds", "n_repeats"), [(17, 5, 3), (4, 5, 2), (1, 5, 1)])
def test_every_row_is_held_out_once_per_repeat(n_rows, n_folds, n_repeats):
    folds = Folds.assign(n_rows, n_folds, n_repeats, seed=0)
    assert folds.n_folds == min(n_folds, n_rows)
    assert folds.n_members == folds.n_repeats * folds.n_folds
    for repeat in range(n_repeats):
        members = range(repeat * folds.n_folds, (repeat + 1) * folds.n_folds)
        held_out = [folds.held_out_rows(member) for member in members]
        assert sorted(np.concatenate(held_out)) == list(range(n_rows))
        assert max(map(len, held_out)) - min(map(len, held_out)) <= 1
        for member, rows in zip(members, held_out, strict=True):
            assert sorted([*rows, *folds.training_rows(member)]) == list(range(n_rows))


def test_repeats_differ_and_follow_the_seed():
    one, same, other = (Folds.assign(50, 5, 2, seed).fold for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert (one[0] != one[1]).any()


def test_out_of_fold_predictions_come_from_members_that_held_the_row_out():
    folds = Folds.assign(23, 4, 3, seed=0)
    predicted = folds.out_of_fold(
        lambda member, rows: np.stack([np.full(len(rows), member), rows], 1)
    )
    assert predicted.shape == (3, 23, 2)
    for repeat in range(3):
        np.testing.assert_array_equal(predicted[repeat, :, 1], np.arange(23))
        np.testing.assert_array_equal(predicted[repeat, :, 0], repeat * 4 + folds.fold[repeat])
        assert all(row not in folds.training_rows(member) for member, row in predicted[repeat])
