"""A folder of Parquet files predicted into another folder, restartable at any moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nkcme.errors import TableError
from nkcme.prediction.models import load_once
from nkcme.prediction.predictor import Predictor
from nkcme.prediction.processes import run_in_processes
from nkcme.prediction.unit_files import Done, check_first_rows, is_finished, predict_unit
from nkcme.prediction.units import UNIT_ROWS, Unit, shard_of, units_of
from nkcme.tables.messages import listed, note_on_columns
from nkcme.tables.parquet_folder import ParquetFolder

#: Notes that are passed on about a folder; the others are counted.
_MAX_NOTES = 5


@dataclass(frozen=True)
class Placement:
    """Who predicts which units.

    Attributes
    ----------
    shard : (int, int)
        The number of this shard, counted from 1, and the number of shards.
    workers : int
        Processes of one thread each; with one, this process predicts on all its cores.
    cluster : str or None
        The address of a Ray cluster, whose cores predict instead.
    """

    shard: tuple[int, int] = (1, 1)
    workers: int = 1
    cluster: str | None = None

    def run(self, predictor: Predictor, units: list[Unit]) -> Iterator[Done]:
        """Predict units, and give each as it is finished."""
        work = partial(predict_unit, predictor)
        if self.cluster is not None:
            from nkcme.ray_tasks import run_on_ray

            return run_on_ray(work, units, self.cluster)
        if self.workers > 1:
            return run_in_processes(work, units, self.workers)
        return map(work, units)


class Tally(NamedTuple):
    """Files and rows that were written, and files that were there before."""

    files: int
    rows: int
    already_there: int


def predict_folder(
    predictor: Predictor,
    source: str | Path,
    out: Path,
    placement: Placement,
    note: Callable[[str], object],
    *,
    unit_rows: int = UNIT_ROWS,
) -> Tally:
    """Predict the Parquet files of a folder into files of the same names in another folder.

    Everything is checked before anything is written: the schemas of all files, and that the first
    row fits the model. A file that is finished is not written again.
    """
    source, out = os.path.abspath(source), Path(os.path.abspath(out))  # as workers need them
    table = ParquetFolder.open(source)
    _refuse_same_folder(source, out)
    needed = _needed_columns(table, predictor, note)
    units = units_of(needed, out, predictor, unit_rows)
    units = shard_of(units, *placement.shard)
    missing = [unit for unit in units if not is_finished(unit)]
    if missing:
        check_first_rows(predictor, missing[0])
    n_rows, notes = 0, 0
    for done in placement.run(predictor, missing):
        n_rows += done.n_rows
        for text in done.notes:
            notes += 1
            if notes <= _MAX_NOTES:
                note(text)
    if notes > _MAX_NOTES:
        note(f"{notes - _MAX_NOTES} more such notes on other files")
    return Tally(len(missing), n_rows, len(units) - len(missing))


def _needed_columns(
    table: ParquetFolder, predictor: Predictor, note: Callable[[str], object]
) -> ParquetFolder:
    """The table with the columns that are used or kept; the others are not read."""
    model = load_once(predictor.path)
    names, unused = model.encoder_.feature_names, model.encoder_.unused_names
    absent = [name for name in predictor.keep if name not in table.names]
    if absent:
        raise TableError(f"{table.files[0]} lacks {listed(absent)}, which must be kept")
    if names is None:
        return table
    others = [name for name in table.names if name in names or name not in predictor.keep]
    try:
        ignored = note_on_columns(others, names, unused)
    except TableError as error:
        raise TableError(f"{table.files[0]}: {error}") from error
    if ignored is not None:
        note(ignored)
    used = (set(names) - set(unused)) | set(predictor.keep)
    pairs = [pair for pair in zip(table.names, table.kinds, strict=True) if pair[0] in used]
    names_left, kinds_left = zip(*pairs, strict=True)
    return replace(table, names=names_left, kinds=kinds_left)


def _refuse_same_folder(source: str, out: Path) -> None:
    """Predictions among the inputs would be inputs of the next start."""
    inputs, outputs = os.path.realpath(source), os.path.realpath(out)
    if outputs == inputs or outputs.startswith(inputs + os.sep):
        raise TableError(f"{out} lies in the folder that is read; choose another one for --out")
    if os.path.exists(outputs) and not os.path.isdir(outputs):
        raise TableError(
            f"{out} is a file, and the predictions of a folder are several; choose a folder"
        )
