"""The rows of a table on disk for networks, which are read while they train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nkcme.distributions.transforms import transformed
from nkcme.estimators.nkcme.training_stream import ReadRows, TrainingStream
from nkcme.tables.arrow_encoding import ArrowEncoder
from nkcme.tables.lanes import Lane, LaneBlocks, visits_of_lanes
from nkcme.tables.parquet_folder import ParquetFolder
from nkcme.tables.row_hash import hash_limit, row_hash
from nkcme.tables.target import TargetScaler

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, eq=False, kw_only=True)
class FolderStream(TrainingStream):
    """Rows that are read from a folder and encoded, block after block.

    Attributes
    ----------
    folder : ParquetFolder
    target : str
    encoder : ArrowEncoder
    scaler : TargetScaler
    transform : {"none", "log"}
    sampled_share : float
        Of the rows, those of the smallest hashes: no network trains on them.
    """

    folder: ParquetFolder
    target: str
    encoder: ArrowEncoder
    scaler: TargetScaler
    transform: str
    sampled_share: float

    def digest(self) -> str:
        files = [(str(group.file.name), group.number, group.n_rows) for group in self.folder.groups]
        return f"{files} {self.n_lanes}"

    def _reader(self, block_steps: int, lane_rows: int, lanes: np.ndarray) -> ReadRows:
        visits = visits_of_lanes(self.folder.groups, self.n_lanes, self.seed)
        read_by = {
            int(i): Lane(self.folder, visits[i], self._wanted, [self.seed, self.half, int(i)])
            for i in lanes
        }
        columns = [*self.encoder.names, self.target]
        blocks = LaneBlocks(read_by, columns, self._encode, block_steps, lane_rows, self.seed)

        def read(number: int) -> tuple[np.ndarray, np.ndarray]:
            x, y = blocks.read(number)
            return x, y

        return read

    def _wanted(self, rows: np.ndarray) -> np.ndarray:
        free = row_hash(rows, self.seed) >= hash_limit(self.sampled_share)
        return free & (row_hash(rows, self.seed + 1) % np.uint64(2) == self.half)

    def _encode(self, table: pyarrow.Table) -> tuple[np.ndarray, np.ndarray]:
        y = table.column(self.target).to_numpy().astype(np.float64)
        return self.encoder.transform(table), self.scaler.transform(
            transformed(y, self.transform)[:, None]
        )
