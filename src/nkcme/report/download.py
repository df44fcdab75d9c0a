"""The predictions of a report as a CSV table inside the page, which a button saves."""

from __future__ import annotations

import numpy as np

from nkcme.evaluation import Evaluation

#: Of longer tables the page holds the first rows, so that a browser can open it.
MAX_ROWS = 100_000

_COLUMNS = {
    "actual": "y",
    "mean": "mean",
    "median": "median",
    "lower_0.9": "lower",
    "upper_0.9": "upper",
    "pit": "pit",
    "crps": "crps",
}


def download(results: Evaluation) -> str:
    """A button that saves the predictions, and the table itself: numbers only, as HTML."""
    n = min(len(results), MAX_ROWS)
    columns = [getattr(results, field)[:n] for field in _COLUMNS.values()]
    lines = [",".join(["row", *_COLUMNS])]
    lines += [
        ",".join([str(i + 1), *(f"{value:.9g}" for value in values)])
        for i, values in enumerate(np.stack(columns, axis=1))
    ]
    part = "" if n == len(results) else f" (the first {n:,} rows)"
    return (
        '<p><button type="button" data-save="predictions.csv">Download the predictions</button> '
        f"as CSV{part}: row, true value, mean, median, 90&nbsp;% interval, PIT and CRPS.</p>"
        f'<script type="text/csv">{chr(10).join(lines)}\n</script>'
    )
