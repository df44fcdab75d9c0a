"""Comparisons of two commits: pairs, changes, and checkouts that are none."""

from __future__ import annotations

from math import log, sqrt
from pathlib import Path

import pytest

from benchmarks.checks import commits
from nkcme.errors import NkcmeError


def row(commit, fold, seed=0, crps=1.0, table="sales"):
    about = {"table": table, "fold": fold, "seed": seed, "commit_fitted": commit}
    return about | {"crps": crps, "rmse": 2 * crps, "fit_seconds": 5.0}


def test_changes_are_means_over_pairs_of_the_same_fold_and_random_state():
    rows = [row("old", 0, crps=1.0), row("new", 0, crps=1.1), row("old", 1, crps=2.0)]
    rows += [row("new", 1, crps=2.0), row("new", 2), row("old", 0, seed=3)]  # two without partners
    rows += [row("old", 0, table="other"), row("new", 0, table="other", crps=9.0)]
    found = commits.compared("sales", "old", "new", rows)
    assert found["pairs"] == 2
    assert found["crps_change_percent"] == pytest.approx(100 * log(1.1) / 2)
    # Two values a and 0 have the standard deviation a / sqrt(2).
    assert found["crps_standard_error"] == pytest.approx(100 * log(1.1) / sqrt(2) / sqrt(2))
    assert found["rmse_change_percent"] == pytest.approx(found["crps_change_percent"])
    assert found["fit_seconds_change_percent"] == 0.0


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(NkcmeError, match="has no src/nkcme"):
        commits.main(tmp_path, None, [], 1, [0], tmp_path)


def test_a_tree_is_not_compared_with_itself(tmp_path):
    with pytest.raises(NkcmeError, match="check out another one"):
        commits.main(Path(commits.__file__).parents[2], None, [], 1, [0], tmp_path)
