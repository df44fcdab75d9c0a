"""What the commands that ask a model do: from paths to plain results, which `cli` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from nkcme import persistence
from nkcme.columns import listed
from nkcme.errors import NkcmeError, TableError
from nkcme.estimators import NKCME, ConditionalEstimator, load
from nkcme.evaluation import evaluate
from nkcme.tables import read_table, split_target, to_frame

#: Who is told what is worth knowing but no result, a line at a time.
Note = Callable[[str], object]


def predict_table(
    model_path: Path,
    table: Path,
    *,
    quantiles: Sequence[float] = (),
    interval: float | None = None,
    samples: int = 0,
    seed: int = 0,
    note: Note,
) -> Any:
    """A frame with the predicted mean of each row of a table, and what else was asked for."""
    if not all(0 <= level <= 1 for level in quantiles):
        raise NkcmeError(
            f"quantiles must lie between 0 and 1; got {', '.join(map(str, quantiles))}"
        )
    if interval is not None and not 0 < interval < 1:
        raise NkcmeError(f"the interval's coverage must lie between 0 and 1; got {interval:g}")
    model = _load_one_output(model_path)
    X = _features(model, read_table(table), note)
    columns = {"mean": model.predict(X).reshape(-1)}
    if quantiles:
        values = model.predict_quantiles(X, list(quantiles))
        columns |= {f"q{level!r}": values[:, j] for j, level in enumerate(quantiles)}
    if interval is not None:
        lower, upper = model.predict_interval(X, interval).T
        columns |= {f"lower_{interval!r}": lower, f"upper_{interval!r}": upper}
    if samples:
        draws = model.sample(X, samples, random_state=seed)
        columns |= {f"sample_{i}": draw for i, draw in enumerate(draws, start=1)}
    return to_frame(columns)


def evaluate_table(
    model_path: Path, table: Path, target: str | None, *, note: Note
) -> dict[str, Any]:
    """The scores of a model on a table that has the target too."""
    model, X, y, name = _model_and_truth(model_path, table, target, note)
    return {"model": str(model_path), "target": name, "metrics": evaluate(model, X, y)}


def report_table(
    model_path: Path, table: Path, target: str | None, path: Path, *, note: Note
) -> None:
    """Write the report of a model on a table that has the target too."""
    from nkcme.report import write_report  # plotly is for this command alone

    model, X, y, name = _model_and_truth(model_path, table, target, note)
    write_report(model, X, y, path, target=name)


def describe_model(model_path: Path) -> dict[str, Any]:
    """What a model file says of itself."""
    model = load(model_path)
    described = {
        "model": str(model_path),
        "estimator": type(model).__name__,
        **persistence.read_header(model_path),
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
    described["parameters"] = model.get_params(deep=False)
    return described


def _load_one_output(path: Path) -> ConditionalEstimator:
    model = load(path)
    if model.n_outputs_ != 1:
        raise NkcmeError(
            f"{path} predicts {model.n_outputs_} outputs and the command line handles one; use "
            "nkcme.load in Python"
        )
    return model


def _model_and_truth(
    model_path: Path, table: Path, target: str | None, note: Note
) -> tuple[ConditionalEstimator, Any, np.ndarray, str]:
    """A model, the features it wants of a table, the true y and its column's name."""
    model = _load_one_output(model_path)
    name = target or getattr(model, "target_name_", None)
    if name is None:
        raise NkcmeError(f"{model_path} does not know its target's name; give it with --target")
    others, y = split_target(read_table(table), name)
    return model, _features(model, others, note), y, name


def _features(model: ConditionalEstimator, frame: Any, note: Note) -> Any:
    """The columns of a table that the model was fitted on."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:  # fitted on an array: columns go by position, less the target
        return frame.drop(columns=getattr(model, "target_name_", None) or [], errors="ignore")
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise TableError(f"the table lacks {listed(absent)}, which the model was fitted on")
    known = set(names)
    extra = [name for name in frame.columns if name not in known]
    if extra:
        note(f"ignored what the model does not know: {listed(extra)}")
    return frame[list(names)]
