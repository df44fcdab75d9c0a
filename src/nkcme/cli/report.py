"""The command `nkcme report`."""

from __future__ import annotations

import os
from pathlib import Path

from nkcme.cli.loading import Note, load_with_truth
from nkcme.tables.table_options import UNKNOWN, TableOptions


def report_table(
    model_path: Path,
    table: Path,
    target: str | None,
    path: Path,
    *,
    options: TableOptions = UNKNOWN,
    drop_missing: bool = False,
    note: Note,
) -> None:
    """Write the report of a model on a table that holds the target too."""
    model, X, y, name = load_with_truth(model_path, table, target, note, options, drop_missing)
    # For few rows numba, which shap uses, would compile for longer than Python takes.
    os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    # Imported here: a bad model or table is refused without waiting for plotly.
    from nkcme.report.model_report import write_report

    write_report(model, X, y, path, target=name)
