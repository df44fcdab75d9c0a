"""Arguments of metrics that do not fit are refused; explanations are single sentences."""

import numpy as np
import pytest

from nkcme import metrics
from nkcme.errors import NkcmeError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.was1([1.0], [[1.0]]),
            r"samples must have shape \(n_draws, n_rows\) and not be empty, got \(1,\)",
        ),
        (lambda: metrics.was1(np.ones((3, 2)), np.ones((3, 4))), r"truth must have 2 rows.* got 4"),
        (lambda: metrics.was1([[np.nan]], [[1.0]]), "samples must be finite, got 1 NaN or inf"),
        (lambda: metrics.qice([[1.0]], [[1.0]]), r"y must have shape \(n_rows,\).*got \(1, 1\)"),
        (lambda: metrics.qice([1.0, 2.0], [[1.0]]), "y must have 1 rows.*got 2"),
        (lambda: metrics.qice([1.0], [[1.0]], n_bins=0), "n_bins must be at least 1, got 0"),
        (lambda: metrics.qice_from_counts([0, 0]), "counts must be non-negative and not all zero"),
        (lambda: metrics.qice_floor(0), "n_rows must be at least 1, got 0"),
        (lambda: metrics.rmse([], []), r"y must have shape.*not be empty, got \(0,\)"),
        (lambda: metrics.rmse(["a"], [1.0]), "y must be an array of numbers.*got a list that is"),
        (lambda: metrics.rmse([1.0], [1.0, 2.0]), "prediction must have 1 rows.*got 2"),
        (lambda: metrics.coverage([1.0], [[1.0, 2.0, 3.0]]), r"shape \(n_rows, 2\), got \(1, 3\)"),
        (
            lambda: metrics.interval_width([[0, 1], [2, 1]]),
            r"lower <= upper.*\[2.0, 1.0\] in row 1",
        ),
        (lambda: metrics.interval_width([[np.nan, 1]]), "lower <= upper"),
        (lambda: metrics.coverage_curve([0.5], [90]), r"levels must lie in \[0, 1\]"),
        (lambda: metrics.nll([np.nan]), "logpdf must hold numbers or -inf"),
        (lambda: metrics.energy_score([1.0], np.zeros((3, 1, 2))), "y must have shape"),
        (lambda: metrics.energy_score([[1.0]], np.zeros((3, 1, 2))), r"\(1, 2\), as draws do"),
        (lambda: metrics.energy_score([[np.nan, 1]], np.zeros((3, 1, 2))), "must be finite"),
        (
            lambda: metrics.sliced_wasserstein1(np.zeros((3, 1, 2)), np.zeros((3, 1, 3))),
            "1 rows and 2 outputs",
        ),
    ],
)
def test_bad_arguments_are_refused_in_one_line(call, message):
    with pytest.raises(NkcmeError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_every_explanation_is_one_sentence_with_the_better_direction():
    for sentence in metrics.EXPLANATIONS.values():
        assert sentence.endswith(".")
        assert ". " not in sentence
        assert "better" in sentence
