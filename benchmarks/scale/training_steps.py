"""The same training by one, two and four processes of one thread: their losses and their speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.large_table import TARGET

#: Those of `StreamRecipe`; two networks train.
_BATCH, _BLOCK_STEPS, _LANES, _SEED = 2048, 64, 8, 0

_N_IN, _HIDDEN = 40, (128, 128, 128)


def train_one(
    folder: str, coordinator: str, n_processes: int, process_id: int, n_blocks: int
) -> dict[str, Any]:
    """Train as one of some processes; the losses and seconds of each block."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[process_id % len(cores)]})
    import jax
    import jax.numpy as jnp

    from nkcme.networks import MLP
    from nkcme.tables.arrow_encoding import ArrowEncoder
    from nkcme.tables.encoding import TableEncoder
    from nkcme.tables.lanes import Lane, LaneBlocks, visits_of_lanes
    from nkcme.tables.parquet_folder import ParquetFolder
    from nkcme.training.loop import Objective, Plan, Task, train
    from nkcme.training.optimizers import Descent
    from nkcme.training.processes import join
    from nkcme.training.streamed_minibatches import StreamedMinibatches

    watch = join(coordinator, n_processes, process_id) if n_processes > 1 else None
    table = ParquetFolder.open(folder)
    first = next(table.batches(table.groups[0], batch_rows=20_000))
    encoder = ArrowEncoder(TableEncoder.fit(first.drop_columns([TARGET]), standardize="robust"))

    def encode(rows: Any) -> tuple[np.ndarray, np.ndarray]:
        y = rows.column(TARGET).to_numpy().astype(np.float32)[:, None]
        return encoder.transform(rows), y

    visits = visits_of_lanes(table.groups, _LANES, _SEED)
    own = np.array_split(np.arange(_LANES), n_processes)[process_id]
    lanes = {
        int(i): Lane(table, visits[i], lambda rows: rows % 2 == 0, [_SEED, int(i)]) for i in own
    }
    columns = [*encoder.names, TARGET]
    blocks = LaneBlocks(lanes, columns, encode, _BLOCK_STEPS, _BATCH // _LANES, _SEED)

    def loss(model: Any, batch: Any, _: Any) -> Any:
        x, y = batch
        return jnp.mean(jnp.square(jax.vmap(model)(x) - y))

    def init(key: Any, _: Any) -> Any:
        return MLP(encoder.n_outputs, 1, _HIDDEN, activation="relu", head="signed", key=key)

    descent = Descent(1e-3, 0.01, 0.99, "constant", 0)
    task = Task(init, (Objective(loss, lambda m: m.trainable(), descent.optimizer()),))
    stamps, used = [time.perf_counter()], [time.process_time()]

    class Clock:
        def update(self, step: int, values: dict[str, float]) -> None:
            stamps.append(time.perf_counter())
            used.append(time.process_time())

    plan = Plan(n_blocks * _BLOCK_STEPS, _BATCH, _BLOCK_STEPS)
    keys = np.arange(4, dtype=np.uint32).reshape(2, 2)
    with StreamedMinibatches(blocks.read, _BLOCK_STEPS, 2, len(own)) as minibatches:
        trained = train(task, np.zeros((2, 1)), minibatches, None, plan, keys, progress=Clock())
    exchange = _exchange_seconds() if n_processes > 1 else 0.0
    if watch is not None:
        watch.end()
    return {
        "losses": trained.history.as_arrays()["loss"].tolist(),
        # The first block compiles.
        "seconds": float(stamps[-1] - stamps[2]),
        "cpu_seconds": float(used[-1] - used[2]),
        "rows": (n_blocks - 2) * _BLOCK_STEPS * _BATCH,
        "exchange_seconds": exchange,
    }


def _exchange_seconds(n: int = 200) -> float:
    """Of one sum of the gradients of a step over all processes, that do nothing else."""
    import jax
    from jax.sharding import PartitionSpec

    from nkcme.training.mesh import ROWS, DeviceMesh
    from nkcme.training.row_shares import sum_of_devices

    on_mesh = DeviceMesh.of(1, 1)
    assert on_mesh is not None
    n_devices = on_mesh.mesh.shape[ROWS]

    def exchanged(value: Any) -> Any:
        step = lambda v, _: (sum_of_devices(v, ROWS, n_devices) / n_devices, None)  # noqa: E731
        return jax.lax.scan(step, value, None, length=n)[0]

    everywhere = PartitionSpec()
    program = jax.jit(
        jax.shard_map(
            exchanged, mesh=on_mesh.mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False
        )
    )
    value = np.ones(step_parameters(), np.float32)
    jax.block_until_ready(program(value))  # compiles
    start = time.perf_counter()
    jax.block_until_ready(program(value))
    return (time.perf_counter() - start) / n


def step_parameters() -> int:
    """The parameters of both networks, all of which are exchanged in a step."""
    widths = (_N_IN, *_HIDDEN, 1)
    return 2 * sum((a + 1) * b for a, b in pairwise(widths))


def train_together(folder: Path, n_processes: int, n_blocks: int) -> dict[str, Any]:
    """Train by some processes of one thread each."""
    from nkcme.estimators.nkcme.launching import free_port

    coordinator = f"127.0.0.1:{free_port()}"
    program = (
        "import json, sys\n"
        "from benchmarks.scale.training_steps import train_one\n"
        "folder, coordinator, *numbers = sys.argv[1:]\n"
        "print(json.dumps(train_one(folder, coordinator, *map(int, numbers))))\n"
    )
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(folder), coordinator]
            + [str(n) for n in (n_processes, i, n_blocks)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1"},
        )
        for i in range(n_processes)
    ]
    outputs = [process.communicate()[0] for process in running]
    results = [json.loads(output.splitlines()[-1]) for output in outputs]
    seconds = max(one["seconds"] for one in results)
    return {
        "processes": n_processes,
        "rows_per_second": results[0]["rows"] / seconds,
        "rows_per_cpu_second": results[0]["rows"] / sum(one["cpu_seconds"] for one in results),
        "exchange_seconds": results[0]["exchange_seconds"],
        "losses": results[0]["losses"],
        "load": os.getloadavg()[0],
    }


def compared(folder: Path, n_blocks: int = 30, rounds: int = 3) -> list[dict[str, Any]]:
    """One, two and four processes in turn, several times: medians of their speeds, and how their
    losses differ at most from those of one."""
    numbers = (1, 2, 4)
    measured = [[train_together(folder, n, n_blocks) for n in numbers] for _ in range(rounds)]
    for one_round in measured:
        alone = one_round[0]
        losses = np.array(alone["losses"])
        for one in one_round:
            one["speed"] = one["rows_per_second"] / alone["rows_per_second"]
            difference = np.abs(np.array(one["losses"]) / losses - 1.0).max(axis=1)
            one["largest_difference"] = float(difference.max())
    by_number = zip(*measured, strict=True)
    return [_summary(n, found) for n, found in zip(numbers, by_number, strict=True)]


def _summary(n_processes: int, rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    def median(name: str) -> float:
        return float(np.median([one[name] for one in rounds]))

    names = ("rows_per_second", "rows_per_cpu_second", "exchange_seconds", "speed", "load")
    return {
        "processes": n_processes,
        **{name: median(name) for name in names},
        "speeds": [one["speed"] for one in rounds],
        "largest_difference": max(one["largest_difference"] for one in rounds),
    }
