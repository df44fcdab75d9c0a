"""A folder of small CSV files for the benchmark on tables."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

N_ROWS, N_FOLDS = 400, 4

#: The row of the only "blue" in ``numbered``: the training rows of its fold have two categories.
BLUE = 5


def make(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Write three tables in which y = x + z; x and z, which are standard normal.

    ``numbered.csv.gz`` has four folds and a column of categories. ``shuffled.csv`` has no folds.
    ``unlisted.csv`` has no target in tables.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, N_ROWS))
    y = (x + z).tolist()
    colour = rng.choice(["red", "green"], N_ROWS).tolist()
    colour[BLUE] = "blue"
    fold = [k % N_FOLDS for k in range(N_ROWS)]
    columns = {"x": x.tolist(), "colour": colour, "y": y, "fold": fold}
    (folder / "numbered.csv.gz").write_bytes(gzip.compress(csv_text(columns).encode()))
    for name in ("shuffled", "unlisted"):
        (folder / f"{name}.csv").write_text(csv_text({"x": x.tolist(), "y": y}))
    targets = {name: {"target": "y", "rows": N_ROWS} for name in ("numbered", "shuffled")}
    (folder / "tables.json").write_text(json.dumps(targets))
    return x, z


def csv_text(columns: dict[str, Iterable[Any]]) -> str:
    """The text of a CSV file with the given columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
