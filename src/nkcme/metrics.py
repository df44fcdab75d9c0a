"""How good is a predicted conditional distribution? Every score of the project, in NumPy float64.

Axes are the same everywhere: draws come first, so samples are (n_draws, n_rows), of d > 1 outputs
(n_draws, n_rows, d); quantiles are (n_rows, n_q); intervals are (n_rows, 2). Nothing here knows a
model: a score takes the truth and what was predicted, and gives one number a row or one number.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.stats import binom

from nkcme.errors import NkcmeError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

EXPLANATIONS: dict[str, str] = {
    "was1": (
        "Average distance, in units of y, by which predicted draws must be moved to become draws "
        "of the true distribution (Wasserstein-1); lower is better, 0 is perfect."
    ),
    "qice": (
        "Average gap between the share of true values in each tenth of the prediction and the 10 % "
        "that belong there; lower is better, and a perfect model still shows the scatter of a "
        "finite test set."
    ),
    "rmse": (
        "Typical error of the predicted mean, in units of y (root mean squared error); "
        "lower is better."
    ),
    "crps": (
        "Error of the whole predicted distribution, in units of y, equal to the absolute error "
        "when the prediction is a single value; lower is better."
    ),
    "sliced_was1": (
        "Of several outputs, the Wasserstein-1 distance of draws and truth seen along one "
        "direction, on average over directions; lower is better, 0 is perfect."
    ),
    "energy_score": (
        "Error of the whole predicted joint distribution of several outputs, equal to the distance "
        "when the prediction is a single point, and to the CRPS for one output; lower is better."
    ),
    "nll": (
        "Average surprise at the true values, minus the logarithm of the predicted density there; "
        "lower is better, and it can be negative."
    ),
    "pit": (
        "Where each true value falls in its predicted distribution, from 0 (below everything) to "
        "1 (above everything); the flatter its histogram the better."
    ),
    "coverage": (
        "Share of true values inside their predicted interval; the closer to the interval's "
        "nominal level the better."
    ),
    "interval_width": (
        "Average length of the predicted intervals, in units of y; lower is better among models "
        "whose coverage is right."
    ),
}

# Temporary arrays over (n_draws, n_rows) are built for at most this many draws at a time (32 MiB).
_CHUNK_VALUES = 2**22


# Distances between distributions ------------------------------------------------------------------


def wasserstein1(samples: npt.ArrayLike, truth: npt.ArrayLike) -> FloatArray:
    """Wasserstein-1 distance of two empirical measures at each row, (n_rows,).

    W1 = ∫_0^1 |F^-1(u) - G^-1(u)| du. With n and m equally weighted draws both quantile functions
    are steps that jump at multiples of 1/n and 1/m, at the same u in every row, so the integral is
    one weighted sum over the merged steps. The draw counts (n, n_rows) and (m, n_rows) may differ.
    """
    a = np.sort(_draws("samples", samples), axis=0)
    b = np.sort(_draws("truth", truth, n_rows=a.shape[1]), axis=0)
    n, m = len(a), len(b)
    # Jumps in units of 1/(n m), so that equal fractions are equal integers.
    jumps = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    start, lengths = jumps[:-1], np.diff(jumps) / (n * m)
    return lengths @ np.abs(a[start // m] - b[start // n])


def was1(samples: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Mean over rows of the Wasserstein-1 distance: the paper's score on toy data."""
    return float(wasserstein1(samples, truth).mean())


def sliced_wasserstein1(
    samples: npt.ArrayLike, truth: npt.ArrayLike, n_directions: int = 100
) -> FloatArray:
    """Sliced Wasserstein-1 distance of two empirical measures of d outputs at each row, (n_rows,).

    The mean of W1 over ``n_directions`` of the unit sphere on which draws (n, n_rows, d) and
    (m, n_rows, d) are projected: zero for equal measures only, as all directions together tell a
    measure (Cramer and Wold). The directions are the same in every call; of two outputs they are
    evenly spaced.
    """
    a = _joint_draws("samples", samples)
    b = _joint_draws("truth", truth, like=a)
    directions = _directions(a.shape[2], _positive("n_directions", n_directions))
    return np.mean([wasserstein1(a @ v, b @ v) for v in directions], axis=0)


