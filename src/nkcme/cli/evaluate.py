"""What `nkcme evaluate` and `nkcme report` do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkcme.cli.opening import Note, model_and_truth
from nkcme.evaluation import evaluate


def evaluate_table(
    model_path: Path, table: Path, target: str | None, *, note: Note
) -> dict[str, Any]:
    """The scores of a model on a table that has the target too."""
    model, X, y, name = model_and_truth(model_path, table, target, note)
    return {"model": str(model_path), "target": name, "metrics": evaluate(model, X, y)}


def report_table(
    model_path: Path, table: Path, target: str | None, path: Path, *, note: Note
) -> None:
    """Write the report of a model on a table that has the target too."""
    from nkcme.report.model_report import write_report  # plotly is for this command alone

    model, X, y, name = model_and_truth(model_path, table, target, note)
    write_report(model, X, y, path, target=name)
