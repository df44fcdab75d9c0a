"""The command `nkcme info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nkcme.estimators.saved_model import SavedModel
from nkcme.model_files import read_header


def describe_model(model_path: Path) -> dict[str, Any]:
    """A model's columns, target, size and parameters.

    The files must be whole and unaltered. The estimator is not built, unless an earlier version
    wrote the model.
    """
    saved = SavedModel.read(model_path)
    return {
        "model": str(model_path),
        "estimator": saved.config["estimator"],
        **read_header(model_path),
        "target": saved.target_name,
        "outputs": saved.n_outputs,
        "columns": [
            {"name": column.name, "kind": column.kind, "categories": list(column.categories)}
            for column in saved.encoder.columns
        ],
        **saved.description,
        "parameters": saved.parameters,
    }
