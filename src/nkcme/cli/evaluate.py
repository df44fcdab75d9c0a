"""The command `nkcme evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkcme.cli.loading import Note, load_with_truth
from nkcme.evaluation import evaluate
from nkcme.tables.table_options import UNKNOWN, TableOptions


def evaluate_table(
    model_path: Path,
    table: Path,
    target: str | None,
    *,
    options: TableOptions = UNKNOWN,
    drop_missing: bool = False,
    note: Note,
) -> dict[str, Any]:
    """The scores of a model on a table that holds the target too."""
    model, X, y, name = load_with_truth(model_path, table, target, note, options, drop_missing)
    return {"model": str(model_path), "target": name, "metrics": evaluate(model, X, y)}