def _directions(d: int, n: int) -> FloatArray:
    """Unit vectors (n, d); opposite ones see the same, so half a turn does for two outputs."""
    if d == 2:
        angle = np.pi * (np.arange(n) + 0.5) / n
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    normal = np.random.default_rng(0).standard_normal((n, d))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def energy_score(y: npt.ArrayLike, samples: npt.ArrayLike) -> FloatArray:
    """Energy score of the draws (n_draws, n_rows, d) at each row's y (n_rows, d): (n_rows,).

    ES = E|X - y| - E|X - X'| / 2, a proper score of the joint distribution (Gneiting and Raftery,
    2007), computed exactly for the empirical measure of the draws in O(n_draws^2). As an estimate
    of that of the law the draws came from it is biased upwards by E|X - X'| / (2 n_draws).
    """
    draws = _joint_draws("samples", samples)
    observed = _numbers("y", y, ndim=2, axes="(n_rows, d)")
    if observed.shape != draws.shape[1:]:
        raise NkcmeError(f"y must have shape {draws.shape[1:]}, as draws do, got {observed.shape}")
    _check_finite("y", observed)
    rows = np.moveaxis(draws, 1, 0)
    to_y = np.mean(np.linalg.norm(rows - observed[:, None], axis=2), axis=1)
    return to_y - 0.5 * np.array([cdist(row, row).mean() for row in rows])


def crps_ensemble(y: npt.ArrayLike, samples: npt.ArrayLike, *, fair: bool = False) -> FloatArray:
    """Continuous ranked probability score of the draws at each row, (n_rows,).

    CRPS = ∫ (F(t) - 1{y <= t})^2 dt = E|X - y| - E|X - X'| / 2, computed exactly for the empirical
    measure F of the draws (scoringrules' quantile decomposition, O(n_draws log n_draws)). As an
    estimate of the law the draws came from it is biased upwards by E|X - X'| / (2 n_draws). With
    ``fair`` it is the estimate without that bias, in which a draw is not paired with itself; it
    needs two independent draws or more.
    """
    # Here and not above: metrics must import where scoringrules is not installed.
    import scoringrules

    draws = _draws("samples", samples)
    observed = _rows("y", y, n_rows=draws.shape[1])
    score = np.empty_like(observed)
    for rows in _row_chunks(draws):
        score[rows] = scoringrules.crps_ensemble(
            observed[rows], draws[:, rows].T, estimator="pwm" if fair else "qd", backend="numpy"
        )
    return score


# Calibration --------------------------------------------------------------------------------------


def decile_counts(y: npt.ArrayLike, samples: npt.ArrayLike, n_bins: int = 10) -> IntArray:
    """How many true values fall into each of n_bins equally likely bins of their draws, (n_bins,).

    The bins of a row lie between consecutive quantiles 0, 1/n_bins, ..., 1 of its draws and include
    their upper edge. A y below the lowest draw counts into the first bin, one above the highest
    into the last. For calibrated draws every count is n_rows / n_bins on average.
    """
    draws = _draws("samples", samples)
    observed = _rows("y", y, n_rows=draws.shape[1])
    inner_levels = np.arange(1, _positive("n_bins", n_bins)) / n_bins
    counts = np.zeros(n_bins, dtype=np.int64)
    for rows in _row_chunks(draws):
        edges = np.quantile(draws[:, rows], inner_levels, axis=0)
        # The outermost edges separate nothing: what lies beyond them counts into the end bins.
        bins = np.sum(observed[rows] > edges, axis=0)
        counts += np.bincount(bins, minlength=n_bins)
    return counts


def qice_from_counts(counts: npt.ArrayLike) -> float:
    """Quantile interval coverage error, (1/L) Σ_l |counts_l / n - 1/L|, as a fraction."""
    in_bin = _rows("counts", counts)
    if np.any(in_bin < 0) or not in_bin.any():
        raise NkcmeError(f"counts must be non-negative and not all zero, got {in_bin.tolist()}")
    return float(np.mean(np.abs(in_bin / in_bin.sum() - 1 / len(in_bin))))


