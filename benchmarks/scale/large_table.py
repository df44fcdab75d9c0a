"""A generated table of any number of rows, with categories, missing values and a known truth."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nkcme.distributions.gaussian_mixture import GaussianMixture

#: The target of the table; the other ten columns are inputs.
TARGET = "y"

_SHOPS = np.array([f"shop-{i:02d}" for i in range(24)])
_REGIONS = np.array(["north", "east", "south", "west", "centre", "abroad"])


class Rows(NamedTuple):
    """Some rows of the table."""

    columns: dict[str, np.ndarray | pa.Array]
    truth: GaussianMixture
    y: np.ndarray

    @property
    def table(self) -> pa.Table:
        """The inputs and the target."""
        return pa.table({**self.columns, TARGET: self.y})

    @property
    def inputs(self) -> pa.Table:
        """The inputs alone."""
        return pa.table(self.columns)


def make_rows(n: int, seed: int) -> Rows:
    """Rows of the table: a skewed mixture with location, scale and weights by the inputs."""
    rng = np.random.default_rng([2026, seed])
    normal = {f"x{i}": rng.standard_normal(n) for i in range(4)}
    even = {f"u{i}": rng.uniform(-1.0, 1.0, n) for i in range(2)}
    income = np.exp(0.8 * rng.standard_normal(n))
    age = rng.integers(18, 90, n).astype(np.float64)
    shop, region = rng.zipf(1.3, n) % len(_SHOPS), rng.integers(0, len(_REGIONS), n)
    unknown_age, unknown_shop = rng.random(n) < 0.1, rng.random(n) < 0.03
    x0, x1, x2, x3 = normal.values()
    u0, u1 = even.values()
    effect = np.sin(1.7 * np.arange(len(_SHOPS)))[shop]
    location = (
        1.5 * np.sin(1.5 * x0)
        + 2.0 * u0 * x1
        + np.log1p(income)
        + np.where(unknown_age, -0.5, 0.03 * (age - 50.0))
        + np.where(unknown_shop, 0.3, effect)
        + 0.4 * np.array([-1.0, 0.5, 1.0, 0.0, 2.0, -2.0])[region] * (u1 > 0.2)
    )
    scale = np.exp(0.3 * x2 - 0.4 + 0.3 * (region == 5))
    second = 1.0 / (1.0 + np.exp(-x3))
    truth = GaussianMixture(
        np.log(np.stack([1.0 - second, second], axis=1)),
        means=np.stack([-0.6 * np.ones(n), 0.9 * np.ones(n)], axis=1),
        stds=np.stack([0.5 * np.ones(n), 1.0 * np.ones(n)], axis=1),
        location=location[:, None],
        scale=scale[:, None],
    )
    of_second = rng.random(n) < second
    noise = rng.standard_normal(n)
    y = location + scale * np.where(of_second, 0.9 + noise, -0.6 + 0.5 * noise)
    columns: dict[str, np.ndarray | pa.Array] = {
        **normal,
        **even,
        "income": income,
        "age": pa.array(age, mask=unknown_age),
        "shop": pa.array(_SHOPS[shop], mask=unknown_shop),
        "region": pa.array(_REGIONS[region]),
    }
    return Rows(columns, truth, y)


def write_folder(folder: Path, n_rows: int, *, file_rows: int = 2_000_000) -> None:
    """Write the table as Parquet files of two million rows, in row groups of 131,072."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n_rows, file_rows)):
        table = make_rows(min(file_rows, n_rows - start), number + 1).table
        pq.write_table(table, folder / f"part-{number:04d}.parquet", row_group_size=131_072)


def test_rows(n: int) -> Rows:
    """Rows that no folder has."""
    return make_rows(n, 0)
