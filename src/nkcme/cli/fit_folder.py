"""`nkcme fit` for folders of Parquet files that are read as a stream, by one process or several."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkcme.cli.running import BAD_INPUT, print_note
from nkcme.cli.stopping import TrainingStopped, checkpoint_of
from nkcme.cli.training_rows import TableColumns
from nkcme.errors import NkcmeError, ProcessLostError, TrainingError
from nkcme.estimators.nkcme.stream_recipe import StreamRecipe
from nkcme.evaluation import evaluate
from nkcme.model_files import read_checkpoint
from nkcme.tables.parquet_folder import ParquetFolder, is_folder
from nkcme.tables.survey import need_target
from nkcme.tables.table_options import UNKNOWN, TableOptions
from nkcme.tables.table_summary import TableSummary

if TYPE_CHECKING:
    from nkcme.training.cluster import Cluster


def folder_to_stream(table: Path, cluster: Cluster | None) -> ParquetFolder | None:
    """The Parquet files of a table that is fitted as a stream; None for tables that are read whole.

    All of its files are opened: one that differs from the others is refused here.
    """
    if not is_folder(table):
        if cluster is not None:
            raise NkcmeError(
                f"--processes is for folders of Parquet files, {table} is one file; leave it out"
            )
        return None
    folder = ParquetFolder.open(table)
    if folder.n_rows >= StreamRecipe().from_rows:
        return folder
    if cluster is not None:
        raise NkcmeError(
            f"{table} has {folder.n_rows} rows, which one process fits in memory; leave out "
            "--processes"
        )
    return None


def need_stream(columns: TableColumns, options: TableOptions, estimator: str) -> None:
    """Refuse options that are for tables in memory."""
    given = {
        "--weights": columns.weights,
        "--group": columns.group,
        "--time": columns.time,
        "--drop-missing-target": columns.drop_missing_target,
        "--sep, --decimal, --encoding and --na": options != UNKNOWN,
    }
    for name in (name for name, value in given.items() if value):
        raise NkcmeError(f"{name}: not for a folder that is read as a stream; leave it out")
    if estimator != "NKCME":
        raise NkcmeError(f"a folder that is read as a stream is for NKCME, not for {estimator}")


def fit_folder(
    model: Any,
    folder: ParquetFolder,
    target: str,
    out: Path,
    *,
    cluster: Cluster | None,
    show_columns: Callable[[TableSummary], object] | None,
    scored: bool,
) -> dict[str, Any]:
    """Fit a model to a folder, save it at ``out``, and score it on rows that were held out."""
    need_target(folder, target)
    checkpoint = checkpoint_of(out)
    start = time.perf_counter()
    try:
        model.fit([str(file) for file in folder.files], target=target, cluster=cluster)
    except KeyboardInterrupt as error:
        if not checkpoint.exists():
            raise
        raise TrainingStopped(read_checkpoint(checkpoint)[0]["step"], checkpoint) from error
    except ProcessLostError as error:
        if cluster is None or cluster.coordinator is None:
            raise
        # JAX would wait for the lost process when this one ends.
        print_note(str(error))
        sys.stderr.flush()
        os._exit(BAD_INPUT)
    except TrainingError:
        checkpoint.unlink(missing_ok=True)  # the run diverged, and would again
        raise
    seconds = time.perf_counter() - start
    if show_columns is not None:
        show_columns(model.columns_)
    if cluster is None or cluster.process_id in (None, 0):
        save_fitted(model, target, out, checkpoint)
    rows = model.held_out_rows_
    metrics = None
    if scored:
        metrics = evaluate(model, rows.drop_columns([target]), rows.column(target).to_numpy())
    return {
        **facts_of(model, target, out, seconds),
        "columns": len(folder.names) - 1,
        "rows": folder.n_rows,
        "read": [asdict(column) for column in model.columns_],
        "doubts": list(model.columns_.doubts),
        "estimator": type(model).__name__,
        "metrics": metrics,
    }


def save_fitted(model: Any, target: str, out: Path, checkpoint: Path) -> None:
    """Save a fitted model, and remove the checkpoint of its training."""
    model.target_name_ = target
    if "checkpoint" in model.get_params():
        model.set_params(checkpoint=None)  # a path of the training run, not of the model
    model.save(out)
    checkpoint.unlink(missing_ok=True)


def facts_of(model: Any, target: str, out: Path, seconds: float) -> dict[str, Any]:
    """What a fit chose and took, for its result."""
    return {
        "model": str(out),
        "target": target,
        "steps": getattr(model, "n_steps_", None),
        "bandwidth": getattr(model, "bandwidth_", None),
        "support": str(model.support_) if hasattr(model, "support_") else None,
        "transform": getattr(model, "transform_", None),
        "seconds": seconds,
    }
