"""The cells of the experiment on tables in CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.experiments.cell import Cell
from benchmarks.experiments.methods import DEFAULT, METHODS, ONE_NETWORK, OUR_PARAMETERS, PEERS
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.table_files import TableFile, load_table

EXPERIMENT = "tables"

#: The scores of a progress line.
METRICS = ("crps", "qice_percent", "coverage")

#: Our methods that run when none is named.
USUAL_METHODS = (DEFAULT, ONE_NETWORK)

#: Baselines of the library that run when they are named, each with the defaults of its estimator.
_BASELINES = ("df-median", "mdn", "nsf", "card", "kernel-cme")

#: The CRPS of predicted quantiles is that of this number of them, at levels (i + 1/2) / n: twice
#: their average pinball loss. For a normal distribution it is less than 0.01 % too large.
_N_QUANTILES = 200

#: Treeffuser takes minutes to draw 50 samples for 5,000 rows.
_N_DRAWS = 50

#: Peers with other parameters than on the UCI sets. NGBoost's default learning rate needs up to
#: 2,000 trees; it stops where a tenth of the training rows no longer improves.
_PEER_PARAMETERS: dict[str, dict[str, Any]] = {
    "ngboost": {"n_estimators": 2000, "validation_fraction": 0.1, "early_stopping_rounds": 50},
    "quantile-forest": {"n_estimators": 500},
}


@dataclass(frozen=True)
class TableCell(Cell):
    """One method on one table; a run is a fold. The path of the file is not part of its rows."""

    file: TableFile


def table_cells(
    files: Sequence[TableFile], *, n_shuffled: int, peers: bool = False
) -> list[TableCell]:
    """Our methods, and the peers on request, on all folds of the given tables."""
    cells = []
    for file in files:
        data = _data_protocol(file, n_shuffled)
        ours = [_our_cell(file, name, data) for name in (*USUAL_METHODS, *_BASELINES)]
        theirs = [_peer_cell(file, name, data) for name in PEERS] if peers else []
        cells += [*ours, *theirs]
    return cells


def recorded_cells(rows: Rows) -> list[Cell]:
    """The cells that have rows, as their latest rows describe them: the tables are not needed."""
    return [
        Cell(
            experiment=EXPERIMENT,
            dataset=row["dataset"],
            method=row["method"],
            estimator=row["estimator"],
            parameters=row["parameters"],
            protocol=row["protocol"],
            n_runs=row["protocol"]["n_folds"],
        )
        for row in rows.latest(EXPERIMENT)
    ]


def _data_protocol(file: TableFile, n_shuffled: int) -> dict[str, Any]:
    """What identifies the data of a row: a changed file or other folds need new rows."""
    table = load_table(file, n_shuffled)
    return {
        "target": file.target,
        "n_folds": table.n_folds,
        "n_rows": len(table.y),
        "n_columns": len(table.X.columns),
        "sha256": file.digest(),
    }


def _our_cell(file: TableFile, method: str, data: dict[str, Any]) -> TableCell:
    return TableCell(
        experiment=EXPERIMENT,
        dataset=file.name,
        method=method,
        estimator=METHODS[method].estimator,
        parameters=OUR_PARAMETERS.get(method, {}),
        protocol=data,
        n_runs=data["n_folds"],
        file=file,
    )


def _peer_cell(file: TableFile, method: str, data: dict[str, Any]) -> TableCell:
    peer = PEERS[method]
    return TableCell(
        experiment=EXPERIMENT,
        dataset=file.name,
        method=method,
        estimator=peer.estimator,
        parameters=_PEER_PARAMETERS.get(method, peer.parameters),
        protocol={
            **data,
            "draws": peer.sampling,
            "n_draws": _N_QUANTILES if peer.sampling == "quantiles" else _N_DRAWS,
            "requirement": peer.requirement,
            "threads": 1,
        },
        n_runs=data["n_folds"],
        file=file,
    )
