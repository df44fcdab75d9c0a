"""A saved model as a function from frames to frames, which can be sent to worker processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.prediction.frames import features_of, frame_like, row_count
from nkcme.prediction.models import load_once
from nkcme.prediction.request import Request


class Predictor:
    """Map frames to frames of predictions, for Ray, Spark, Dask and plain Python.

    The model is loaded at the first call, once in each process; only the path and the options are
    sent to workers. Prediction needs NumPy alone where `nkcme.runtime` knows the estimator. The
    columns are those of ``nkcme predict``: mean, q0.05 ..., lower_0.9, upper_0.9. The bits of a
    row do not depend on the rows it is predicted with, so that the division into batches,
    partitions or shards makes no difference. (CARD and SplineFlow, which need the full library, are
    the exceptions.)

    Parameters
    ----------
    path : str or Path
        The directory of the model. All workers must reach it at the same path.
    quantiles : sequence of float
        Levels from 0 to 1.
    intervals : sequence of float
        Coverages of central intervals, such as 0.9.
    keep : sequence of str
        Columns of the input, such as keys, that come first in the output.

    Examples
    --------
    >>> import nkcme
    >>> predictor = nkcme.Predictor("price-model", quantiles=(0.1, 0.9), intervals=(0.5,))
    >>> predictor.columns
    ['mean', 'q0.1', 'q0.9', 'lower_0.5', 'upper_0.5']
    """

    def __init__(
        self,
        path: str | Path,
        *,
        quantiles: Sequence[float] = (),
        intervals: Sequence[float] = (),
        keep: Sequence[str] = (),
    ):
        self.path = os.path.abspath(path)  # workers have other working directories
        self.request = Request.of(quantiles, intervals)
        self.keep = tuple(keep)
        if repeated := sorted(set(self.keep) & set(self.columns)):
            raise NkcmeError(
                f"keep has {repeated[0]!r}, which is the name of a predicted column; rename it"
            )

    def __repr__(self) -> str:
        return f"Predictor({self.path!r}, {', '.join([*self.keep, *self.columns])})"

    @property
    def columns(self) -> list[str]:
        """The names of the predicted columns, all of them float64; those of ``keep`` precede."""
        return self.request.names

    def __call__(self, frame: Any) -> Any:
        """Predict the rows of a frame.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, dict of arrays, or array
            Columns on which the model was not fitted are ignored.

        Returns
        -------
        frame of the same kind
            One row for each row, in the same order; of pandas frames with the same index. A dict
            of arrays for dicts and arrays.

        Raises
        ------
        TableError
            If a column is missing, or holds what the model cannot read.
        """
        if not row_count(frame):  # frameworks pass empty partitions
            return frame_like(frame, self.keep, {name: np.empty(0) for name in self.columns})
        model = load_once(self.path)
        X = features_of(frame, model.encoder_, model.target_name_)
        return frame_like(frame, self.keep, self.request.columns(model, X))
