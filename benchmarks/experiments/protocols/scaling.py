"""Seconds and memory of fits and predictions on generated tables of growing length."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.experiments import specs
from benchmarks.experiments.cell import Cell
from benchmarks.experiments.protocols.fitting import Outcome, make_estimator
from benchmarks.timing import seconds_of, timed
from nkcme import metrics


def perform(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Time a fit and a prediction; nothing timed includes compilation."""
    n = int(cell.dataset)
    for run in runs:
        X, y = _table(n, cell.protocol["n_inputs"], run)
        estimator = make_estimator(cell).set_params(random_state=run)
        fit = fit_seconds(estimator, _twice_the_epochs(cell, run), X, y)
        result: dict[str, Any] = {"fit_seconds": fit.total}
        if fit.step is not None:
            result |= {
                "fit_seconds": fit.rest + specs.SCALING_STEPS * fit.step,
                "seconds_a_step": fit.step,
                "seconds_without_steps": fit.rest,
                "measured_steps": fit.n_steps,
            }
        rows = X[: cell.protocol["n_predicted"]]
        estimator.predict_interval(rows)
        seconds = seconds_of(partial(estimator.predict_interval, rows))
        result["predict_seconds"] = seconds * specs.SCALING_PREDICTED / len(rows)
        yield run, {"metrics": result}


class FitSeconds(NamedTuple):
    """Seconds of a fit: in total, per training step (None without steps), and of all the rest."""

    total: float
    step: float | None
    rest: float
    n_steps: int | None


def fit_seconds(estimator: Any, longer: Any | None, X: np.ndarray, y: np.ndarray) -> FitSeconds:
    """Time a fit, and split it into steps and the rest by another fit with more steps.

    ``longer`` is the estimator of that fit, or None for a method without steps. The difference of
    the two fits is the cost of the additional steps. The rest of the shorter fit does not depend on
    the number of steps: encoding the table, and what a method solves on all rows at the end.
    """
    total = _second_fit(estimator, X, y)
    n_steps = getattr(estimator, "n_steps_", None)
    if n_steps is None or longer is None:
        return FitSeconds(total, None, total, n_steps)
    longer_total = _second_fit(longer, X, y)
    # On a busy machine noise can exceed the difference of two short fits; it is never negative.
    step = max(longer_total - total, 0.0) / (longer.n_steps_ - n_steps)
    return FitSeconds(total, step, max(total - n_steps * step, 0.0), n_steps)


def _twice_the_epochs(cell: Cell, run: int) -> Any | None:
    """The estimator of a cell with twice the epochs, or None where the recipe sets no epochs."""
    if "epochs" not in cell.parameters:
        return None
    doubled = {k: 2 * v for k, v in cell.parameters.items() if k in ("epochs", "mean_epochs")}
    return make_estimator(cell).set_params(random_state=run, **doubled)


def _second_fit(estimator: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of a second fit: the first one compiles."""
    estimator.fit(X, y)
    return seconds_of(lambda: estimator.fit(X, y))


def perform_year(cell: Cell, runs: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """The recipe for Year on a generated table of its size: seconds per step, and peak memory."""
    n_rows, n_test = cell.protocol["n_rows"], cell.protocol["n_test"]
    for run in runs:
        X, y = _table(n_rows, cell.protocol["n_inputs"], run)
        before = _peak_memory()
        model = make_estimator(cell).set_params(random_state=run)
        fit = partial(model.fit, X[:-n_test], y[:-n_test])
        first, again = seconds_of(fit), seconds_of(fit)
        interval, predicted = timed(partial(model.predict_interval, X[-n_test:]))
        yield (
            run,
            {
                "metrics": {
                    "fit_seconds_with_compilation": first,
                    "fit_seconds": again,
                    "steps": model.n_steps_,
                    "seconds_a_step": again / model.n_steps_,
                    "predict_seconds": predicted,
                    "coverage": metrics.coverage(y[-n_test:], interval),
                    "table_gib": (X.nbytes + y.nbytes) / 2**30,
                    "host_gib_before": before["host_gib"],
                    **{f"{name}_peak": value for name, value in _peak_memory().items()},
                }
            },
        )


def _table(n_rows: int, n_inputs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal inputs; y depends on the first, and its spread on the second."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_inputs))
    return X, X[:, 0] + np.exp(0.3 * X[:, 1]) * rng.normal(size=n_rows)


def _peak_memory() -> dict[str, float]:
    """The peak memory of this process in GiB: on the host and, where known, on the device."""
    import resource  # not available on Windows

    unit = 1 if sys.platform == "darwin" else 1024  # getrusage: bytes on a Mac, else KiB
    peak = {"host_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30}
    stats = jax.devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        peak["device_gib"] = stats["peak_bytes_in_use"] / 2**30
    return peak
