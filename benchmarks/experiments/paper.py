"""The numbers of the paper's tables, read from paper.json."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

#: The scores of the paper's tables, as paper.json and the rows name them; lower is better.
TITLES = {"was1_x100": "WAS1 × 100", "qice_percent": "QICE, %", "rmse": "RMSE"}

#: The experiments that the paper has tables of, and their scores.
PAPER_METRICS = {
    "toy": ("was1_x100",),
    "toy-quick": ("was1_x100",),
    "uci": ("qice_percent", "rmse"),
}


class Published(NamedTuple):
    """A number of the paper's tables; Year has one fold and therefore no standard deviation."""

    mean: float
    std: float | None


def published(metric: str, dataset: str, method: str) -> Published | None:
    """The paper's number, or None where it has none."""
    found = _numbers().get(metric, {}).get(dataset, {}).get(method)
    return None if found is None else Published(found["mean"], found["std"])


def perfect_score(metric: str, dataset: str) -> float | None:
    """The score of a perfect model, or None where it is not known."""
    value = _numbers().get(f"{metric}_floor", {}).get(dataset)
    return None if value is None else float(value)


def rmse_scale(dataset: str) -> float:
    """The factor by which the paper multiplies the RMSE of a data set."""
    return float(_numbers()["rmse_scale"].get(dataset, 1))


def uci_folds() -> dict[str, int]:
    """The number of published folds of each UCI set."""
    return _numbers()["uci_folds"]


def uci_shape(dataset: str) -> tuple[int, int]:
    """The numbers of rows and inputs of a UCI set."""
    n_rows, n_inputs = _numbers()["uci_shape"][dataset]
    return n_rows, n_inputs


@cache
def _numbers() -> dict[str, Any]:
    return json.loads((files("benchmarks.experiments") / "paper.json").read_text(encoding="utf-8"))
