"""The rows of a table in an order for training, read by one process or by several.

The row groups of a table are divided among lanes. Each lane reads its row groups in a random
order, in another one in every pass, and every minibatch has as many rows of each lane. Processes
share the lanes: whatever their number, the minibatches are the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nkcme.errors import TableError
from nkcme.tables.parquet_folder import ParquetFolder, RowGroup
from nkcme.tables.row_hash import row_hash

if TYPE_CHECKING:
    import pyarrow

#: Says of some row numbers (n,) which rows are wanted (n,).
Wanted = Callable[[np.ndarray], np.ndarray]

#: Makes arrays with one entry per row of a table.
Encode = Callable[["pyarrow.Table"], tuple[np.ndarray, ...]]


class Visit(NamedTuple):
    """Rows that a lane reads together: one of ``n_parts`` random parts of a row group."""

    group: RowGroup
    part: int
    n_parts: int


def visits_of_lanes(groups: Sequence[RowGroup], n_lanes: int, seed: int) -> list[list[Visit]]:
    """The visits of each lane, of about as many rows each.

    Where row groups are fewer than lanes, each is divided into parts, and is read once for each.
    """
    n_parts = -(-n_lanes // len(groups))
    visits = [Visit(group, part, n_parts) for group in groups for part in range(n_parts)]
    lanes: list[list[Visit]] = [[] for _ in range(n_lanes)]
    sizes = [0.0] * n_lanes
    order = np.random.default_rng([seed, 0]).permutation(len(visits))
    # The largest first, each to the lane with the fewest rows.
    for number in sorted(order.tolist(), key=lambda number: -visits[number].group.n_rows):
        lane = int(np.argmin(sizes))
        lanes[lane].append(visits[number])
        sizes[lane] += visits[number].group.n_rows / n_parts
    return lanes


class Lane:
    """The endless sequence of the wanted rows of some visits.

    Parameters
    ----------
    folder : ParquetFolder
    visits : list of Visit
    wanted : callable
    seed : sequence of int
        Of the order of visits.
    """

    def __init__(
        self, folder: ParquetFolder, visits: Sequence[Visit], wanted: Wanted, seed: Sequence[int]
    ):
        self._folder, self._visits, self._wanted = folder, visits, wanted
        self._seed = list(seed)
        self._counts: dict[Visit, int] = {}

    def read(
        self, start: int, columns: Sequence[str], encode: Encode
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """The encoded rows from number ``start`` of the sequence on, a few at a time."""
        if not any(map(self._count, self._visits)):
            raise TableError("the table has too few rows to be read as a stream; read it whole")
        for epoch in itertools.count():
            for number in np.random.default_rng([*self._seed, epoch]).permutation(
                len(self._visits)
            ):
                visit = self._visits[number]
                if start >= self._count(visit):
                    start -= self._count(visit)
                    continue
                first = visit.group.first_row
                for table in self._folder.batches(visit.group, columns):
                    chosen = np.flatnonzero(self._of_visit(visit, first, table.num_rows))
                    first += table.num_rows
                    chosen, start = chosen[start:], max(start - len(chosen), 0)
                    if len(chosen):
                        yield encode(table.take(chosen))

    def _of_visit(self, visit: Visit, first: int, n: int) -> np.ndarray:
        """Which of n rows from number ``first`` on are wanted and of this visit."""
        rows = np.arange(first, first + n)
        wanted = self._wanted(rows)
        if visit.n_parts == 1:
            return wanted
        part = row_hash(rows, _PART_SEED) % np.uint64(visit.n_parts)
        return wanted & (part == visit.part)

    def _count(self, visit: Visit) -> int:
        """The rows of a visit, which need not be read to be counted."""
        if visit not in self._counts:
            found = self._of_visit(visit, visit.group.first_row, visit.group.n_rows)
            self._counts[visit] = int(np.count_nonzero(found))
        return self._counts[visit]


#: Of the parts of a row group; any number will do.
_PART_SEED = 17


class LaneBlocks:
    """Blocks of minibatches: as many rows of each lane in every one, in random order.

    All rows of a block are shuffled within their lane. A block therefore is the shuffle buffer, and
    nothing but its number is needed to read it.

    Parameters
    ----------
    lanes : dict of int to Lane
        The lanes of this process, by their numbers.
    columns : list of str
        That are read.
    encode : callable
    block_steps, lane_rows : int
        Minibatches of a block, and the rows of a lane in each.
    seed : int
    """

    def __init__(
        self,
        lanes: dict[int, Lane],
        columns: Sequence[str],
        encode: Encode,
        block_steps: int,
        lane_rows: int,
        seed: int,
    ):
        self._lanes, self._columns, self._encode = lanes, list(columns), encode
        self._steps, self._lane_rows, self._seed = block_steps, lane_rows, seed
        self._next = -1
        self._readers: dict[int, Iterator[tuple[np.ndarray, ...]]] = {}
        self._rest: dict[int, tuple[np.ndarray, ...]] = {}

    def read(self, number: int) -> tuple[np.ndarray, ...]:
        """The arrays (block_steps, rows, ...) of a block; cheap if the last was the one before."""
        if number != self._next:
            start = number * self._steps * self._lane_rows
            self._readers = {
                i: lane.read(start, self._columns, self._encode) for i, lane in self._lanes.items()
            }
            self._rest = {}
        self._next = number + 1
        of_lanes = [self._of_lane(i, number) for i in self._lanes]
        return tuple(np.concatenate(arrays, axis=1) for arrays in zip(*of_lanes, strict=True))

    def _of_lane(self, lane: int, number: int) -> list[np.ndarray]:
        n_rows = self._steps * self._lane_rows
        pieces = [self._rest.pop(lane)] if lane in self._rest else []
        n_read = sum(len(piece[0]) for piece in pieces)
        while n_read < n_rows:
            pieces.append(next(self._readers[lane]))
            n_read += len(pieces[-1][0])
        last = pieces[-1]
        n_kept = len(last[0]) - (n_read - n_rows)
        pieces[-1] = tuple(array[:n_kept] for array in last)
        if n_read > n_rows:
            self._rest[lane] = tuple(array[n_kept:].copy() for array in last)
        order = np.random.default_rng([self._seed, lane, number]).permutation(n_rows)
        return [
            np.concatenate(arrays)[order].reshape(
                self._steps, self._lane_rows, *arrays[0].shape[1:]
            )
            for arrays in zip(*pieces, strict=True)
        ]
