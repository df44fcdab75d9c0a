"""Lanes: each wanted row once per pass, the same minibatches for any number of processes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nkcme.errors import TableError
from nkcme.tables.lanes import Lane, LaneBlocks, visits_of_lanes
from nkcme.tables.parquet_folder import ParquetFolder
from nkcme.tables.row_hash import row_hash

N = 6000


def rows_of(table):
    return (table.column("row").to_numpy(),)


def even(rows):
    return row_hash(rows, 2) % np.uint64(2) == 0


@pytest.fixture(params=[250, 10_000], ids=["many row groups", "one row group"])
def folder(request, tmp_path: Path) -> ParquetFolder:
    pq.write_table(pa.table({"row": np.arange(N)}), tmp_path / "a.parquet", request.param)
    return ParquetFolder.open(tmp_path)


def blocks(folder, numbers, *, n_lanes=4, steps=5, lane_rows=6) -> LaneBlocks:
    visits = visits_of_lanes(folder.groups, n_lanes, seed=3)
    lanes = {i: Lane(folder, visits[i], even, [3, i]) for i in numbers}
    return LaneBlocks(lanes, ["row"], rows_of, steps, lane_rows, seed=3)


def test_a_pass_has_each_wanted_row_once_and_the_next_pass_another_order(folder):
    visits = visits_of_lanes(folder.groups, 4, seed=3)
    wanted = np.flatnonzero(even(np.arange(N)))
    found, orders = [], []
    for i in range(4):
        lane = Lane(folder, visits[i], even, [3, i])
        size = sum(lane._count(visit) for visit in visits[i])
        twice, reader = [], lane.read(0, ["row"], rows_of)
        while sum(map(len, twice)) < 2 * size:
            twice.append(next(reader)[0])
        rows = np.concatenate(twice)
        found.append(rows[:size])
        np.testing.assert_array_equal(np.sort(rows[size : 2 * size]), np.sort(rows[:size]))
        orders.append(np.array_equal(rows[size : 2 * size], rows[:size]))
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), wanted)
    assert len(folder.groups) == 1 or not all(orders)


def test_minibatches_do_not_depend_on_the_number_of_processes(folder):
    alone = blocks(folder, range(4))
    two = [blocks(folder, [0, 1]), blocks(folder, [2, 3])]
    for number in range(60):  # more than a pass
        whole = alone.read(number)[0]
        assert whole.shape == (5, 24)
        parts = [one.read(number)[0] for one in two]
        np.testing.assert_array_equal(whole, np.concatenate(parts, axis=1))


def test_a_block_is_the_same_wherever_reading_starts(folder):
    first = blocks(folder, range(4))
    in_order = [first.read(number)[0] for number in range(40)]
    np.testing.assert_array_equal(blocks(folder, range(4)).read(37)[0], in_order[37])
    # In the second minibatches of a block the rows of the first ones do not repeat.
    assert len(np.unique(np.stack(in_order[:5]))) == 5 * 5 * 24


def test_rows_of_a_block_are_shuffled_within_their_lane(folder):
    rows = blocks(folder, range(4), steps=20).read(0)[0][:, :6].ravel()
    assert np.mean(np.diff(rows) == np.diff(np.sort(rows))) < 0.2


def test_too_few_rows_are_refused(folder):
    lane = Lane(folder, [], even, [0])
    with pytest.raises(TableError, match="too few rows"):
        next(lane.read(0, ["row"], rows_of))