def qice(y: npt.ArrayLike, samples: npt.ArrayLike, n_bins: int = 10) -> float:
    """Quantile interval coverage error of draws (n_draws, n_rows), as a fraction (x100: percent).

    0 when each bin of `decile_counts` holds the same number of true values. Even a perfect model
    does not reach it on a finite test set: compare with `qice_floor`.
    """
    return qice_from_counts(decile_counts(y, samples, n_bins))


def qice_floor(n_rows: int, n_bins: int = 10) -> float:
    """The QICE, as a fraction, that a perfectly calibrated model can expect on n_rows test rows.

    Each count is then Binomial(n, p = 1/L), so the floor is E|Bin(n, p)/n - p|, the binomial's mean
    absolute deviation over n, which de Moivre gave exactly: 2 k (1 - p) P(Bin = k) / n with
    k = floor(n p) + 1.
    """
    n, p = _positive("n_rows", n_rows), 1 / _positive("n_bins", n_bins)
    k = n // n_bins + 1
    return float(2 * k * (1 - p) * binom.pmf(k, n, p) / n)


def pit(cdf_at_y: npt.ArrayLike) -> FloatArray:
    """Probability integral transform F(y | x) of each row, (n_rows,), from the predicted CDF at y.

    Uniform on [0, 1] when the model is calibrated. Values outside [0, 1] by no more than float32
    rounding are clipped; others are refused, because they come from no distribution function.
    """
    values = _rows("cdf_at_y", cdf_at_y)
    rounding = 1e-5
    _check_range("cdf_at_y", values, -rounding, 1 + rounding, "[0, 1]")
    return np.clip(values, 0.0, 1.0)


def pit_from_samples(y: npt.ArrayLike, samples: npt.ArrayLike) -> FloatArray:
    """Probability integral transform of each row, (n_rows,), from draws (n_draws, n_rows).

    The share of draws below y plus half the share equal to y, so that ties (herded draws lie on a
    grid) push it neither up nor down.
    """
    draws = _draws("samples", samples)
    observed = _rows("y", y, n_rows=draws.shape[1])
    return (np.mean(draws < observed, axis=0) + np.mean(draws <= observed, axis=0)) / 2


def coverage(y: npt.ArrayLike, interval: npt.ArrayLike) -> float:
    """Share of rows whose y lies in their closed interval (n_rows, 2) of lower and upper ends."""
    ends = _intervals(interval)
    observed = _rows("y", y, n_rows=len(ends))
    return float(np.mean((ends[:, 0] <= observed) & (observed <= ends[:, 1])))


def interval_width(interval: npt.ArrayLike) -> float:
    """Mean length of intervals (n_rows, 2): among models of equal coverage, shorter is better."""
    ends = _intervals(interval)
    return float(np.mean(ends[:, 1] - ends[:, 0]))


def coverage_curve(pit_values: npt.ArrayLike, levels: npt.ArrayLike) -> FloatArray:
    """Share of rows whose central interval of each nominal level contains y, (n_levels,).

    The central interval of level c runs from quantile (1 - c)/2 to (1 + c)/2, so it contains y
    exactly when |PIT - 1/2| <= c/2: one set of PIT values gives the whole curve. A calibrated
    model's curve is the diagonal.
    """
    off_centre = np.abs(pit(pit_values) - 0.5)
    nominal = _rows("levels", levels)
    _check_range("levels", nominal, 0.0, 1.0, "[0, 1]")
    return np.searchsorted(np.sort(off_centre), nominal / 2, side="right") / len(off_centre)


# Point prediction and density ---------------------------------------------------------------------


