"""Metrics of predicted conditional distributions, in NumPy and double precision.

Axes are the same everywhere: draws first, so that samples are (n_draws, n_rows), or
(n_draws, n_rows, d) for d > 1 outputs; quantiles are (n_rows, n_levels); intervals are (n_rows, 2).
A metric takes observed values and predictions, and returns one number per row or one in total.
"""

from nkcme.metrics.calibration import (
    coverage,
    coverage_curve,
    decile_counts,
    interval_width,
    pit,
    pit_from_samples,
    qice,
    qice_floor,
    qice_from_counts,
)
from nkcme.metrics.distances import sliced_wasserstein1, was1, wasserstein1
from nkcme.metrics.explanations import EXPLANATIONS
from nkcme.metrics.scores import crps_ensemble, energy_score, nll, rmse

__all__ = [
    "EXPLANATIONS",
    "coverage",
    "coverage_curve",
    "crps_ensemble",
    "decile_counts",
    "energy_score",
    "interval_width",
    "nll",
    "pit",
    "pit_from_samples",
    "qice",
    "qice_floor",
    "qice_from_counts",
    "rmse",
    "sliced_wasserstein1",
    "was1",
    "wasserstein1",
]
