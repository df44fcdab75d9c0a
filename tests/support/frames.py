"""Frames of every library that the encoder reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from nkcme.tables.encoding import TableEncoder

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}

#: Runs a test with the constructor of each kind of frame.
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())

MIXED = {
    "size": [1.0, None, 3.0, 8.0],
    "count": [1, 2, 3, 4],
    "flag": [True, False, None, True],
    "town": ["Ulm", None, "Bern", "Ulm"],
    "none": [None, None, None, None],
}


def encode(X: Any, **options: Any) -> np.ndarray:
    """A table encoded by what is learned from it."""
    return TableEncoder.fit(X, **options).transform(X)