def rmse(y: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
    """Root mean squared error of a point prediction, sqrt(mean (y - prediction)^2)."""
    observed = _rows("y", y)
    predicted = _rows("prediction", prediction, n_rows=len(observed))
    return float(np.sqrt(np.mean((observed - predicted) ** 2)))


def nll(logpdf: npt.ArrayLike) -> float:
    """Mean negative log-likelihood from the log density at each row's y, -(1/n) Σ log p(y_i | x_i).

    A row of density zero (logpdf -inf) makes it infinite, as it must.
    """
    log_density = _numbers("logpdf", logpdf, ndim=1, axes="(n_rows,)")
    if np.any(np.isnan(log_density) | np.isposinf(log_density)):
        raise NkcmeError("logpdf must hold numbers or -inf, got NaN or +inf")
    return float(-np.mean(log_density))


# Validation ---------------------------------------------------------------------------------------


def _numbers(name: str, values: npt.ArrayLike, *, ndim: int, axes: str) -> FloatArray:
    """Values as a non-empty float64 array of the given number of axes."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise NkcmeError(
            f"{name} must be an array of numbers of shape {axes}, got a {kind} that is not"
        ) from None
    if array.ndim != ndim or array.size == 0:
        raise NkcmeError(f"{name} must have shape {axes} and not be empty, got {array.shape}")
    return array


def _check_rows(name: str, got: int, expected: int | None) -> None:
    if expected is not None and got != expected:
        raise NkcmeError(f"{name} must have {expected} rows, as many as the rest, got {got}")


def _check_finite(name: str, array: FloatArray) -> None:
    n_bad = array.size - np.count_nonzero(np.isfinite(array))
    if n_bad:
        raise NkcmeError(f"{name} must be finite, got {n_bad} NaN or infinite of {array.size}")


def _check_range(name: str, array: FloatArray, low: float, high: float, expected: str) -> None:
    if np.any((array < low) | (array > high)):
        raise NkcmeError(
            f"{name} must lie in {expected}, got values from {array.min():g} to {array.max():g}"
        )


def _rows(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """One finite number a row, (n_rows,)."""
    array = _numbers(name, values, ndim=1, axes="(n_rows,)")
    _check_rows(name, len(array), n_rows)
    _check_finite(name, array)
    return array


def _draws(name: str, values: npt.ArrayLike, n_rows: int | None = None) -> FloatArray:
    """Finite draws, (n_draws, n_rows)."""
    array = _numbers(name, values, ndim=2, axes="(n_draws, n_rows)")
    _check_rows(name, array.shape[1], n_rows)
    _check_finite(name, array)
    return array


def _joint_draws(name: str, values: npt.ArrayLike, like: FloatArray | None = None) -> FloatArray:
    """Finite draws of several outputs, (n_draws, n_rows, d); rows and outputs as those of like."""
    array = _numbers(name, values, ndim=3, axes="(n_draws, n_rows, d)")
    if like is not None and array.shape[1:] != like.shape[1:]:
        raise NkcmeError(
            f"{name} must have {like.shape[1]} rows and {like.shape[2]} outputs, as the rest, got "
            f"{array.shape[1]} and {array.shape[2]}"
        )
    _check_finite(name, array)
    return array


def _intervals(values: npt.ArrayLike) -> FloatArray:
    """Lower and upper ends, (n_rows, 2); an end may be infinite, as that of a 100 % interval is."""
    array = _numbers("interval", values, ndim=2, axes="(n_rows, 2)")
    if array.shape[1] != 2:
        raise NkcmeError(f"interval must have shape (n_rows, 2), got {array.shape}")
    lower, upper = array.T
    ordered = (lower <= upper) & (lower < np.inf) & (upper > -np.inf)
    if not ordered.all():
        row = int(np.argmin(ordered))
        raise NkcmeError(
            f"interval must hold lower <= upper in each row, got {array[row].tolist()} in row {row}"
        )
    return array


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise NkcmeError(f"{name} must be at least 1, got {value}")
    return value


def _row_chunks(draws: FloatArray) -> Iterator[slice]:
    """Slices over the rows of draws (n_draws, n_rows), so that temporaries stay small."""
    n_draws, n_rows = draws.shape
    size = max(1, _CHUNK_VALUES // n_draws)
    for start in range(0, n_rows, size):
        yield slice(start, start + size)
