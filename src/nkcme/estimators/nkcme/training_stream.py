"""The rows of a table on disk, encoded and in minibatches, for the networks of `NKCME`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from nkcme.distributions.transforms import transformed
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.location_model import LocationModel
from nkcme.estimators.nkcme.location_regressors import RegressorFits
from nkcme.estimators.nkcme.shared_fits import SharedFits
from nkcme.estimators.training_data import Encoded
from nkcme.tables.arrow_encoding import ArrowEncoder
from nkcme.tables.lanes import Lane, LaneBlocks, visits_of_lanes
from nkcme.tables.parquet_folder import ParquetFolder
from nkcme.tables.row_hash import hash_limit, row_hash
from nkcme.tables.target import TargetScaler
from nkcme.training.plan import Plan
from nkcme.training.processes import is_first
from nkcme.training.streamed_minibatches import StreamedMinibatches

if TYPE_CHECKING:
    import pyarrow

#: The halves of the rows that are not sampled: for the location model, and for the embedding.
LOCATION_ROWS, EMBEDDING_ROWS = 0, 1


@dataclass(frozen=True, eq=False)
class TrainingStream:
    """The rows that are not sampled, for networks; and the sampled ones that trees are grown on.

    Attributes
    ----------
    folder : ParquetFolder
    target : str
    encoder : ArrowEncoder
    scaler : TargetScaler
    transform : {"none", "log"}
    seed : int
    sampled_share : float
        Of the rows, those of the smallest hashes: no network trains on them.
    n_lanes : int
    samples : list of Encoded
        What the trees of each member are grown on.
    half : int
        Which of the other rows these are, `LOCATION_ROWS` or `EMBEDDING_ROWS`.
    location : LocationModel or None
        With one, minibatches hold its residuals and the inputs of the network of weights.
    """

    folder: ParquetFolder
    target: str
    encoder: ArrowEncoder
    scaler: TargetScaler
    transform: str
    seed: int
    sampled_share: float
    n_lanes: int
    samples: Sequence[Encoded]
    half: int = LOCATION_ROWS
    location: LocationModel | None = None

    def start_fits(
        self, regressors: Sequence[Any], datasets: Sequence[Encoded], folds: Sequence[Folds]
    ) -> RegressorFits | SharedFits:
        """Start to fit regressors to the samples; of several processes the first does it."""
        if jax.process_count() == 1:
            return RegressorFits(regressors, datasets, folds, self.samples)
        own = RegressorFits(regressors, datasets, folds, self.samples) if is_first() else None
        return SharedFits(own, datasets[0])

    def at(self, location: LocationModel | None) -> TrainingStream:
        """The rows for embeddings: residuals of a location model, or y."""
        return replace(self, half=EMBEDDING_ROWS, location=location)

    def minibatches(self, plan: Plan, n_replicas: int, width: int) -> StreamedMinibatches:
        """Minibatches of x, padded to ``width`` columns, and y; a chunk of the plan is a block."""
        block_steps = plan.chunks()[0]
        lane_rows = max(plan.batch_size // self.n_lanes, 1)
        of_lanes = visits_of_lanes(self.folder.groups, self.n_lanes, self.seed)
        own = np.array_split(np.arange(self.n_lanes), jax.process_count())[jax.process_index()]
        lanes = {
            int(i): Lane(self.folder, of_lanes[i], self._wanted, [self.seed, self.half, int(i)])
            for i in own
        }
        columns = [*self.encoder.names, self.target]
        blocks = LaneBlocks(lanes, columns, self._encode, block_steps, lane_rows, self.seed)

        def read(number: int) -> tuple[np.ndarray, np.ndarray]:
            x, y = blocks.read(number)
            x, y = self._located(x, y, len(own))
            return np.pad(x, [(0, 0), (0, 0), (0, width - x.shape[-1])]), y

        return StreamedMinibatches(read, block_steps, n_replicas, len(own))

    def _wanted(self, rows: np.ndarray) -> np.ndarray:
        free = row_hash(rows, self.seed) >= hash_limit(self.sampled_share)
        return free & (row_hash(rows, self.seed + 1) % np.uint64(2) == self.half)

    def _encode(self, table: pyarrow.Table) -> tuple[np.ndarray, np.ndarray]:
        y = table.column(self.target).to_numpy().astype(np.float64)
        return self.encoder.transform(table), self.scaler.transform(
            transformed(y, self.transform)[:, None]
        )

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
