"""A stored model, tables for it, folders of Parquet files, and workers that die."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd

import nkcme

MODEL = Path(__file__).parents[1] / "data" / "saved_models" / "nkcme-auto"
OPTIONS = {"quantiles": (0.1, 0.5, 0.9), "intervals": (0.8,)}
COLUMNS = ["mean", "q0.1", "q0.5", "q0.9", "lower_0.8", "upper_0.8"]


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    """Rows for the stored model, with a key and a column that it does not know."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "key": np.arange(n) + 1000 * seed,
            "c": rng.normal(size=n),
            "b": rng.choice(["x", "y"], n),
            "a": rng.normal(size=n),
            "flag": rng.random(n) < 0.5,
            "other": "o",
        }
    )
    table.loc[::7, "a"] = np.nan
    table.loc[::11, "b"] = None
    return table


def write_folder(folder: Path, n_files: int = 3, n_rows: int = 300) -> Path:
    """Parquet files of two row groups each, one of them in a folder of its own."""
    for i in range(n_files):
        place = folder / "later" if i == n_files - 1 else folder
        place.mkdir(parents=True, exist_ok=True)
        table = rows(n_rows, seed=i)
        table.to_parquet(place / f"part-{i}.parquet", row_group_size=n_rows // 2, index=False)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


class DyingPredictor(nkcme.Predictor):
    """Kills its own process in the second batch of rows, unless a file says that it did."""

    def __init__(self, path: Path, died: Path, **options):
        super().__init__(path, **options)
        self.died, self.calls = died, 0

    def __call__(self, frame):
        self.calls += 1
        if len(frame) > 1 and self.calls > 1 and not self.died.exists():
            self.died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(frame)


def refuse_odd(number: int) -> int:
    """Work of which every second item fails."""
    if number % 2:
        raise nkcme.TableError(f"number {number} is odd")
    return number


def always_die(number: int) -> int:
    """Work on which every worker dies."""
    os.kill(os.getpid(), signal.SIGKILL)
    return number
