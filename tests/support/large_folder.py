"""A small folder of Parquet files, and a recipe by which it is read as a stream."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from nkcme import Recipe
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.estimators.nkcme.stream_recipe import StreamRecipe

#: Rows of the folder, and from which a folder is a stream.
N_ROWS = 8000

SMALL = replace(
    Recipe(),
    stream=StreamRecipe(
        from_rows=N_ROWS,
        held_out_rows=400,
        calibration_rows=800,
        judged_rows=800,
        boosting_rows=500,
        batch_size=64,
        block_steps=20,
        n_lanes=4,
        most_steps=80,
    ),
)


def make(n: int, seed: int) -> tuple[pd.DataFrame, GaussianMixture]:
    """y is normal around a multiple of x and a level of k."""
    rng = np.random.default_rng(seed)
    x, k = rng.normal(size=n), rng.integers(0, 3, n)
    mean = 2.0 * x + np.array([-2.0, 0.0, 3.0])[k]
    y = mean + rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "k": np.array(["a", "b", "c"])[k], "y": y})
    return frame, GaussianMixture(np.zeros((n, 1)), mean[:, None], np.ones((n, 1)))


def write_folder(path: Path) -> Path:
    """Write 8,000 rows to four files of four row groups each."""
    frame, _ = make(N_ROWS, 0)
    for i in range(4):
        part = frame[i * N_ROWS // 4 : (i + 1) * N_ROWS // 4]
        part.to_parquet(path / f"{i}.parquet", index=False, row_group_size=500)
    return path
