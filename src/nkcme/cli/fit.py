"""The command `nkcme fit`: from a table to a saved model, resumable at any moment.

The estimator is imported once nothing is left to refuse, because it needs JAX.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from nkcme import presets
from nkcme.cli.fit_folder import facts_of, fit_folder, folder_to_stream, need_stream, save_fitted
from nkcme.cli.loading import Note
from nkcme.cli.stopping import TrainingStopped, checkpoint_of
from nkcme.cli.training_rows import TableColumns, TrainingRows, read_training_rows
from nkcme.errors import NkcmeError, TrainingError
from nkcme.estimators.registry import ESTIMATORS
from nkcme.evaluation import evaluate
from nkcme.model_files import check_destination, read_checkpoint
from nkcme.parameter_checks import need_number, need_one_of
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.sample_weights import need_enough_rows
from nkcme.tables.table_options import UNKNOWN, TableOptions
from nkcme.tables.table_summary import TableSummary

if TYPE_CHECKING:
    from nkcme.estimators.base import ConditionalEstimator
    from nkcme.training.cluster import Cluster

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "quick": presets.QUICK,
    "paper-toy": presets.PAPER_TOY,
    "paper-uci-small": presets.PAPER_UCI_SMALL,
    "paper-uci-large": presets.PAPER_UCI_LARGE,
}

#: The kernels that `--kernel` takes.
KERNEL_NAMES = ("gaussian", "laplace", "cauchy")

_OF_BASELINES = ("epochs", "validation_fraction")

#: The parameters that options set, of each estimator of this library.
OPTIONS: dict[str, tuple[str, ...]] = {
    "NKCME": ("kernel", *_OF_BASELINES, "bounds", "integer", "values", "transform"),
    "KernelCME": (),
    "DeepFeatureCME": ("epochs",),
    "MDN": _OF_BASELINES,
    "CARD": _OF_BASELINES,
    "SplineFlow": _OF_BASELINES,
}


def fit_table(
    table: Path,
    columns: TableColumns,
    out: Path,
    *,
    options: TableOptions = UNKNOWN,
    types: dict[str, str] | None = None,
    note: Note | None = None,
    show_columns: Callable[[TableSummary], object] | None = None,
    estimator: str = "NKCME",
    preset: str = "default",
    parameters: dict[str, Any] | None = None,
    seed: int = 0,
    test_size: float = 0.1,
    resume: bool = False,
    cluster: Cluster | None = None,
) -> dict[str, Any]:
    """Fit a model to a table, save it at ``out`` and score it on rows that were held out.

    ``parameters`` override those of the preset, which is for NKCME, and ``types`` those of columns
    that are found. ``show_columns`` gets how each column is read, before training. Training keeps
    its state in ``out``.checkpoint until the model is saved; ``resume`` continues from there. Bad
    input is refused before training, so that no work is lost. The Parquet files of a folder are
    read as a stream where they have many rows, or where the processes of a ``cluster`` fit them.
    """
    if estimator not in ESTIMATORS:
        raise NkcmeError(f"there is no estimator {estimator!r}; there are {', '.join(ESTIMATORS)}")
    if preset not in PRESETS:
        raise NkcmeError(f"there is no preset {preset!r}; there are {', '.join(PRESETS)}")
    if preset != "default" and estimator != "NKCME":
        raise NkcmeError(f"the preset {preset!r} is for NKCME, not for {estimator}; leave it out")
    parameters = parameters or {}
    _check_options(estimator, parameters)
    if not 0 <= test_size < 1:
        raise NkcmeError(f"the test size must be at least 0 and below 1; got {test_size:g}")
    out = Path(os.path.abspath(out))
    writes = cluster is None or cluster.process_id in (None, 0)
    if writes:
        check_destination(out)
    checkpoint = checkpoint_of(out)
    if writes:
        _check_checkpoint(checkpoint, resume)
    chosen = PRESETS[preset] | parameters | {"random_state": seed}
    folder = folder_to_stream(table, cluster)
    if folder is not None:
        need_stream(columns, options, estimator)
        chosen |= {} if types is None else {"columns": types}
        return fit_folder(
            _make(estimator, chosen, checkpoint),
            folder,
            columns.target,
            out,
            cluster=cluster,
            show_columns=show_columns,
            scored=test_size > 0,
        )
    rows = read_training_rows(table, columns, options, note or (lambda _: None))
    train, test = rows.split(test_size, seed)
    summary = _check_training_rows(train, types, parameters)
    chosen |= {} if types is None else {"columns": types}
    model = _make(estimator, chosen, checkpoint)
    if show_columns is not None and not resume:  # the fit that was stopped has shown them
        show_columns(summary)
    start = time.perf_counter()
    _fit_or_stop(model, train, checkpoint, resume)
    seconds = time.perf_counter() - start
    save_fitted(model, columns.target, out, checkpoint)
    return {
        **facts_of(model, columns.target, out, seconds),
        "columns": len(train.X.columns),
        "rows": len(train.y),
        "read": [asdict(column) for column in summary],
        "doubts": list(summary.doubts),
        "estimator": estimator,
        "metrics": evaluate(model, test.X, test.y) if len(test.y) else None,
    }


def _make(estimator: str, chosen: dict[str, Any], checkpoint: Path) -> ConditionalEstimator:
    """An estimator with the given parameters, and a checkpoint if it trains in steps."""
    cls = ESTIMATORS[estimator]
    resumable = "checkpoint" in cls._get_param_names()
    return cls(**chosen, **({"checkpoint": checkpoint} if resumable else {}))


def _check_options(estimator: str, parameters: dict[str, Any]) -> None:
    """Refuse parameters that the estimator lacks, and values that `fit` would refuse."""
    known = OPTIONS[estimator] if estimator in OPTIONS else ESTIMATORS[estimator]._get_param_names()
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise NkcmeError(f"{estimator} has no parameter {unknown[0]}; leave it out")
    if "kernel" in parameters:
        need_one_of("kernel", parameters["kernel"], KERNEL_NAMES)
    if "validation_fraction" in parameters:
        fraction = parameters["validation_fraction"]
        need_number("validation_fraction", fraction, least=0.0, below=1.0)
    _check_support(parameters)


def _check_support(parameters: dict[str, Any], y: np.ndarray | None = None) -> None:
    """Refuse a support that is none, and values of y outside of it."""
    if not parameters.keys() & {"bounds", "integer", "values"}:
        return
    from nkcme.estimators.nkcme.support_detection import given_support, need_inside

    given = {"bounds": None, "integer": False, "values": None} | parameters
    support = given_support(SimpleNamespace(**given))
    if support is not None and y is not None:
        need_inside(support, y)


def _check_training_rows(
    rows: TrainingRows, types: dict[str, str] | None, parameters: dict[str, Any]
) -> TableSummary:
    """How each column is read; refuses a table that `fit` would refuse."""
    need_enough_rows(len(rows.y))
    encoder = TableEncoder.fit(rows.X, sample_weight=rows.weight, types=types)
    _check_support(parameters, rows.y)
    return TableSummary.of(rows.X, encoder, rows.y[:, None], types)


def _fit_or_stop(
    model: ConditionalEstimator, rows: TrainingRows, checkpoint: Path, resume: bool
) -> None:
    # Baselines have no folds: for them, groups and times only decide which rows are held out.
    together = {"groups": rows.groups, "times": rows.times} if model._has_folds else {}
    try:
        model.fit(rows.X, rows.y, rows.weight, **together)
    except KeyboardInterrupt as error:
        if not checkpoint.exists():  # stopped before the first checkpoint: nothing to resume
            raise
        step = read_checkpoint(checkpoint)[0]["step"]
        raise TrainingStopped(step, checkpoint) from error
    except TrainingError:
        if not resume:  # the run diverged, and would diverge again from its checkpoint
            checkpoint.unlink(missing_ok=True)
        raise


def _check_checkpoint(checkpoint: Path, resume: bool) -> None:
    """Refuse a missing or unexpected checkpoint, and a path that cannot be written."""
    exists = os.path.lexists(checkpoint)
    if resume and not exists:
        raise NkcmeError(f"nothing to resume: there is no {checkpoint}; run without --resume")
    if exists and not resume:
        raise NkcmeError(
            f"{checkpoint} was left by a fit that was stopped; add --resume to continue it, or "
            "delete the file to start again"
        )
    if not checkpoint.parent.exists():  # check_destination has shown that it can be made
        return
    try:
        with tempfile.TemporaryFile(dir=checkpoint.parent):
            pass
    except OSError as error:
        raise NkcmeError(
            f"{checkpoint} cannot be written ({error.strerror}); choose another --out"
        ) from error
