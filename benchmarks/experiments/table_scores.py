"""Scores of predicted distributions on the test rows of a table, for our methods and for peers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nkcme import metrics

#: The scored central intervals: the names of their coverages, and the levels of their ends.
INTERVALS = {"coverage_50": (0.25, 0.75), "coverage": (0.05, 0.95), "coverage_99": (0.005, 0.995)}
_TAILS = (0.001, 0.999)
_DECILES = tuple(k / 10 for k in range(1, 10))

#: The levels of the quantiles that are scored.
LEVELS = tuple(
    sorted({*_TAILS, *_DECILES, *(level for ends in INTERVALS.values() for level in ends)})
)


class Predicted(NamedTuple):
    """The predictions for some rows.

    ``quantiles`` (n_rows, len(LEVELS)) are NaN at levels that a method cannot estimate; ``crps``
    and ``log_density`` (n_rows,) are those at the observed y. The log density is None where a
    method predicts no density. ``pit`` (n_rows, 2) are P(Y < y) and P(Y <= y), where a method
    predicts them: shares of rows then count only the part of a point mass that lies within.
    """

    quantiles: np.ndarray
    mean: np.ndarray
    crps: np.ndarray
    log_density: np.ndarray | None
    pit: np.ndarray | None = None


def score(y: np.ndarray, predicted: Predicted) -> dict[str, Any]:
    """The ``metrics`` and ``bins`` of a row. A metric that cannot be estimated is None."""
    quantile = dict(zip(LEVELS, predicted.quantiles.T, strict=True))
    edges = np.stack([quantile[level] for level in _DECILES])
    # As in `metrics.decile_counts`: a bin includes its upper edge.
    bins = np.bincount(np.sum(y > edges, axis=0), minlength=10).astype(float)
    low, high = _TAILS
    shares = {
        name: _share((quantile[a] <= y) & (y <= quantile[b]), quantile[a])
        for name, (a, b) in INTERVALS.items()
    }
    if predicted.pit is not None:
        bins = np.array([_within(predicted.pit, k / 10, (k + 1) / 10).sum() for k in range(10)])
        shares |= interval_shares(predicted.pit)
    return {
        "metrics": {
            "crps": float(predicted.crps.mean()),
            "rmse": metrics.rmse(y, predicted.mean),
            **_density_scores(predicted.log_density),
            "qice_percent": 100 * metrics.qice_from_counts(bins),
            **shares,
            "width": float(np.mean(quantile[0.95] - quantile[0.05])),
            "below_0.001": _share(y < quantile[low], quantile[low]),
            "above_0.999": _share(y > quantile[high], quantile[high]),
        },
        "bins": bins.round(6).tolist(),
    }


def interval_shares(pit: np.ndarray) -> dict[str, float]:
    """The coverages of `INTERVALS` from a `Predicted.pit`."""
    return {name: float(_within(pit, *ends).mean()) for name, ends in INTERVALS.items()}


def _within(pit: np.ndarray, low: float, high: float) -> np.ndarray:
    """The share of each row's jump from P(Y < y) to P(Y <= y) that lies between two levels."""
    start, end = pit.T
    inside = np.minimum(end, high) - np.maximum(start, low)
    jumps = end - start > 1e-9
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(inside / (end - start), 0.0, 1.0)
    last = high == 1.0
    return np.where(jumps, share, (end >= low) & ((end < high) | last))


def _density_scores(log_density: np.ndarray | None) -> dict[str, float | int | None]:
    """The mean negative log density of the rows where it is finite, and the number of others."""
    if log_density is None:
        return {"nll": None, "nll_not_finite": None}
    finite = np.isfinite(log_density)
    nll = float(-log_density[finite].mean()) if finite.any() else None
    return {"nll": nll, "nll_not_finite": int(np.sum(~finite))}


def _share(chosen: np.ndarray, quantile: np.ndarray) -> float | None:
    """The share of chosen rows, or None where the quantile could not be estimated."""
    return None if np.isnan(quantile).any() else float(np.mean(chosen))
