"""A table as people have it beside the same table cleaned by hand.

``python -m benchmarks messy-table`` writes the generated apartments as CSV with semicolons and
decimal commas, as Excel and as Parquet, fits each on the command line with no option but the
target, and scores all models on the same rows. It writes results/messy-table-DEVICE.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.provenance import device_name, write_result
from nkcme.datasets import Apartments, load_apartments
from nkcme.metrics import crps_ensemble

#: Rows to fit to, and rows that all models are scored on.
N_TRAIN, N_TEST = 1000, 2000

_LEVELS = (np.arange(500) + 0.5) / 500


def _excel(frame: pd.DataFrame, path: Path) -> None:
    """As a person has it: dates, whole numbers and floors are cells of their type."""
    typed = frame.assign(
        sold=pd.to_datetime(frame["sold"]),
        age=frame["age"].astype(int),
        floor=[x if x == "-" else int(x) for x in frame["floor"]],
    )
    typed.to_excel(path, index=False)


FILES: dict[str, Callable[[pd.DataFrame, Path], None]] = {
    "messy.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "messy.xlsx": _excel,
    "messy.parquet": lambda frame, path: frame.to_parquet(path),
}


def main(n_seeds: int, out: Path) -> None:
    """Fit and score, print the scores, and write them."""
    rows = []
    for seed in range(n_seeds):
        with tempfile.TemporaryDirectory() as folder:
            rows += compare(seed, Path(folder))
        for row in rows[-len(FILES) - 1 :]:
            print(json.dumps(row), flush=True)
    clean = np.mean([row["crps"] for row in rows if row["table"] == "clean"])
    results = {
        name: float(np.mean([row["crps"] for row in rows if row["table"] == name]) / clean)
        for name in FILES
    }
    content = {"crps_relative_to_clean": results, "rows": rows}
    command = f"python -m benchmarks messy-table --seeds {n_seeds}"
    print(f"CRPS relative to the clean table: {results}")
    print(f"Wrote {write_result(f'messy-table-{device_name()}', command, content, out)}")


def compare(seed: int, folder: Path) -> list[dict[str, Any]]:
    """A row for each form of one table."""
    apartments = load_apartments(N_TRAIN + N_TEST, seed=seed)
    train, test = slice(0, N_TRAIN), slice(N_TRAIN, None)
    priced = apartments.X.assign(price=apartments.price)
    clean = folder / "clean.parquet"
    priced[train].to_parquet(clean)
    priced[test].to_parquet(folder / "test-clean.parquet")
    for name, write in FILES.items():
        write(apartments.messy[train], folder / name)
        write(apartments.messy[test], folder / f"test-{name}")
    truth = _true_crps(apartments, test)
    return [
        {"seed": seed, "true_crps": truth, **_fitted(name, folder / file, folder)}
        for name, file in (("clean", clean.name), *((name, name) for name in FILES))
    ]


def _fitted(name: str, path: Path, folder: Path) -> dict[str, Any]:
    """What a model of a table has read, and its scores on the test rows in the same kind of
    file."""
    model = folder / f"model-{path.name}"
    fitted = _run("fit", path, "--target", "price", "--out", model, "--test-size", 0)
    scores = _run("evaluate", model, folder / f"test-{path.name}")["metrics"]
    kinds = {column["name"]: column["kind"] for column in fitted["read"]}
    return {"table": name, "kinds": kinds, "crps": scores["crps"], "coverage": scores["coverage"]}


def _run(*words: Any) -> Any:
    command = [sys.executable, "-m", "nkcme", *map(str, words), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _true_crps(apartments: Apartments, rows: slice) -> float:
    """The CRPS of the law that the prices follow."""
    quantiles = apartments.ppf(_LEVELS)[rows].T
    return float(np.mean(crps_ensemble(apartments.price[rows], quantiles)))
