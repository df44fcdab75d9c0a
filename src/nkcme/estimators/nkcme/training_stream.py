"""The rows of tables that are too large for cross-fitting, in minibatches for networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np

from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.nkcme.location_regressors import RegressorFits
from nkcme.estimators.nkcme.shared_fits import SharedFits
from nkcme.estimators.training_data import Encoded
from nkcme.training.plan import Plan
from nkcme.training.processes import is_first
from nkcme.training.streamed_minibatches import StreamedMinibatches

#: The halves of the rows that are not sampled: for the location model, and for the embedding.
LOCATION_ROWS, EMBEDDING_ROWS = 0, 1

#: Reads block number n: x (steps, rows, p) and y (steps, rows, 1) of the lanes of this process.
ReadRows = Callable[[int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingStream(ABC):
    """The rows that are not sampled, for networks; and the sampled ones that trees are grown on.

    Attributes
    ----------
    seed : int
    n_lanes : int
    samples : list of Encoded
        What the trees of each member are grown on.
    half : int
        Which of the other rows these are, `LOCATION_ROWS` or `EMBEDDING_ROWS`.
    location : LocationModel or None
        With one, minibatches hold its residuals and the inputs of the network of weights.
    """

    seed: int
    n_lanes: int
    samples: Sequence[Encoded]
    half: int = LOCATION_ROWS
    location: LocationModel | None = None

    @abstractmethod
    def digest(self) -> str:
        """What identifies the rows, for the checkpoint of a run."""

    @abstractmethod
    def _reader(self, block_steps: int, lane_rows: int, lanes: np.ndarray) -> ReadRows:
        """Reads blocks of so many minibatches, with so many rows of each of these lanes."""

    def start_fits(
        self, regressors: Sequence[Any], datasets: Sequence[Encoded], folds: Sequence[Folds]
    ) -> RegressorFits | SharedFits:
        """Start to fit regressors to the samples; of several processes the first does it."""
        if jax.process_count() == 1:
            return RegressorFits(regressors, datasets, folds, self.samples)
        own = RegressorFits(regressors, datasets, folds, self.samples) if is_first() else None
        return SharedFits(own, datasets[0])

    def at(self, location: LocationModel | None) -> Self:
        """The rows for embeddings: residuals of a location model, or y."""
        return replace(self, half=EMBEDDING_ROWS, location=location)

    def minibatches(self, plan: Plan, n_replicas: int, width: int) -> StreamedMinibatches:
        """Minibatches of x, padded to ``width`` columns, and y; a chunk of the plan is a block."""
        block_steps = plan.chunks()[0]
        lane_rows = max(plan.batch_size // self.n_lanes, 1)
        own = np.array_split(np.arange(self.n_lanes), jax.process_count())[jax.process_index()]
        read_rows = self._reader(block_steps, lane_rows, own)

        def read(number: int) -> tuple[np.ndarray, np.ndarray]:
            x, y = self._located(*read_rows(number), len(own))
            return np.pad(x, [(0, 0), (0, 0), (0, width - x.shape[-1])]), y

        return StreamedMinibatches(read, block_steps, n_replicas, len(own))

    def _located(self, x: np.ndarray, y: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The inputs and targets of an embedding, for x (steps, rows, p) and y (steps, rows, 1) of
        n lanes."""
        if self.location is None:
            return x, y
        # Lane by lane: the bits of a row may depend on its place in a product of matrices, and a
        # process has as many rows as it has lanes.
        of_lanes = zip(np.split(x, n, axis=1), np.split(y, n, axis=1), strict=True)
        located = [self._of_lane(self.location, *lane) for lane in of_lanes]
        inputs, residuals = zip(*located, strict=True)
        return np.concatenate(inputs, axis=1), np.concatenate(residuals, axis=1)

    @staticmethod
    def _of_lane(
        location: LocationModel, x: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        steps, rows = x.shape[:2]
        at = location.at(x.reshape(steps * rows, -1))
        residuals = (y - at.mean.reshape(y.shape)) / at.scale.reshape(y.shape)
        return at.inputs.reshape(steps, rows, -1), residuals.astype(np.float32)
