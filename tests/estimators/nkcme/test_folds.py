"""Folds: every row is held out once per repeat, and predicted by the member that held it out."""

import numpy as np
import pytest

from nkcme.estimators.nkcme.folds import Folds
from nkcme.tables.row_groups import RowGroups, held_out_groups


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


def test_the_rows_of_a_group_share_a_fold_and_folds_are_balanced():
    groups = np.random.default_rng(0).integers(0, 40, 1000)
    folds = Folds.assign_groups(RowGroups(groups), 5, 3, seed=0)
    for fold in folds.fold:
        assert all(len(np.unique(fold[groups == group])) == 1 for group in np.unique(groups))
        assert np.ptp(np.bincount(fold, minlength=5)) < 60
    assert (folds.fold[0] != folds.fold[1]).any()
    assert Folds.assign_groups(RowGroups(np.array([3, 3, 9])), 5, 1, seed=0).n_folds == 2


@pytest.mark.parametrize(("n_times", "n_folds"), [(100, 5), (7, 5), (5, 5), (3, 5)])
def test_folds_by_time_are_blocks(n_times, n_folds):
    times = np.repeat(np.arange(n_times), 2)
    folds = Folds.assign_groups(RowGroups(times, by_time=True), n_folds, 2, seed=0)
    for fold in folds.fold:
        assert set(fold) == set(range(folds.n_folds))
        assert (fold[::2] == fold[1::2]).all()
        # The last block may go on at the start.
        assert np.count_nonzero(np.diff(fold)) <= folds.n_folds
    assert np.count_nonzero(np.diff(folds.fold[0])) == folds.n_folds - 1


@pytest.mark.parametrize("by_time", [False, True])
def test_whole_groups_are_held_out(by_time):
    codes = np.random.default_rng(0).integers(0, 50, 2000)
    held = held_out_groups(RowGroups(codes, by_time), 200, np.random.default_rng(1))
    assert not set(codes[held]) & set(codes[~held])
    assert 150 < held.sum() < 250
    if by_time:
        assert codes[held].min() > codes[~held].max()
