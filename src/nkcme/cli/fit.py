"""What `nkcme fit` does: from a table to a saved model, with nothing lost on the way."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from nkcme import presets
from nkcme.errors import NkcmeError, TrainingError
from nkcme.estimators import ESTIMATORS, ConditionalEstimator
from nkcme.evaluation import evaluate
from nkcme.model_files import files as persistence
from nkcme.tables.files import read_table, split_target

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "quick": presets.QUICK,
    "paper-toy": presets.PAPER_TOY,
    "paper-uci-small": presets.PAPER_UCI_SMALL,
    "paper-uci-large": presets.PAPER_UCI_LARGE,
}


class FitStopped(KeyboardInterrupt):
    """Ctrl-C ended a fit whose state, ``step`` steps in, is kept in the file ``checkpoint``."""

    def __init__(self, step: int, checkpoint: Path):
        super().__init__(f"stopped by Ctrl-C at step {step}")
        self.step = step
        self.checkpoint = checkpoint


def fit_table(
    table: Path,
    target: str,
    out: Path,
    *,
    estimator: str = "NKCME",
    preset: str = "default",
    parameters: dict[str, Any] | None = None,
    seed: int = 0,
    test_size: float = 0.1,
    resume: bool = False,
) -> dict[str, Any]:
    """Fit a model to a table, save it at ``out`` and score it on rows that were held out.

    ``parameters`` go over those of the preset, which is NKCME's. Training keeps its state in
    ``out``.checkpoint until the model is saved; ``resume`` goes on from there. What can be refused
    is refused before training, so that no work is lost.
    """
    if estimator not in ESTIMATORS:
        raise NkcmeError(f"there is no estimator {estimator!r}; there are {', '.join(ESTIMATORS)}")
    if preset not in PRESETS:
        raise NkcmeError(f"there is no preset {preset!r}; there are {', '.join(PRESETS)}")
    if preset != "default" and estimator != "NKCME":
        raise NkcmeError(f"the preset {preset!r} is for NKCME, not for {estimator}; leave it out")
    if not 0 <= test_size < 1:
        raise NkcmeError(f"the test size must be at least 0 and below 1; got {test_size:g}")
    out = Path(os.path.abspath(out))
    checkpoint = checkpoint_of(out)
    persistence.check_destination(out)
    _check_checkpoint(checkpoint, resume)
    X, y = split_target(read_table(table), target)
    train, test = _split_rows(len(y), test_size, seed)
    chosen = PRESETS[preset] | (parameters or {}) | {"random_state": seed}
    model = _make(estimator, chosen, checkpoint)
    start = time.perf_counter()
    _fit_or_stop(model, X.iloc[train], y[train], checkpoint, resume)
    seconds = time.perf_counter() - start
    model.target_name_ = target
    if "checkpoint" in model.get_params():
        model.set_params(checkpoint=None)  # where it was trained is no part of a model
    model.save(out)
    checkpoint.unlink(missing_ok=True)
    return {
        "model": str(out),
        "target": target,
        "columns": len(X.columns),
        "rows": len(train),
        "estimator": estimator,
        "steps": getattr(model, "n_steps_", None),
        "bandwidth": getattr(model, "bandwidth_", None),
        "seconds": seconds,
        "metrics": evaluate(model, X.iloc[test], y[test]) if len(test) else None,
    }


def checkpoint_of(out: Path) -> Path:
    """Where a fit that will be saved at ``out`` keeps its state: beside it, not in it."""
    return out.with_name(f"{out.name}.checkpoint")


def _make(estimator: str, chosen: dict[str, Any], checkpoint: Path) -> ConditionalEstimator:
    """An estimator with the parameters chosen, and a checkpoint where it trains by steps."""
    known = ESTIMATORS[estimator]._get_param_names()
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise NkcmeError(f"{estimator} has no parameter {unknown[0]}; leave it out")
    return ESTIMATORS[estimator](
        **chosen, **({"checkpoint": checkpoint} if "checkpoint" in known else {})
    )


def _fit_or_stop(
    model: ConditionalEstimator, X: Any, y: np.ndarray, checkpoint: Path, resume: bool
) -> None:
    try:
        model.fit(X, y)
    except KeyboardInterrupt as error:
        if not checkpoint.exists():  # before the first checkpoint there is nothing to go on from
            raise
        step = persistence.read_checkpoint(checkpoint)[0]["step"]
        raise FitStopped(step, checkpoint) from error
    except TrainingError:
        if not resume:  # the run diverged: it would do so again from its checkpoint
            checkpoint.unlink(missing_ok=True)
        raise


def _split_rows(n_rows: int, test_size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to fit on and to test on, in the order of the table."""
    order = np.random.default_rng(seed).permutation(n_rows)
    n_test = round(test_size * n_rows)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def _check_checkpoint(checkpoint: Path, resume: bool) -> None:
    """Refuse a checkpoint that is not as expected, or that could not be written."""
    exists = os.path.lexists(checkpoint)
    if resume and not exists:
        raise NkcmeError(f"nothing to resume: there is no {checkpoint}; run without --resume")
    if exists and not resume:
        raise NkcmeError(
            f"{checkpoint} is left of a fit that was stopped; add --resume to go on from it, or "
            "delete it to start afresh"
        )
    if not checkpoint.parent.exists():  # that it can be made, the model's place has shown
        return
    try:
        with tempfile.TemporaryFile(dir=checkpoint.parent):
            pass
    except OSError as error:
        raise NkcmeError(
            f"{checkpoint} cannot be written ({error.strerror}); choose another place for the model"
        ) from error
