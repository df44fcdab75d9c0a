"""The command `nkcme info`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax

from nkcme.estimators import NKCME, load
from nkcme.model_files import read_header


def describe_model(model_path: Path) -> dict[str, Any]:
    """A model's columns, target, size and parameters."""
    model = load(model_path)
    described = {
        "model": str(model_path),
        "estimator": type(model).__name__,
        **read_header(model_path),
        "target": getattr(model, "target_name_", None),
        "outputs": model.n_outputs_,
        "columns": [
            {"name": column.name, "kind": column.kind, "categories": list(column.categories)}
            for column in model.encoder_.columns
        ],
    }
    facts = {
        "kernel": getattr(model, "kernel", None),
        "atoms": getattr(model, "n_atoms_", getattr(model, "n_atoms", None)),
        "bandwidth": getattr(model, "bandwidth_", None),
        "steps": getattr(model, "n_steps_", None),
        "members": getattr(model, "n_members_", None),
    }
    described |= {name: fact for name, fact in facts.items() if fact is not None}
    if hasattr(model, "model_"):
        described["weights"] = sum(leaf.size for leaf in jax.tree.leaves(model.model_))
    if isinstance(model, NKCME):
        described["center"] = "none" if model.center_ is None else model.center_.summary()
        described["recalibrated"] = model.recalibration_ is not None
        described["support"] = str(model.support_)
    described["parameters"] = model.get_params(deep=False)
    return described
