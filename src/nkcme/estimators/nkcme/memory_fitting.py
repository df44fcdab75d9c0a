"""Fitting `NKCME` to a table in memory that is too large for cross-fitting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nkcme.estimators.nkcme.fitted_model import TrainedModel
from nkcme.estimators.nkcme.memory_stream import MemoryStream
from nkcme.estimators.nkcme.stream_training import SampleSizes, train_on_stream
from nkcme.estimators.training_data import Encoded

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


def train_in_memory(model: NKCME, data: Encoded) -> TrainedModel:
    """Train the parameters of ``model``, which is not changed, on a table in memory.

    The recipe is that of a table on disk, without rows that nothing is learned from: users can hold
    out rows of a table in memory themselves.
    """
    recipe = model._recipe.stream
    n_members = model.n_members or recipe.n_members
    n_rows = len(data.x)
    sizes = SampleSizes.of(n_rows, n_members, recipe)._replace(held_out=0)
    order = np.random.default_rng(data.seed).permutation(n_rows)
    ends = np.cumsum([sizes.calibration, sizes.judged, *[sizes.boosting] * n_members])
    *sampled, streamed = np.split(order, ends)
    calibration, judged, *samples = (
        data._replace(x=data.x[rows], y=data.y[rows], weight=data.weight[rows]) for rows in sampled
    )
    halves = np.array_split(streamed, 2)
    stream = MemoryStream(
        seed=data.seed,
        n_lanes=recipe.n_lanes,
        samples=samples,
        data=data,
        halves=(halves[0], halves[1]),
    )
    return train_on_stream(model, judged, calibration, stream, n_members)
