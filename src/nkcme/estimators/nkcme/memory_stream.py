"""The rows of a large table in memory for networks, in a random order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nkcme.estimators.nkcme.training_stream import ReadRows, TrainingStream
from nkcme.estimators.training_data import Encoded


@dataclass(frozen=True, eq=False, kw_only=True)
class MemoryStream(TrainingStream):
    """Rows of a table in memory, each once in every pass over them.

    Attributes
    ----------
    data : Encoded
    halves : tuple of arrays
        The numbers of the rows for the location model, and of those for the embedding.
    """

    data: Encoded
    halves: tuple[np.ndarray, np.ndarray]

    def digest(self) -> str:
        return f"{self.data.digest()} {self.n_lanes}"

    def _reader(self, block_steps: int, lane_rows: int, lanes: np.ndarray) -> ReadRows:
        rows = self.halves[self.half]
        shape = block_steps, lane_rows * len(lanes)
        length = shape[0] * shape[1]

        @lru_cache(maxsize=2)  # a block may have rows of two passes
        def in_pass(number: int) -> np.ndarray:
            return np.random.default_rng([self.seed, self.half, number]).permutation(rows)

        def read(number: int) -> tuple[np.ndarray, np.ndarray]:
            places = np.arange(number * length, (number + 1) * length)
            of_pass, place = np.divmod(places, len(rows))
            chosen = np.concatenate(
                [in_pass(int(one))[place[of_pass == one]] for one in np.unique(of_pass)]
            ).reshape(shape)
            return self.data.x[chosen], self.data.y[chosen]

        return read
